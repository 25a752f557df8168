import type { Command } from 'commander';
import { type EndpointName, TrackingClient } from 'tracking-client';
import type { Failure, PlayName } from 'tracking-client/testing';
import { addListenFlags, parseSecret, rejectFlag, secretOption, several, wholeNumber } from './flags.ts';
import { CommandError } from './terminal.ts';

/** The flags of the fake command. */
export interface FakeFlags {
  readonly port: number;
  readonly host: string;
  readonly play?: readonly (PlayName | 'none')[];
  readonly speed: number;
  readonly fail?: readonly { readonly endpoint: EndpointName | '*'; readonly failure: Failure }[];
  readonly latency: number;
  readonly limit?: readonly ('off' | Partial<Record<EndpointName, number>>)[];
  readonly quota?: number;
  readonly perCall?: boolean;
  readonly webhookUrl?: string;
  readonly webhookSecret?: string;
  readonly duplicates: number;
  readonly shuffle?: boolean;
  readonly apiKey?: readonly string[];
  readonly seed: string;
}

const PLAYS = ['delivered', 'exception', 'customs', 'never-found', 'none'] as const;
const FAILURE_KINDS = ['reset', 'timeout', 'stall', 'badJson', 'html', 'commitThenDrop'] as const;
const MAX_API_KEYS = 20;
const MAX_LATENCY_MS = 600_000;
const MAX_COUNT = 1_000_000;

/** Adds the flags of the fake command. */
export function addFakeFlags(command: Command): Command {
  return addListenFlags(command, 4010)
    .option('--play <name>', PLAYS.join(', '), several(parsePlay))
    .option('--speed <number>', 'times faster than real time', parseSpeed, 1)
    .option('--fail <what>', '[ENDPOINT:]STATUS-OR-KIND[:TIMES], e.g. all:500:3', several(parseFailure))
    .option('--latency <ms>', 'wait before each response', wholeNumber('latency', MAX_LATENCY_MS), 0)
    .option('--limit <n>', '[ENDPOINT:]NUMBER a second, or off', several(parseLimit))
    .option('--quota <n>', 'trackers that the plan may create', wholeNumber('quota', MAX_COUNT))
    .option('--per-call', 'give the account the per-call plan, too')
    .option('--webhook-url <url>', 'where to push webhooks', parseWebhookUrl)
    .addOption(secretOption('--webhook-secret <s>', 'sent with them'))
    .option('--duplicates <n>', 'send each push so many times more', wholeNumber('duplicates', 100), 0)
    .option('--shuffle', 'send what waits in another order')
    .option('--api-key <key>', 'accept this key alone; up to 20 times', parseApiKeys)
    .option('--seed <text>', 'decides every id', '1')
    .addHelpText(
      'after',
      `
A play of days takes 77 seconds with --speed 3600; several plays take turns.
Kinds of failures: ${FAILURE_KINDS.join(', ')}.`,
    );
}

function parseApiKeys(text: string, earlier: readonly string[] = []): readonly string[] {
  const keys = [...earlier, parseSecret('api-key', text) ?? rejectFlag('api-key', 'a key')];
  if (keys.length <= MAX_API_KEYS) return keys;
  throw new CommandError(`Expected \`--api-key\` at most ${MAX_API_KEYS} times, got ${keys.length}`);
}

function parsePlay(text: string): (typeof PLAYS)[number] {
  return PLAYS.find((play) => play === text) ?? rejectFlag('play', PLAYS.join(', '), text);
}

function parseSpeed(text: string): number {
  return Number(text) >= 1 ? Number(text) : rejectFlag('speed', 'a number of at least 1', text);
}

function parseWebhookUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isHttp && url.username === '' && url.password === '') return url.href;
  return rejectFlag('webhook-url', 'an http or https URL without a user name');
}

/** The endpoints that a flag starts with; a flag without one means all. */
function parseEndpoints(flag: string, text: string): readonly EndpointName[] {
  const client = new TrackingClient({ baseUrl: 'https://tracking.test', apiKey: 'any' });
  // Sound: `rateLimits` has one key for each endpoint, and no other.
  const names = Object.keys(client.rateLimits()) as EndpointName[];
  if (text === 'all') return names;
  const endpoint = names.find((name) => name === text);
  return [endpoint ?? rejectFlag(flag, `about an endpoint, one of all, ${names.join(', ')}`, text)];
}

function parseLimit(text: string): 'off' | Partial<Record<EndpointName, number>> {
  if (text === 'off') return text;
  const [count = '', endpoint = 'all', ...rest] = text.split(':').reverse();
  if (rest.length > 0) rejectFlag('limit', 'NUMBER, ENDPOINT:NUMBER or off', text);
  const limit = wholeNumber('limit', MAX_COUNT)(count);
  return Object.fromEntries(parseEndpoints('limit', endpoint).map((name) => [name, limit]));
}

/** Reads `500`, `trackers.create:reset`, or `all:429:3` for three of them. */
function parseFailure(text: string) {
  const parts = text.split(':');
  const [endpoint = '', what = '', count = '1', ...rest] = parts.length === 1 ? ['all', text] : parts;
  const rule = `[ENDPOINT:]WHAT[:TIMES], where WHAT is a status from 400 to 599 or ${FAILURE_KINDS.join(', ')}`;
  const kind = FAILURE_KINDS.find((name) => name === what);
  if (rest.length > 0 || (kind === undefined && !/^[45]\d\d$/.test(what)))
    return rejectFlag('fail', rule, text);
  const [name = 'trackers.list'] = parseEndpoints('fail', endpoint);
  const times = count === 'all' ? Number.POSITIVE_INFINITY : wholeNumber('fail', MAX_COUNT)(count);
  const failure = kind === undefined ? { status: Number(what), times } : { kind, times };
  return { endpoint: endpoint === 'all' ? '*' : name, failure };
}
