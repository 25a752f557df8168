import { parseArgs } from 'node:util';
import { PLAY_NAMES, type PlayName } from '../shipments/plays.ts';

/** What the command was asked to do. */
export interface Flags {
  readonly host: string;
  readonly port: number;
  readonly apiKeys: readonly string[];
  readonly plays: readonly PlayName[];
  readonly speed: number;
  readonly seed: string;
  readonly hasPerCallPlan: boolean;
  readonly webhookUrl: string | undefined;
  readonly webhookSecret: string | undefined;
  readonly duplicates: number;
  readonly shuffle: boolean;
}

/** A flag that the command does not have, or a value that makes no sense. */
export class UsageError extends Error {}

const FLAGS = {
  port: { type: 'string', short: 'p', default: '4010' },
  host: { type: 'string', default: '127.0.0.1' },
  play: { type: 'string', multiple: true },
  speed: { type: 'string', default: '1' },
  'webhook-url': { type: 'string' },
  'webhook-secret': { type: 'string' },
  duplicates: { type: 'string', default: '0' },
  shuffle: { type: 'boolean', default: false },
  'api-key': { type: 'string', multiple: true },
  'per-call': { type: 'boolean', default: false },
  seed: { type: 'string', default: '1' },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'v', default: false },
} as const;

const HIGHEST_PORT = 65_535;
const MOST_API_KEYS = 20;
const MOST_DUPLICATES = 100;

function expected(flag: keyof typeof FLAGS, rule: string, got: string): UsageError {
  return new UsageError(`Expected \`--${flag}\` to be ${rule}, got ${JSON.stringify(got)}`);
}

function wholeNumber(flag: 'port' | 'duplicates', text: string, max: number): number {
  if (/^\d{1,6}$/.test(text) && Number(text) <= max) return Number(text);
  throw expected(flag, `a whole number from 0 to ${max}`, text);
}

function hostOf(text: string): string {
  // An empty host would bind every address.
  if (/^[\w.:-]+$/.test(text)) return text;
  throw expected('host', 'an address or a host name', text);
}

function speedOf(text: string): number {
  const speed = Number(text);
  if (text.trim() !== '' && speed >= 1) return speed;
  throw expected('speed', 'a number of at least 1', text);
}

function playsOf(names: readonly string[]): readonly PlayName[] {
  return names.map((name) => {
    const play = PLAY_NAMES.find((known) => known === name);
    if (play === undefined) throw expected('play', PLAY_NAMES.join(', '), name);
    return play;
  });
}

/** Its value is not shown: it may hold a password. */
function webhookUrlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isHttp && url.username === '' && url.password === '') return url.href;
  throw new UsageError('Expected `--webhook-url` to be an http or https URL without a user name');
}

/** Values are not shown: they are secrets to their owner, even here. */
function secretOf(flag: 'webhook-secret' | 'api-key', text: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new UsageError(`Expected \`--${flag}\` to be visible ASCII characters without spaces`);
}

function apiKeysOf(keys: readonly string[]): readonly string[] {
  if (keys.length > MOST_API_KEYS)
    throw new UsageError(`Expected \`--api-key\` at most ${MOST_API_KEYS} times, got ${keys.length}`);
  return keys.map((key) => secretOf('api-key', key));
}

function valuesOf(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS }).values;
  } catch (error) {
    // Node's own words name the flag; what follows them is advice about dashes.
    const [words = ''] = String(error instanceof Error ? error.message : error).split(/\.? To specify|\.?\n/);
    throw new UsageError(words);
  }
}

/**
 * Reads the arguments of the command.
 *
 * @returns the flags, or what else was asked for
 * @throws UsageError for an unknown flag or a value that makes no sense
 */
export function parseFlags(args: readonly string[]): Flags | 'help' | 'version' {
  const values = valuesOf(args);
  if (values.help) return 'help';
  if (values.version) return 'version';
  const { 'webhook-url': webhookUrl, 'webhook-secret': webhookSecret } = values;
  return {
    host: hostOf(values.host),
    port: wholeNumber('port', values.port, HIGHEST_PORT),
    apiKeys: apiKeysOf(values['api-key'] ?? []),
    plays: playsOf(values.play ?? ['delivered']),
    speed: speedOf(values.speed),
    seed: values.seed,
    hasPerCallPlan: values['per-call'],
    webhookUrl: webhookUrl === undefined ? undefined : webhookUrlOf(webhookUrl),
    webhookSecret: webhookSecret === undefined ? undefined : secretOf('webhook-secret', webhookSecret),
    duplicates: wholeNumber('duplicates', values.duplicates, MOST_DUPLICATES),
    shuffle: values.shuffle,
  };
}
