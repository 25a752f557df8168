import { type Command, Option } from 'commander';
import {
  describeMilestone,
  type EndpointName,
  STATUS_MILESTONES,
  TrackingClient,
  VERSION,
} from 'tracking-client';
import {
  createFakeTrackingService,
  createWebhookSender,
  type Failure,
  type PlayName,
  type QueuedPush,
  type RecordedRequest,
  type SentWebhook,
} from 'tracking-client/testing';
import { sleep } from '../common/clock.ts';
import { isKey, KEY_RULE } from '../common/secrets.ts';
import {
  addHelpLines,
  addListenFlags,
  parseWebhookUrl,
  parseWholeNumber,
  rejectFlag,
  repeatable,
  secretOption,
  wholeNumber,
} from './flags.ts';
import {
  type Colours,
  CommandError,
  explainListenFailure,
  formatClock,
  plain,
  type Terminal,
  untilAborted,
} from './terminal.ts';

type Play = PlayName | 'none';
type FailureKind = Extract<Failure, { kind: unknown }>['kind'];

export interface FakeFlags {
  readonly port: number;
  readonly host: string;
  readonly play: readonly Play[];
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

const PLAYS: readonly Play[] = [...STATUS_MILESTONES, 'customs', 'never-found', 'none'];
const KINDS: readonly FailureKind[] = ['reset', 'timeout', 'stall', 'badJson', 'html', 'commitThenDrop'];
const MAX_LATENCY_MS = 600_000;
const MAX_COUNT = 1_000_000;
const MAX_KEYS = 20;
/** Bounds the memory of a fake that runs for days. */
const HISTORY_LIMIT = 1000;
/** The sender gives up after this many attempts. */
const MAX_ATTEMPTS = 20;
const CONCURRENT_PUSHES = 4;
const STOP_GRACE_MS = 1000;

export function addFake(program: Command, terminal: Terminal): void {
  const command = program.command('fake').description('Run a fake service, to try the command without a key');
  addListenFlags(command, 4010)
    .addOption(
      new Option(
        '--play <names...>',
        'scenario of each new shipment; several are used in turn. With "none", events come only from POST /__fake/events',
      )
        .choices(PLAYS)
        .default(['delivered'], 'delivered'),
    )
    .option('--speed <number>', 'speed: at 60, an hour takes a minute', parseSpeed, 1)
    .option(
      '--fail <what>',
      'failure of requests: [ENDPOINT:]FAILURE[:TIMES], such as 503 (once), reset:2 (twice) or trackers.get:429:all',
      repeatable(parseFailure),
    )
    .option('--latency <ms>', 'milliseconds before each response', wholeNumber('latency', MAX_LATENCY_MS), 0)
    .option(
      '--limit <n>',
      'maximum requests per second, such as 5 (each endpoint), trackers.get:5 (one endpoint) or off (no limit)',
      repeatable(parseLimit),
    )
    .option('--quota <n>', 'maximum number of trackers', wholeNumber('quota', MAX_COUNT))
    .option('--per-call', 'also accept searches of the per-call plan')
    .option('--webhook-url <url>', 'URL to send the webhooks to', parseWebhookUrl)
    .addOption(secretOption('--webhook-secret <s>', 'secret of the webhooks'))
    .option('--duplicates <n>', 'number of duplicates of each webhook', wholeNumber('duplicates', 100), 0)
    .option('--shuffle', 'randomize the order of webhooks due at the same time')
    .option(
      '--api-key <key>',
      `API key to accept; can be given up to ${MAX_KEYS} times (default: any key is accepted)`,
      repeatable(parseApiKey),
    )
    .option('--seed <text>', 'seed: the same text gives the same ids', '1')
    .action((flags: FakeFlags) => serveFake(flags, terminal));
  addHelpLines(
    command,
    terminal,
    'Failures: a status from 400 to 599; reset (closes the connection); timeout (never responds); stall (sends half a response); badJson (sends invalid JSON); html (sends an error page); commitThenDrop (carries the request out, then closes the connection). ENDPOINT is a name such as trackers.get, or "all" (the default). TIMES is a number (default: 1), or "all" for every request.',
  );
}

function parseApiKey(text: string): string {
  if (text === '') rejectFlag('api-key', 'a non-empty string', text);
  return isKey(text) ? text : rejectFlag('api-key', KEY_RULE);
}

function parseSpeed(text: string): number {
  return Number(text) >= 1 ? Number(text) : rejectFlag('speed', 'a number of at least 1', text);
}

function parseEndpoints(flag: string, text: string): readonly EndpointName[] {
  const client = new TrackingClient({ baseUrl: 'https://tracking.test', apiKey: 'any' });
  // Safe cast: the keys of `rateLimits` are exactly the endpoints.
  const names = Object.keys(client.rateLimits()) as EndpointName[];
  if (text === 'all') return names;
  const endpoint = names.find((name) => name === text);
  if (endpoint !== undefined) return [endpoint];
  throw new CommandError(
    `\`--${flag}\` has the unknown endpoint ${JSON.stringify(text)}; known: all, ${names.join(', ')}`,
  );
}

function parseLimit(text: string): 'off' | Partial<Record<EndpointName, number>> {
  if (text === 'off') return text;
  const [, endpoint = 'all', count = ''] = /^(?:([^:]*):)?(\d+)$/.exec(text) ?? [];
  const limit =
    parseWholeNumber(count, MAX_COUNT) ??
    rejectFlag('limit', `[ENDPOINT:]NUMBER or off, with a NUMBER from 0 to ${MAX_COUNT}`, text);
  return Object.fromEntries(parseEndpoints('limit', endpoint).map((name) => [name, limit]));
}

const FAILURE = new RegExp(`^([45]\\d\\d|${KINDS.join('|')})$`);

function parseFailure(text: string) {
  const parts = text.split(':');
  const index = parts.findIndex((part) => FAILURE.test(part));
  const what = parts[index];
  if (what === undefined)
    return rejectFlag('fail', `a status from 400 to 599 or one of ${KINDS.join(', ')}`, text);
  const [endpoint, count = '1', ...others] = [index === 0 ? 'all' : parts[0], ...parts.slice(index + 1)];
  if (index > 1 || others.length > 0 || endpoint === undefined)
    return rejectFlag('fail', '[ENDPOINT:]FAILURE[:TIMES]', text);
  const times = count === 'all' ? Number.POSITIVE_INFINITY : parseWholeNumber(count, MAX_COUNT, 1);
  if (times === undefined)
    throw new CommandError(
      `Expected TIMES in \`--fail\` to be "all" or a whole number from 1 to ${MAX_COUNT}, got ${JSON.stringify(count)}`,
    );
  const [name = 'trackers.list'] = parseEndpoints('fail', endpoint);
  const kind = KINDS.find((known) => known === what);
  const failure = kind === undefined ? { status: Number(what), times } : { kind, times };
  return { endpoint: endpoint === 'all' ? '*' : name, failure } as const;
}

async function serveFake(flags: FakeFlags, terminal: Terminal): Promise<void> {
  const { host, port, apiKey, play, speed, seed, quota, limit = [], webhookUrl } = flags;
  const { colours } = terminal;
  if ((apiKey?.length ?? 0) > MAX_KEYS) rejectFlag('api-key', `given at most ${MAX_KEYS} times`);
  const fake = createFakeTrackingService({
    ...(apiKey !== undefined && { apiKeys: apiKey }),
    play: play.filter((name) => name !== 'none'),
    speed,
    seed,
    limits: limit.includes('off') ? false : Object.assign({}, ...limit),
    latencyMs: flags.latency,
    plans: { perShipment: quota === undefined ? true : { quota }, perCall: flags.perCall ?? false },
    webhooks: webhookUrl !== undefined,
    historyLimit: HISTORY_LIMIT,
    onRequest: (request) => terminal.print(formatRequest(request, colours)),
  });
  for (const { endpoint, failure } of flags.fail ?? []) fake.fail(endpoint, failure);
  const server = await fake.listen({ host, port, control: true }).catch((error: unknown) => {
    throw explainListenFailure(error, host, port);
  });
  let stopSender = async () => {};
  if (webhookUrl !== undefined)
    stopSender = createWebhookSender({
      target: webhookUrl,
      fake,
      ...(flags.webhookSecret !== undefined && { secret: flags.webhookSecret }),
      duplicates: flags.duplicates,
      shuffle: flags.shuffle ?? false,
      seed,
      concurrency: CONCURRENT_PUSHES,
      until2xx: { maxAttempts: MAX_ATTEMPTS },
      onSent: (sent, pushes) => terminal.print(formatPush(sent, pushes, Date.now(), colours)),
    }).start();
  terminal.print(formatGreeting(server.url, flags, colours));
  await untilAborted(terminal.signal);
  await server.close();
  await Promise.race([stopSender(), sleep(STOP_GRACE_MS)]);
  terminal.print('Stopped.');
}

export function formatGreeting(url: string, flags: FakeFlags, colours: Colours): string {
  const { apiKey = [], webhookUrl, webhookSecret, speed } = flags;
  const plays = flags.play.filter((name) => name !== 'none');
  const keys = apiKey.length === 1 ? 'one key is' : `${apiKey.length} keys are`;
  const secret = webhookSecret === undefined ? 'without a secret' : 'with the secret';
  const pace = speed === 1 ? 'in real time' : `${speed} times faster than real time`;
  const play = `${plays.join(', then ')}, ${speed === Number.POSITIVE_INFINITY ? 'all at once' : pace}`;
  const key = apiKey.length === 0 ? 'any' : '$TRACKING_API_KEY';
  const hint = apiKey.length === 0 ? ' TRACKING_API_KEY=any' : '';
  return [
    colours.bold(`tracking-client fake ${VERSION}`),
    `  Base URL  ${colours.green(url)}`,
    `  API key   ${apiKey.length === 0 ? 'any key is' : keys} accepted`,
    `  Webhooks  ${webhookUrl === undefined ? 'none; --webhook-url sends them to your app' : `${webhookUrl}, ${secret}`}`,
    `  Play      ${plays.length === 0 ? 'none; events come from POST /__fake/events' : play}`,
    `  For apps  export TRACKING_BASE_URL=${url}${hint}`,
    `  By hand   curl -H "Authorization: Bearer ${key}" ${url}/couriers`,
    colours.dim('  Ctrl-C stops the service.'),
  ].join('\n');
}

function formatStatus(status: number | null, isGood: boolean, colours: Colours): string {
  if (status === null) return colours.red('no response');
  if (isGood) return colours.green(String(status));
  return (status < 500 ? colours.yellow : colours.red)(String(status));
}

function formatLine(atMs: number, what: string, text: string, end: string, colours: Colours): string {
  return `${formatClock(atMs, colours)} ${colours.bold(what.padEnd(6))} ${text} ${colours.dim('→')} ${end}`;
}

function describeBody(body: unknown): string | undefined {
  if (Array.isArray(body)) return body.length === 1 ? '1 item' : `${body.length} items`;
  const number: unknown = Object(body).trackingNumber;
  return typeof number === 'string' && /^[\w\-/.]{1,50}$/.test(number) ? number : undefined;
}

export function formatRequest(request: RecordedRequest, colours: Colours): string {
  const { method, path, query, body, receivedAtMs, status, failure, error } = request;
  const search = new URLSearchParams(query).toString();
  const note = describeBody(body);
  const text = plain(path) + (search && `?${search}`) + (note === undefined ? '' : ` ${colours.dim(note)}`);
  const isGood = status !== null && status < 300;
  const what = failure === undefined ? undefined : `(failure: ${failure})`;
  const why = error === undefined ? what : `${error.code}${error.message ? `: ${error.message}` : ''}`;
  const end = why === undefined ? '' : ` ${plain(why)}`;
  return formatLine(receivedAtMs, method, text, formatStatus(status, isGood, colours) + end, colours);
}

function describePush({ item }: QueuedPush): string {
  if (!('events' in item)) return 'proof of delivery';
  const [newest] = item.events;
  const milestone = plain(newest?.statusMilestone);
  const text = plain(newest?.status) || describeMilestone(milestone) || 'no status';
  return item.events.length > 1 ? `${text} (${item.events.length} events)` : text;
}

export function formatPush(
  { status, succeeded, attempt }: SentWebhook,
  pushes: readonly QueuedPush[],
  atMs: number,
  colours: Colours,
): string {
  const text = pushes.map((push) => {
    const resent = push.isReplay ? colours.dim(' (resent)') : '';
    return `${plain(push.item.tracker.trackingNumber)} ${describePush(push)}${resent}`;
  });
  const refusal = status !== null && status < 300 ? ', but its body has success: false' : '';
  const next = attempt >= MAX_ATTEMPTS ? 'given up' : `attempt ${attempt} of ${MAX_ATTEMPTS}`;
  const note = succeeded ? '' : colours.dim(`${refusal}, ${next}`);
  return formatLine(atMs, 'push', text.join(', '), formatStatus(status, succeeded, colours) + note, colours);
}
