import type { Failure, FailureKind, PlayName } from 'tracking-client/testing';
import { ENDPOINT_NAMES, type EndpointName } from '../endpoints.ts';
import { CommandError } from './terminal.ts';

/** The flags of the fake command as they were typed. */
export interface FakeFlags {
  readonly port: string;
  readonly host: string;
  readonly play?: readonly string[];
  readonly speed: string;
  readonly webhookUrl?: string;
  readonly webhookSecret?: string;
  readonly duplicates: string;
  readonly shuffle?: boolean;
  readonly apiKey?: readonly string[];
  readonly perCall?: boolean;
  readonly quota?: string;
  readonly limit?: readonly string[];
  readonly latency: string;
  readonly fail?: readonly string[];
  readonly seed: string;
}

const PLAYS: readonly PlayName[] = ['delivered', 'exception', 'customs', 'never-found'];
/** What `--play` takes. */
export const PLAY_CHOICES = [...PLAYS, 'none'];
/** What `--fail` takes besides a status. */
export const FAILURE_KINDS: readonly FailureKind[] = [
  'reset',
  'timeout',
  'stall',
  'badJson',
  'html',
  'commitThenDrop',
];
const MAX_API_KEYS = 20;
const MAX_LATENCY_MS = 600_000;
const MAX_COUNT = 1_000_000;

/** Values that may be secret are left out. */
function reject(flag: string, rule: string, got?: string): never {
  const end = got === undefined ? '' : `, got ${JSON.stringify(got)}`;
  throw new CommandError(`Expected \`--${flag}\` to be ${rule}${end}`);
}

/** Reads a flag that is a whole number. */
export function wholeNumber(flag: string, text: string, max: number): number {
  if (/^\d{1,7}$/.test(text) && Number(text) <= max) return Number(text);
  return reject(flag, `a whole number from 0 to ${max}`, text);
}

/** Reads a host to listen on; an empty one would bind every address. */
export function hostOf(host: string): string {
  return /^[\w.:-]+$/.test(host) ? host : reject('host', 'an address or a host name', host);
}

function webhookUrlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isHttp && url.username === '' && url.password === '') return url.href;
  return reject('webhook-url', 'an http or https URL without a user name');
}

/** Reads a flag that holds a secret, which no message may show. */
export function secretOf(flag: string, text: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  return reject(flag, 'visible ASCII characters without spaces');
}

/** The endpoints that a flag starts with; a flag without one means all. */
function endpointsOf(flag: string, text: string): readonly EndpointName[] {
  if (text === 'all') return ENDPOINT_NAMES;
  const endpoint = ENDPOINT_NAMES.find((name) => name === text);
  return [endpoint ?? reject(flag, `about an endpoint, one of all, ${ENDPOINT_NAMES.join(', ')}`, text)];
}

function limitsOf(texts: readonly string[]): Partial<Record<EndpointName, number>> | false {
  if (texts.includes('off')) return false;
  const limits = texts.flatMap((text) => {
    const [count = '', endpoint = 'all', ...rest] = text.split(':').reverse();
    if (rest.length > 0) reject('limit', 'NUMBER, ENDPOINT:NUMBER or off', text);
    const limit = wholeNumber('limit', count, MAX_COUNT);
    return endpointsOf('limit', endpoint).map((name) => [name, limit] as const);
  });
  return Object.fromEntries(limits);
}

/** A failure to plan: `500`, `trackers.create:reset`, or `all:429:3` for three of them. */
function plannedOf(text: string): { readonly endpoint: EndpointName | '*'; readonly failure: Failure } {
  const parts = text.split(':');
  const [endpoint = '', what = '', count = '1', ...rest] = parts.length === 1 ? ['all', text] : parts;
  const rule = `[ENDPOINT:]WHAT[:TIMES], where WHAT is a status from 400 to 599 or ${FAILURE_KINDS.join(', ')}`;
  const kind = FAILURE_KINDS.find((name) => name === what);
  if (rest.length > 0 || (kind === undefined && !/^[45]\d\d$/.test(what))) return reject('fail', rule, text);
  const [name = 'trackers.list'] = endpointsOf('fail', endpoint);
  const times = count === 'all' ? Number.POSITIVE_INFINITY : wholeNumber('fail', count, MAX_COUNT);
  const failure = kind === undefined ? { status: Number(what), times } : { kind, times };
  return { endpoint: endpoint === 'all' ? '*' : name, failure };
}

function playsOf(names: readonly string[]): readonly PlayName[] {
  if (names.length === 1 && names[0] === 'none') return [];
  return names.map(
    (name) => PLAYS.find((play) => play === name) ?? reject('play', PLAY_CHOICES.join(', '), name),
  );
}

/**
 * Checks the flags of the fake command.
 *
 * @param flags - as they were typed
 * @returns their values
 * @throws CommandError naming the flag; values that may be secret are not shown
 */
export function fakeOptions(flags: FakeFlags) {
  const { webhookUrl, webhookSecret, apiKey = [], quota } = flags;
  const speed = Number(flags.speed);
  if (!(speed >= 1)) reject('speed', 'a number of at least 1', flags.speed);
  if (apiKey.length > MAX_API_KEYS)
    throw new CommandError(`Expected \`--api-key\` at most ${MAX_API_KEYS} times, got ${apiKey.length}`);
  return {
    host: hostOf(flags.host),
    port: wholeNumber('port', flags.port, 65_535),
    apiKeys: apiKey.map((key) => secretOf('api-key', key)),
    plays: playsOf(flags.play ?? ['delivered']),
    speed,
    seed: flags.seed,
    hasPerCallPlan: flags.perCall ?? false,
    quota: quota === undefined ? undefined : wholeNumber('quota', quota, MAX_COUNT),
    limits: limitsOf(flags.limit ?? []),
    latencyMs: wholeNumber('latency', flags.latency, MAX_LATENCY_MS),
    failures: (flags.fail ?? []).map(plannedOf),
    webhookUrl: webhookUrl === undefined ? undefined : webhookUrlOf(webhookUrl),
    webhookSecret: webhookSecret ? secretOf('webhook-secret', webhookSecret) : undefined,
    duplicates: wholeNumber('duplicates', flags.duplicates, 100),
    shuffle: flags.shuffle ?? false,
  };
}

/** The flags of the fake command, checked. */
export type FakeOptions = ReturnType<typeof fakeOptions>;
