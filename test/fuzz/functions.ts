import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { TrackingError } from '../../src/errors.ts';
import * as events from '../../src/events/index.ts';
import * as root from '../../src/index.ts';
import * as opentelemetry from '../../src/opentelemetry/index.ts';
import * as postgres from '../../src/postgres/index.ts';
import * as redis from '../../src/redis/index.ts';
import { buildTracking } from '../../src/testing/index.ts';
import * as webhooks from '../../src/webhooks/index.ts';
import { buildPayload, SECRET } from '../integration/webhook-loopback.ts';
import { anyText } from '../support/any-text.ts';
import { CALLS, EVERY_CALL } from '../support/calls.ts';
import { API_KEY, BASE_URL } from '../support/make-client.ts';
import { must, printed, property } from './harness.ts';

const REASON = new Error('the reason of a signal');
const FAILURE = new Error('a callback that fails');
const fails = () => {
  throw FAILURE;
};
const rejects = async () => fails();
const nothing = () => undefined;
const identity = (value: unknown): unknown => value;

type Options = Readonly<Record<string, unknown>>;

/** A public function with valid options; a run breaks some of the options and calls the function with them. */
interface Target {
  readonly options: Options;
  readonly run: (broken: unknown) => unknown;
}

/** Makes an object with the options and uses it. */
function construct<T>(
  type: new (...values: never[]) => T,
  options: Options,
  use: (made: T) => unknown = identity,
): Target {
  return { options, run: (broken) => use(Reflect.construct(type, [broken])) };
}

/** Calls a function with the options, as a program without types does, and uses the result. */
function apply<T>(
  target: (...values: never[]) => T,
  options: Options = {},
  use: (result: T) => unknown = identity,
): Target {
  return { options, run: (broken) => use(Reflect.apply(target, undefined, [broken])) };
}

/** Calls a method of `trackers` with the values of `before` and the options, and uses the result. */
function callTrackers(name: string, options: Options = {}, use = identity, ...before: unknown[]): Target {
  return { options, run: (broken) => use(call(createClient().trackers, name, ...before, broken)) };
}

function createClient(): root.TrackingClient {
  const fetch = async (input: RequestInfo | URL) => {
    const { pathname } = new URL(new Request(input).url);
    if (pathname.endsWith('/results')) return Response.json(CALLS['trackers.results'].response);
    return Response.json(CALLS[pathname.endsWith('bulk') ? 'trackers.createBulk' : 'trackers.list'].response);
  };
  return new root.TrackingClient({ ...CLIENT, fetch });
}

/** Calls a method as a program without types does. */
function call(holder: object, name: string, ...values: unknown[]): unknown {
  return Reflect.apply(Reflect.get(holder, name), holder, values);
}

/** Reads the first items of a stream and leaves it, as a `break` does. */
async function readSome(items: unknown): Promise<void> {
  const stream = Object(items)[Symbol.asyncIterator]();
  const timer = new AbortController();
  const end = wait(80, undefined, { signal: timer.signal }).catch(nothing);
  try {
    for (let count = 0; count < 3; count += 1) {
      const next = await Promise.race([stream.next(), end]);
      if (next === undefined || next.done) break;
    }
  } finally {
    timer.abort();
    await stream.return();
  }
}

/** Turns a value into the record that a JSON body with this value would be parsed to. */
function toRecord(value: unknown): object {
  try {
    return Object(JSON.parse(JSON.stringify(value)));
  } catch {
    return {};
  }
}

async function receive(handler: webhooks.WebhookHandler): Promise<void> {
  const headers = { authorization: `Bearer ${SECRET}` };
  const request = new Request('http://receiver.test/', {
    method: 'POST',
    body: buildPayload('e-1'),
    headers,
  });
  must((await handler(request)) instanceof Response, () => 'responded with no Response');
  await handler.close();
}

const NOW = '2026-03-04T17:12:57.000Z';
const DELIVERY = {
  courierEstimatedDeliveryDate: { from: NOW, to: NOW },
  estimatedDeliveryDate: '2026-03-06',
};
const CALL = { timeoutMs: 50, totalTimeoutMs: 50, retry: { retries: 0 }, headers: { 'x-a': 'b' } };
const CLIENT = { baseUrl: BASE_URL, apiKey: API_KEY, ...CALL, rateLimit: false, logLevel: 'silent' } as const;
const POLL = { ...CALL, intervalMs: () => 1000, initialDelayMs: 0, maxDurationMs: 60, until: () => true };
const MANY = { ...POLL, maxPerSecond: 10, concurrency: 1 };
const IMPORT = { ...CALL, chunkSize: 1, concurrency: 1, onProgress: fails };
const CALLBACKS = { onEvent: nothing, onProofOfDelivery: nothing, onOther: fails };
const STORE = { claim: rejects, commit: rejects, release: rejects };
const INBOX = { store: STORE, leaseMs: 60_000, maxAttempts: 1, onDeadLetter: fails, onError: rejects };
const REPORTS = { onError: nothing, onReport: fails };
const HANDLER = { ...CALLBACKS, ...REPORTS, secret: SECRET, store: STORE, deadlineMs: 50 };
const BROKEN_POOL = { query: rejects, connect: rejects };
const BROKEN_REDIS = {
  sendCommand: rejects,
  evalSha: rejects,
  eval: rejects,
  call: rejects,
  evalsha: rejects,
};
const EVENT = { occurrenceDatetime: '2021-03-04', order: 1, eventId: 'a' };
const INPUT = { trackingNumber: 'LA680658838NL', shippingDate: '2999-01-01', recipient: { email: 'a@b' } };

const METHODS: Record<string, Target> = Object.fromEntries(
  EVERY_CALL.map(([name, sample]) => [
    `TrackingClient.${name}`,
    // Sound: the run checks how the function treats options of any type.
    { options: CALL, run: (broken) => sample.call(createClient(), broken as root.RequestOptions) },
  ]),
);
/** Every public function but the testing kit, by the name of its export and of its method. */
const TARGETS: Record<string, Target> = {
  ...METHODS,
  TrackingClient: construct(
    root.TrackingClient,
    { ...CLIENT, fetch: fails, hooks: { onRequest: fails }, logger: console, maxResponseBytes: 10 },
    async (client) => await client.couriers.list(),
  ),
  'TrackingClient.withOptions': {
    options: CLIENT,
    run: (broken) => call(createClient(), 'withOptions', broken),
  },
  'TrackingClient.request': {
    options: { method: 'POST', path: '/couriers', query: { a: 1 }, body: { a: 1 }, ...CALL },
    run: (broken) => call(createClient(), 'request', broken),
  },
  'TrackingClient.create input': callTrackers('create', INPUT),
  'TrackingClient.get id': callTrackers('get'),
  'TrackingClient.createBulk input': callTrackers('createBulk'),
  'TrackingClient.listAll': callTrackers('listAll', { ...CALL, limit: 1, sort: 1 }, readSome),
  'TrackingClient.pollOnce': callTrackers('pollOnce', { ...CALL, knownKeys: ['a'] }, undefined, 't-1'),
  'TrackingClient.resultsMany': callTrackers('resultsMany', { ...CALL, concurrency: 1 }, readSome, [
    't-1',
    't-2',
  ]),
  'TrackingClient.resultsMany ids': callTrackers('resultsMany', {}, readSome),
  'TrackingClient.pollMany': callTrackers('pollMany', MANY, readSome, ['t-1', 't-2']),
  'TrackingClient.pollMany ids': apply(
    (broken) => call(createClient().trackers, 'pollMany', broken, { maxDurationMs: 60 }),
    {},
    readSome,
  ),
  'TrackingClient.waitUntilStopped': {
    options: POLL,
    run: (broken) =>
      call(createClient().trackers, 'waitUntilStopped', 't-1', { maxDurationMs: 60, ...Object(broken) }),
  },
  'TrackingClient.createMany': callTrackers('createMany', IMPORT, readSome, [INPUT]),
  'TrackingClient.createMany inputs': callTrackers('createMany', {}, readSome),
  TokenBucketLimiter: construct(root.TokenBucketLimiter, { maxQueue: 1 }),
  isTrackingError: apply(root.isTrackingError),
  RedisLimiter: construct(redis.RedisLimiter, {
    redis: BROKEN_REDIS,
    keyPrefix: 'a:',
    processes: 1,
    commandTimeoutMs: 5,
    logger: console,
  }),
  RedisDedupeStore: construct(redis.RedisDedupeStore, { redis: BROKEN_REDIS, keyPrefix: 'a:' }),
  PostgresDedupeStore: construct(postgres.PostgresDedupeStore, { pool: BROKEN_POOL, table: 'a.b' }),
  inboxTableSql: apply(postgres.inboxTableSql),
  createWebhookHandler: apply(webhooks.createWebhookHandler, HANDLER, receive),
  toNodeHandler: apply(webhooks.toNodeHandler),
  WebhookInbox: construct(webhooks.WebhookInbox, INBOX, (inbox) =>
    inbox.process(buildPayload('e-1'), CALLBACKS),
  ),
  'WebhookInbox.process callbacks': apply((broken) => {
    const inbox = new webhooks.WebhookInbox({ store: new webhooks.MemoryDedupeStore(), onError: nothing });
    return inbox.process(buildPayload('e-1'), broken);
  }, CALLBACKS),
  'WebhookInbox.processResults': apply(
    (broken: root.Tracking) => {
      const inbox = new webhooks.WebhookInbox({ store: new webhooks.MemoryDedupeStore(), onError: nothing });
      return inbox.processResults(broken, CALLBACKS);
    },
    { ...buildTracking() },
  ),
  MemoryDedupeStore: construct(webhooks.MemoryDedupeStore, { maxKeys: 1, now: () => 0 }),
  parseWebhook: apply(webhooks.parseWebhook, { trackings: [[]], trackerId: 'a', events: [{}] }),
  buildEventKey: apply((broken) => webhooks.buildEventKey({ trackerId: 't' }, toRecord(broken)), EVENT),
  parseOccurrenceDatetime: apply((broken) => events.parseOccurrenceDatetime(printed(broken))),
  sortEvents: apply((broken) => events.sortEvents([toRecord(broken), {}]), EVENT),
  isNewerEvent: apply((broken) => events.isNewerEvent(toRecord(broken), {}), EVENT),
  latestEvent: apply((broken) => events.latestEvent([toRecord(broken)]), EVENT),
  courierOf: apply((broken) => events.courierOf({ events: [toRecord(broken)] }), EVENT),
  daysInTransit: apply((broken) => events.daysInTransit({ events: [toRecord(broken), {}] }), EVENT),
  deliveryEstimate: apply((broken) => events.deliveryEstimate({ delivery: toRecord(broken) }), DELIVERY),
  describeMilestone: apply((broken) => events.describeMilestone(printed(broken))),
  advanceStatus: apply(
    (broken) => events.advanceStatus(undefined, { tracking: toRecord(broken), readAt: NOW }),
    { shipment: { statusMilestone: 'delivered' }, statistics: { timestamps: {} }, events: [EVENT] },
  ),
  telemetryHooks: apply(opentelemetry.telemetryHooks, { tracerProvider: {}, meterProvider: {} }),
  observeRateLimits: {
    options: { meterProvider: {} },
    run: (broken) => call(opentelemetry, 'observeRateLimits', createClient(), broken),
  },
  webhookMetrics: apply(opentelemetry.webhookMetrics, { meterProvider: {} }),
};

/** The exported functions that no target calls. Errors are made by this package only. */
function findForgotten(): string[] {
  const targets = new Set(Object.keys(TARGETS).map((name) => name.replace(/\W.*/, '')));
  const exported = [root, webhooks, redis, postgres, opentelemetry].flatMap((entry) => Object.entries(entry));
  const isInternal = (value: object) => Object(value).prototype instanceof Error;
  return exported.flatMap(([name, value]) =>
    typeof value === 'function' && !isInternal(value) && !targets.has(name) ? [name] : [],
  );
}

/** Values that no option expects. */
const junk = fc.oneof(
  fc.constantFrom<unknown>(
    ...[null, undefined, Number.NaN, Number.POSITIVE_INFINITY, -1, 0, -0, 0.5, 1, 2 ** 31, 2 ** 53],
    ...['', ' ', '1', 'false', API_KEY, [API_KEY], `${API_KEY}\n`, `https://${API_KEY}@example.test`],
    ...[Symbol('s'), nothing, fails, rejects, () => API_KEY, Object.create(null), { a: API_KEY }],
    ...[new Date(Number.NaN), new URL(BASE_URL), [[]], { length: 1e9 }, AbortSignal.abort(REASON)],
  ),
  fc.anything({ maxDepth: 1, maxKeys: 2, withBigInt: true, withMap: true, withNullPrototype: true }),
  anyText({ maxLength: 10 }),
);

/** Valid options with a few replaced, left out or added; seldom no options at all. */
function breakOptions(options: Target['options']): fc.Arbitrary<unknown> {
  const names = [...Object.keys(options), 'signal', 'account', 'searchBy', 'unknown'];
  const changes = fc.dictionary(fc.constantFrom(...names), junk, { maxKeys: 2 });
  const changed = changes.map((some) => ({ ...options, ...some }));
  return fc.oneof({ weight: 4, arbitrary: changed }, { weight: 1, arbitrary: junk });
}

const invocation = fc
  .constantFrom(...Object.entries(TARGETS))
  .chain(([name, { options, run }]) =>
    fc.record({ name: fc.constant(name), broken: breakOptions(options), run: fc.constant(run) }),
  );

/** True if the key stands in another option and `apiKey` is another key, so that nothing knows what to hide. */
function isKeyUnknown(broken: unknown): boolean {
  const { apiKey = API_KEY, ...others } = Object(broken);
  return apiKey !== API_KEY && printed(Object.values(others)).includes(API_KEY);
}

const CONSOLE = ['debug', 'log', 'info', 'warn', 'error'] as const;
const SLACK_MS = 10_000;

/** Any options and arguments make every public function return a result or throw a typed error that hides the key. */
export const functions = property('functions', 1_000, invocation, async () => {
  const forgotten = findForgotten();
  must(forgotten.length === 0, () => `no target calls ${forgotten.join(', ')}`);
  const seen: unknown[] = [];
  const originals = CONSOLE.map((method) => [method, console[method]] as const);
  for (const method of CONSOLE) console[method] = (...what: unknown[]) => void seen.push(what);
  return {
    async check({ name, broken, run }) {
      seen.length = 0;
      const startedAt = performance.now();
      let error: unknown;
      try {
        await run(broken);
      } catch (thrown) {
        error = thrown;
        const isExpected = error instanceof TrackingError || error === REASON || error === FAILURE;
        must(isExpected, () => `no typed error: ${printed(error)}`);
      }
      must(performance.now() - startedAt < SLACK_MS, () => `took ${performance.now() - startedAt} ms`);
      // These two quote the name of a table, and know no key.
      if (name !== 'PostgresDedupeStore' && name !== 'inboxTableSql' && !isKeyUnknown(broken))
        must(!printed([error, seen]).includes(API_KEY), () => `shows the key: ${printed([error, seen])}`);
    },
    async stop() {
      for (const [method, original] of originals) console[method] = original;
    },
  };
});
