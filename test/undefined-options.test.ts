// With `exactOptionalPropertyTypes`, an option may be undefined only if its type says so. Each test passes every option of a type as
// undefined, so the compiler checks the types, and the run shows that such an option counts as left out.
import { describe, expect, test } from 'vitest';
import type {
  BulkRequestOptions,
  CreateManyOptions,
  Hooks,
  LimiterOptions,
  PollManyOptions,
  PollOnceOptions,
  PollOptions,
  RawRequest,
  RequestOptions,
  RetryOptions,
  TrackerInput,
  TrackerListQuery,
  TrackerRequestOptions,
  TrackerToPoll,
  TrackerUpdate,
  TrackingClientOptions,
  TrackingSearchInput,
} from '../src/index.ts';
import { TokenBucketLimiter, TrackingClient } from '../src/index.ts';
import {
  observeRateLimits,
  type TelemetryOptions,
  telemetryHooks,
  webhookMetrics,
} from '../src/opentelemetry/index.ts';
import { PostgresDedupeStore, type PostgresDedupeStoreOptions } from '../src/postgres/index.ts';
import {
  RedisDedupeStore,
  type RedisDedupeStoreOptions,
  RedisLimiter,
  type RedisLimiterOptions,
} from '../src/redis/index.ts';
import {
  buildCourier,
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
  createFakeTrackingService,
  createWebhookSender,
  type Failure,
  type FakePlans,
  type FakeTrackingServiceOptions,
  type WebhookSenderOptions,
} from '../src/testing/index.ts';
import { type TrackingHandlersOptions, trackingHandlers } from '../src/testing/msw.ts';
import {
  createWebhookHandler,
  type InboxOptions,
  MemoryDedupeStore,
  type MemoryDedupeStoreOptions,
  type ProcessOptions,
  type WebhookHandlerOptions,
  WebhookInbox,
} from '../src/webhooks/index.ts';
import { ScriptedRedis } from './redis/limiter/make-redis-limiter.ts';

type OptionalNames<Options> = {
  [Name in keyof Options]-?: Record<never, never> extends Pick<Options, Name> ? Name : never;
}[keyof Options];

/** Every optional field as undefined. A field that is missing here does not compile. */
type Undefined<Options> = { readonly [Name in OptionalNames<Options>]-?: undefined };

const RETRY: Undefined<RetryOptions> = {
  retries: undefined,
  maxRetryAfterMs: undefined,
  maxBackoffMs: undefined,
};
const LIMITER: Undefined<LimiterOptions> = { limits: undefined, maxQueue: undefined };
const REQUEST: Undefined<RequestOptions> = {
  signal: undefined,
  timeoutMs: undefined,
  totalTimeoutMs: undefined,
  retry: undefined,
  headers: undefined,
  priority: undefined,
};
const TRACKER_REQUEST: Undefined<TrackerRequestOptions> = { ...REQUEST, searchBy: undefined };
const BULK: Undefined<BulkRequestOptions> = { ...REQUEST, retryAmbiguous: undefined };
const { priority: _, ...POLL_REQUEST } = TRACKER_REQUEST;
const POLL: Undefined<PollOptions> = {
  ...POLL_REQUEST,
  intervalMs: undefined,
  initialDelayMs: undefined,
  maxDurationMs: undefined,
  maxConsecutiveErrors: undefined,
  until: undefined,
  knownKeys: undefined,
};
const { knownKeys: _knownKeys, ...POLL_EACH } = POLL;
const POLL_MANY: Undefined<PollManyOptions> = {
  ...POLL_EACH,
  maxPerSecond: undefined,
  concurrency: undefined,
};
const POLL_ONCE: Undefined<PollOnceOptions> = { ...TRACKER_REQUEST, knownKeys: undefined };
const TO_POLL: Undefined<TrackerToPoll> = { knownKeys: undefined, initialDelayMs: undefined };
const CREATE_MANY: Undefined<CreateManyOptions> = {
  ...BULK,
  chunkSize: undefined,
  concurrency: undefined,
  onProgress: undefined,
};
const RAW: Undefined<RawRequest> = { query: undefined, body: undefined, idempotent: undefined };
const LIST: Undefined<TrackerListQuery> = { page: undefined, limit: undefined, sort: undefined };
const SEARCH: Undefined<TrackingSearchInput> = {
  courierCode: undefined,
  originCountryCode: undefined,
  destinationCountryCode: undefined,
  destinationPostCode: undefined,
  shippingDate: undefined,
};
const INPUT: Undefined<TrackerInput> = {
  ...SEARCH,
  clientTrackerId: undefined,
  shipmentReference: undefined,
  courierName: undefined,
  trackingUrl: undefined,
  orderNumber: undefined,
  title: undefined,
  recipient: undefined,
  settings: undefined,
};
const UPDATE: Undefined<Omit<TrackerUpdate, 'isSubscribed'>> = {
  ...SEARCH,
  courierName: undefined,
  trackingUrl: undefined,
  recipient: undefined,
};
const HOOKS: Undefined<Hooks> = {
  onStart: undefined,
  aroundAttempt: undefined,
  onRequest: undefined,
  onResponse: undefined,
  onError: undefined,
  onRetry: undefined,
  onRateLimit: undefined,
  onMismatch: undefined,
  onDone: undefined,
  onPoll: undefined,
  onPollError: undefined,
};
/** Without `baseUrl`, `apiKey` and `fetch`, which the tests need. */
const CLIENT: Omit<Undefined<TrackingClientOptions>, 'baseUrl' | 'apiKey' | 'fetch'> = {
  timeoutMs: undefined,
  totalTimeoutMs: undefined,
  retry: undefined,
  rateLimit: undefined,
  limiter: undefined,
  account: undefined,
  headers: undefined,
  logger: undefined,
  logLevel: undefined,
  hooks: undefined,
  invalidResponse: undefined,
  maxResponseBytes: undefined,
  allowInsecureHttp: undefined,
};
const INBOX: Undefined<InboxOptions> = {
  leaseMs: undefined,
  retainMs: undefined,
  maxAttempts: undefined,
  onDeadLetter: undefined,
  callbackTimeoutMs: undefined,
  onError: undefined,
  logger: undefined,
};
const PROCESS: Undefined<ProcessOptions> = {
  busyTimeoutMs: undefined,
  signal: undefined,
  receivedAt: undefined,
  account: undefined,
};
/** Without `onEvent`: one callback is required. */
const HANDLER: Omit<Undefined<WebhookHandlerOptions>, 'secret' | 'onEvent'> = {
  ...INBOX,
  inbox: undefined,
  store: undefined,
  maxBodyBytes: undefined,
  deadlineMs: undefined,
  onReport: undefined,
  onRefused: undefined,
  metrics: undefined,
  onEvents: undefined,
  onProofOfDelivery: undefined,
  onOther: undefined,
};
const MEMORY: Undefined<MemoryDedupeStoreOptions> = { maxKeys: undefined, now: undefined };
const REDIS_STORE: Undefined<RedisDedupeStoreOptions> = {
  keyPrefix: undefined,
  commandTimeoutMs: undefined,
};
const REDIS_LIMITER: Undefined<RedisLimiterOptions> = {
  ...LIMITER,
  keyPrefix: undefined,
  processes: undefined,
  commandTimeoutMs: undefined,
  onUnavailable: undefined,
  logger: undefined,
};
const POSTGRES: Undefined<PostgresDedupeStoreOptions> = { table: undefined, commandTimeoutMs: undefined };
const TELEMETRY: Undefined<TelemetryOptions> = {
  tracerProvider: undefined,
  meterProvider: undefined,
  attempts: undefined,
};
const FAKE: Undefined<FakeTrackingServiceOptions> = {
  seed: undefined,
  now: undefined,
  limits: undefined,
  limitWindow: undefined,
  apiKeys: undefined,
  plans: undefined,
  baseUrl: undefined,
  resultsDelayMs: undefined,
  noResults: undefined,
  latencyMs: undefined,
  webhooks: undefined,
  groupEvents: undefined,
  play: undefined,
  speed: undefined,
  historyLimit: undefined,
  onRequest: undefined,
};
const PLANS: Undefined<FakePlans> = { perShipment: undefined, perCall: undefined };
const LISTEN: Undefined<NonNullable<Parameters<ReturnType<typeof createFakeTrackingService>['listen']>[0]>> =
  {
    port: undefined,
    host: undefined,
    control: undefined,
  };
const STATUS_FAILURE: Undefined<Extract<Failure, { code?: unknown }>> = {
  code: undefined,
  message: undefined,
  retryAfterMs: undefined,
  headers: undefined,
  body: undefined,
  times: undefined,
};
const KIND_FAILURE: Undefined<Extract<Failure, { kind: unknown }>> = { status: undefined, times: undefined };
const SENDER: Undefined<WebhookSenderOptions> = {
  secret: undefined,
  duplicates: undefined,
  shuffle: undefined,
  seed: undefined,
  concurrency: undefined,
  until2xx: undefined,
  itemsPerRequest: undefined,
  timeoutMs: undefined,
  onSent: undefined,
};
const HANDLERS: Undefined<TrackingHandlersOptions> = { baseUrl: undefined };

const trackingNumber = 'RR123456785CN';
const item = { trackingNumber };

/** A client of a fake service that has one tracker with results. */
async function setUp() {
  const fake = createFakeTrackingService({ ...FAKE, resultsDelayMs: 0, plans: { perCall: true } });
  const { baseUrl, apiKey, fetch } = fake;
  const client = new TrackingClient({ ...CLIENT, baseUrl, apiKey, fetch });
  const { trackerId } = await client.trackers.create({ ...INPUT, trackingNumber }, REQUEST);
  return { fake, client, trackerId };
}

describe('every option and field as undefined → as if it were left out', () => {
  test('requests of a client', async () => {
    const { client, trackerId } = await setUp();
    const calls: Promise<unknown>[] = [
      client.trackers.list(LIST, REQUEST),
      client.trackers.track({ ...INPUT, trackingNumber }, REQUEST),
      client.trackers.get(trackerId, TRACKER_REQUEST),
      client.trackers.update(trackerId, { ...UPDATE, isSubscribed: true }, TRACKER_REQUEST),
      client.trackers.results(trackerId, TRACKER_REQUEST),
      client.trackers.resultsByTrackingNumber(trackingNumber, REQUEST),
      client.trackers.resendWebhookEvents(trackerId, TRACKER_REQUEST),
      client.trackers.webhookHistory(trackerId, TRACKER_REQUEST),
      client.trackers.createBulk([item], BULK),
      client.tracking.search({ ...SEARCH, trackingNumber }, REQUEST),
      client.couriers.list(REQUEST),
      client.request({ ...RAW, ...REQUEST, method: 'GET', path: '/trackers' }),
    ];
    await expect(Promise.all(calls)).resolves.toHaveLength(calls.length);
  });

  test('streams of a client', async () => {
    const { fake, client, trackerId } = await setUp();
    for await (const tracker of client.trackers.listAll({ limit: undefined, sort: undefined }, REQUEST))
      expect(tracker.trackerId).toBe(trackerId);
    for await (const outcome of client.trackers.createMany([item], CREATE_MANY))
      expect(outcome.status).toBe('existing');
    expect(await client.trackers.pollOnce(trackerId, POLL_ONCE)).toMatchObject({ stopped: false });
    fake.shipment(trackingNumber).deliver().stopTracking();
    const soon = { initialDelayMs: 0 };
    for await (const { stopped } of client.trackers.poll(trackerId, { ...POLL, ...soon }))
      expect(stopped).toBe(true);
    const ids = [{ ...TO_POLL, id: trackerId }];
    for await (const update of client.trackers.pollMany(ids, { ...POLL_MANY, ...soon }))
      expect(update.id).toBe(trackerId);
    expect(await client.trackers.waitUntilStopped(trackerId, { ...POLL, ...soon })).toHaveProperty('events');
  });

  test('options within options of a client, and withOptions', async () => {
    const { fake } = await setUp();
    const { baseUrl, apiKey, fetch } = fake;
    const inner = {
      retry: RETRY,
      rateLimit: { ...LIMITER, limits: { 'couriers.list': undefined } },
      hooks: HOOKS,
    };
    const client = new TrackingClient({ ...CLIENT, ...inner, baseUrl, apiKey, fetch });
    const { rateLimit: _rateLimit, limiter: _limiter, ...changes } = CLIENT;
    const changed = client.withOptions({
      ...changes,
      baseUrl: undefined,
      apiKey: undefined,
      fetch: undefined,
    });
    expect(await changed.couriers.list({ ...REQUEST, retry: RETRY })).not.toEqual([]);
    expect(new TokenBucketLimiter({ ...LIMITER, limits: { 'couriers.list': undefined } })).toBeDefined();
  });

  test('a webhook handler, an inbox and a store in memory', async () => {
    const store = new MemoryDedupeStore(MEMORY);
    const onEvent = () => {};
    const handler = createWebhookHandler({ ...HANDLER, secret: false, onEvent });
    const body = JSON.stringify({ trackings: [buildWebhookMessage({}, { seed: undefined })] });
    const headers = { 'content-type': 'application/json' };
    const response = await handler(new Request('http://host.test', { method: 'POST', headers, body }));
    expect(response.status).toBe(200);
    await handler.close({ timeoutMs: undefined });
    const inbox = new WebhookInbox({ ...INBOX, store });
    const callbacks = { onEvent, onEvents: undefined, onProofOfDelivery: undefined, onOther: undefined };
    expect(await inbox.process(body, callbacks, PROCESS)).toMatchObject({ outcome: 'done' });
    expect(createWebhookHandler({ ...HANDLER, inbox, secret: false, onEvent })).toBeTypeOf('function');
  });

  test('limiter and stores of Redis and PostgreSQL', () => {
    const redis = new ScriptedRedis();
    const pool = { query: async () => ({ rows: [], rowCount: 0 }) };
    expect(new RedisLimiter({ ...REDIS_LIMITER, redis })).toBeDefined();
    expect(new RedisDedupeStore({ ...REDIS_STORE, redis })).toBeDefined();
    expect(new PostgresDedupeStore({ ...POSTGRES, pool })).toBeDefined();
  });

  test('telemetry', async () => {
    const { client } = await setUp();
    expect(telemetryHooks(TELEMETRY)).toHaveProperty('onStart');
    expect(webhookMetrics(TELEMETRY)).toHaveProperty('recordReport');
    expect(observeRateLimits(client, TELEMETRY)).toBeTypeOf('function');
  });

  test('the fake service', async () => {
    const nested = {
      plans: { ...PLANS, perShipment: { quota: undefined }, perCall: { quota: undefined } },
      limits: { 'couriers.list': undefined },
    };
    const fake = createFakeTrackingService({ ...FAKE, ...nested });
    expect(createFakeTrackingService({ ...FAKE, plans: PLANS }).apiKey).toBe(fake.apiKey);
    fake.couriers.push({ ...buildCourier({}, { seed: undefined }), supportsSynchronousFetch: undefined });
    fake.play(trackingNumber, 'delivered', { speed: undefined });
    fake.fail('*', { ...STATUS_FAILURE, status: 429 }).cancel();
    fake.fail('*', { ...KIND_FAILURE, kind: 'reset' }).cancel();
    expect(trackingHandlers(fake, HANDLERS)).not.toEqual([]);
    const server = await fake.listen(LISTEN);
    expect(server.url).toContain('http://127.0.0.1:');
    await server.close();
  });

  test('the sender of webhooks', async () => {
    const { fake } = await setUp();
    fake.shipment(trackingNumber).addEvent();
    const target = () => new Response();
    expect(await createWebhookSender({ ...SENDER, target, fake }).flush()).toMatchObject({ accepted: 1 });
    const again = { maxAttempts: undefined, speed: undefined };
    const sender = createWebhookSender({ ...SENDER, target, fake, until2xx: again });
    await sender.start({ everyMs: undefined })();
  });

  test.each([
    buildCourier,
    buildEvent,
    buildProofOfDelivery,
    buildTracker,
    buildTracking,
    buildWebhookMessage,
  ])('$name', (build) => {
    expect(build({}, { seed: undefined })).toEqual(build());
    expect(build(undefined, undefined)).toEqual(build());
  });
});

describe('undefined for what is required → does not compile, and throws', () => {
  const redis = undefined;
  const target = undefined;
  const store = undefined;
  const fake = undefined;
  const { fetch, webhooks } = createFakeTrackingService();

  test.each<[string, () => unknown]>([
    // @ts-expect-error -- required
    ['redis of RedisLimiter', () => new RedisLimiter({ redis })],
    // @ts-expect-error -- required
    ['redis of RedisDedupeStore', () => new RedisDedupeStore({ redis })],
    // @ts-expect-error -- required
    ['pool of PostgresDedupeStore', () => new PostgresDedupeStore({ pool: undefined })],
    // @ts-expect-error -- required
    ['store of WebhookInbox', () => new WebhookInbox({ store })],
    // @ts-expect-error -- required
    ['target of createWebhookSender', () => createWebhookSender({ target, fake: { webhooks } })],
    // @ts-expect-error -- required
    ['fake of createWebhookSender', () => createWebhookSender({ target: 'http://a.test', fake })],
    // @ts-expect-error -- required
    ['status of a failure', () => createFakeTrackingService().fail('*', { status: undefined })],
    // @ts-expect-error -- required
    ['kind of a failure', () => createFakeTrackingService().fail('*', { kind: undefined })],
    // @ts-expect-error -- a header has a value
    ['a header', () => new TrackingClient({ fetch, headers: { 'x-a': undefined } })],
  ])('%s', (_what, make) => {
    expect(make).toThrow(expect.objectContaining({ name: 'ConfigurationError' }));
  });
});

test('every option of an inbox beside `inbox` → does not compile, and throws', () => {
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
  const given = { secret: 'whsec-0123456789', inbox, onEvent: () => {} };
  const refused: (() => unknown)[] = [
    // @ts-expect-error -- the inbox has it
    () => createWebhookHandler({ ...given, store: new MemoryDedupeStore() }),
    // @ts-expect-error -- the inbox has it
    () => createWebhookHandler({ ...given, leaseMs: 60_000 }),
    // @ts-expect-error -- the inbox has it
    () => createWebhookHandler({ ...given, retainMs: 604_800_000 }),
    // @ts-expect-error -- the inbox has it
    () => createWebhookHandler({ ...given, maxAttempts: 3 }),
    // @ts-expect-error -- the inbox has it
    () => createWebhookHandler({ ...given, onDeadLetter: () => {} }),
    // @ts-expect-error -- the inbox has it
    () => createWebhookHandler({ ...given, callbackTimeoutMs: 1_000 }),
    // @ts-expect-error -- the inbox has it
    () => createWebhookHandler({ ...given, onError: () => {} }),
  ];
  for (const make of refused) expect(make).toThrow('is an option of the inbox');
  expect(createWebhookHandler({ ...given, logger: console })).toBeTypeOf('function');
});
