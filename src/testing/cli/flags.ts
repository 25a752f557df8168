import { parseArgs } from 'node:util';
import { PLAY_NAMES, type PlayName } from '../shipments/plays.ts';

/** What the command has to do. */
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

/** The shape of the command on one line. */
export const USAGE =
  'tracking-client-fake [--port 4010] [--webhook-url <url>] [--speed 60] [--play delivered]';

/** What `--help` prints. */
export const HELP = `Usage: ${USAGE}

Serves a fake tracking service over HTTP, for programs in any language. It keeps
everything in memory, and prints each request and each webhook in one line.

  -p, --port <number>         Port; 0 for any free one. Default 4010
      --host <address>        Address to bind. Default 127.0.0.1
      --play <name>           What happens to each new tracking number. Give it again,
                              and the plays take turns. Default delivered
                              ${PLAY_NAMES.join(', ')}
      --speed <number>        How many times faster than real time. Default 1; the play
                              delivered takes 77 hours, at 60 about 77 minutes
      --webhook-url <url>     Where to push webhooks. Default: no webhooks. What is not
                              accepted is sent up to 20 times: the service's six days
                              of attempts take 32 seconds
      --webhook-secret <s>    Sent with each push as "Authorization: Bearer <s>"
      --duplicates <number>   Sends each push so many times more. Default 0
      --shuffle               Sends what waits in another order
      --api-key <key>         A key to accept; up to 20. Default: any key
      --per-call              Gives the account the per-call plan, too
      --seed <text>           Decides every id. Default 1
  -h, --help                  Prints this
  -v, --version               Prints the version

Stop it with Ctrl-C.`;

const MOST_API_KEYS = 20;

function expected(flag: keyof typeof FLAGS, rule: string, got: string): UsageError {
  return new UsageError(`Expected \`--${flag}\` to be ${rule}, got ${JSON.stringify(got)}`);
}

function wholeNumber(flag: 'port' | 'duplicates', text: string, max: number): number {
  if (/^\d{1,6}$/.test(text) && Number(text) <= max) return Number(text);
  throw expected(flag, `a whole number from 0 to ${max}`, text);
}

function playOf(name: string): PlayName {
  const play = PLAY_NAMES.find((known) => known === name);
  if (play === undefined) throw expected('play', PLAY_NAMES.join(', '), name);
  return play;
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
 * @returns the flags, or what else to print
 * @throws UsageError for an unknown flag or a value that makes no sense
 */
export function parseFlags(args: readonly string[]): Flags | 'help' | 'version' {
  const values = valuesOf(args);
  if (values.help) return 'help';
  if (values.version) return 'version';
  const {
    host,
    'webhook-url': webhookUrl,
    'webhook-secret': webhookSecret,
    'api-key': apiKeys = [],
  } = values;
  // An empty host would bind every address.
  if (!/^[\w.:-]+$/.test(host)) throw expected('host', 'an address or a host name', host);
  const speed = Number(values.speed);
  if (!(speed >= 1)) throw expected('speed', 'a number of at least 1', values.speed);
  if (apiKeys.length > MOST_API_KEYS)
    throw new UsageError(`Expected \`--api-key\` at most ${MOST_API_KEYS} times, got ${apiKeys.length}`);
  return {
    host,
    port: wholeNumber('port', values.port, 65_535),
    apiKeys: apiKeys.map((key) => secretOf('api-key', key)),
    plays: (values.play ?? ['delivered']).map(playOf),
    speed,
    seed: values.seed,
    hasPerCallPlan: values['per-call'],
    webhookUrl: webhookUrl === undefined ? undefined : webhookUrlOf(webhookUrl),
    webhookSecret: webhookSecret === undefined ? undefined : secretOf('webhook-secret', webhookSecret),
    duplicates: wholeNumber('duplicates', values.duplicates, 100),
    shuffle: values.shuffle,
  };
}
