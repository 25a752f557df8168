// Every public function, and what its options may be.
import { setTimeout as wait } from 'node:timers/promises';
import { inspect } from 'node:util';
import * as root from '../../src/index.ts';
import * as opentelemetry from '../../src/opentelemetry/index.ts';
import * as postgres from '../../src/postgres/index.ts';
import * as redis from '../../src/redis/index.ts';
import * as testing from '../../src/testing/index.ts';
import { trackingHandlers } from '../../src/testing/msw.ts';
import * as webhooks from '../../src/webhooks/index.ts';
import { payloadOf, SECRET } from '../integration/webhook-loopback.ts';
import { CALLS, EVERY_CALL } from '../support/calls.ts';
import { API_KEY, BASE_URL } from '../support/make-client.ts';
import { must } from './must.ts';

export const REASON = new Error('the signal of the caller');
export const OWN = new Error('a callback that fails');
export const throws = () => {
  throw OWN;
};
export const nothing = () => undefined;
const answerWith = (body: unknown) => async () => Response.json(body);

/** Values by the name of an option; the first is the one for an option that is required. */
export type Options = Readonly<Record<string, readonly unknown[]>>;

const CALL: Options = {
  signal: [undefined, new AbortController().signal, AbortSignal.abort(REASON)],
  timeoutMs: [50, 1, 0.5],
  totalTimeoutMs: [undefined, 50, 1],
  retry: [false, { retries: 1 }, { maxRetryAfterMs: 0 }, { retires: 1 }, { retries: API_KEY }],
  headers: [
    undefined,
    { 'x-a': 'b' },
    { authorization: API_KEY },
    { 'bad name': API_KEY },
    { a: `${API_KEY}\n` },
  ],
  priority: ['interactive', 'background'],
  searchBy: ['trackerId', 'clientTrackerId'],
  retryAmbiguous: [true, false],
};
const POLL: Options = {
  ...CALL,
  intervalMs: [20, () => 20, throws, () => API_KEY],
  initialDelayMs: [0, 5],
  maxDurationMs: [60],
  maxConsecutiveErrors: [0, 1],
  until: [() => true, throws, nothing],
  maxPerSecond: [10, 0.5],
  concurrency: [1, 3],
};
const CLIENT: Options = {
  baseUrl: [
    BASE_URL,
    new URL(BASE_URL),
    'http://example.test',
    `https://${API_KEY}@example.test`,
    '//a',
    'ftp://a',
  ],
  apiKey: [API_KEY, () => API_KEY, throws, () => `${API_KEY}\n`, `${API_KEY}"`],
  fetch: [
    answerWith(CALLS['couriers.list'].answer),
    throws,
    nothing,
    async () => API_KEY,
    async () => ({ status: 200 }),
  ],
  timeoutMs: CALL['timeoutMs'] ?? [],
  totalTimeoutMs: [50, 1],
  retry: CALL['retry'] ?? [],
  rateLimit: [
    false,
    { limits: { 'couriers.list': 1 } },
    { maxQueue: 0 },
    { maxQueue: -1 },
    { limits: { other: 1 } },
  ],
  limiter: [undefined, new root.TokenBucketLimiter(), { acquire: nothing }],
  account: [undefined, 'shop', ''],
  headers: CALL['headers'] ?? [],
  logger: [console, { debug: throws, info: throws, warn: throws, error: throws }, { debug: nothing }],
  logLevel: ['silent', 'debug', 'verbose'],
  hooks: [
    opentelemetry.telemetryHooks(),
    { onRequest: throws },
    { onResponse: API_KEY },
    { onRetry: async () => throws() },
  ],
  invalidResponse: ['keep', 'throw', 'ignore'],
  maxResponseBytes: [1, 1_000, Number.POSITIVE_INFINITY],
  allowInsecureHttp: [true],
};
const LIMITER: Options = {
  maxQueue: [0, 1, Number.POSITIVE_INFINITY],
  clock: [undefined, { now: nothing }],
};
const rejects = async () => throws();
const brokenRedis = {
  isReady: true,
  sendCommand: rejects,
  evalSha: rejects,
  eval: rejects,
  call: rejects,
  evalsha: rejects,
};
const brokenPool = { query: rejects, connect: rejects };
const STORE = { claim: rejects, commit: rejects, release: rejects };
const CALLBACKS: Options = {
  handler: [nothing, throws, rejects],
  onEvents: [undefined, nothing],
  onProofOfDelivery: [nothing],
  onOther: [throws],
};
const INBOX: Options = {
  store: [
    new webhooks.MemoryDedupeStore(),
    STORE,
    { claim: async () => [], commit: nothing, release: nothing },
  ],
  leaseMs: [60_000, 1],
  retainMs: [604_800_000],
  maxAttempts: [undefined, 1],
  onDeadLetter: [nothing, throws],
  busyTimeoutMs: [0, 5],
  callbackTimeoutMs: [50],
  onError: [nothing, throws, rejects],
};

const stub = () =>
  new root.TrackingClient({
    baseUrl: BASE_URL,
    apiKey: API_KEY,
    rateLimit: false,
    retry: false,
    logLevel: 'silent',
    fetch: async (input) => {
      const path = new URL(new Request(input).url).pathname;
      return Response.json(
        CALLS[
          path.endsWith('/results')
            ? 'trackers.results'
            : path.endsWith('bulk')
              ? 'trackers.createBulk'
              : 'trackers.list'
        ].answer,
      );
    },
  });
const ids = ['t-1', 't-2'];
const inputs = [{ trackingNumber: 'LA680658838NL' }];
const request = () =>
  new Request('http://receiver.test/', {
    method: 'POST',
    body: payloadOf('e-1'),
    headers: { authorization: `Bearer ${SECRET}` },
  });

/** Reads a little of a stream, and leaves it as a `break` does. */
async function readSome(given: unknown): Promise<void> {
  const stream = Object(given)[Symbol.asyncIterator]();
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

/** Calls as a program without types does. */
const call = (holder: object, name: string, ...given: unknown[]): unknown =>
  Reflect.apply(Reflect.get(holder, name), holder, given);

/** A record as JSON can bring it. */
function asRecord(given: unknown): object {
  try {
    return Object(JSON.parse(JSON.stringify(given)));
  } catch {
    return {};
  }
}

interface Entry {
  readonly options: Options;
  readonly run: (given: unknown) => unknown;
}
const entry = (options: Options, run: Entry['run']): Entry => ({ options, run });

const HANDLER: Options = {
  ...CALLBACKS,
  secret: [SECRET, [SECRET], ' a ', [], false],
  inbox: [
    new webhooks.WebhookInbox({ store: new webhooks.MemoryDedupeStore(), onError: nothing }),
    { process: rejects },
    { process: nothing },
  ],
  maxBodyBytes: [10, 1_000],
  deadlineMs: [50],
  onReport: [throws, rejects],
  onRefused: [nothing, throws],
};
async function receiveWith(create: typeof webhooks.createWebhookHandler, given: unknown) {
  const handler: webhooks.WebhookHandler = Reflect.apply(create, undefined, [given]);
  const response = await handler(request());
  must(response instanceof Response, () => `answered with ${inspect(response)}`);
  await handler.close();
}

/** Every public function, by the name of its export and of its method. */
export const FUNCTIONS: Readonly<Record<string, Entry>> = {
  TrackingClient: entry(CLIENT, async (given) => {
    const client = Reflect.construct(root.TrackingClient, [given]);
    client.rateLimits();
    await client.couriers.list();
  }),
  'TrackingClient.withOptions': entry(CLIENT, (given) => call(stub(), 'withOptions', given)),
  'TrackingClient.request': entry(
    {
      method: ['GET', 'POST', 'get'],
      path: ['/couriers', '//a', '/../x', `/${API_KEY} `],
      query: [{ a: 1 }, { a: {} }, { a: Object.create(null) }, { a: Symbol('a') }],
      body: [undefined, { a: 1 }, 1n],
      schema: [undefined, root.trackerSchema],
      idempotent: [true],
      ...CALL,
    },
    (given) => call(stub(), 'request', given),
  ),
  ...Object.fromEntries(
    EVERY_CALL.map(([name, sample]) => [
      `TrackingClient.${name}`,
      // Sound: that the options may be anything is what is tried.
      entry(name === 'trackers.list' ? { ...CALL, page: [1], limit: [500], sort: [-1] } : CALL, (given) =>
        sample.call(stub(), given as root.RequestOptions),
      ),
    ]),
  ),
  'TrackingClient.trackers.create input': entry(
    {
      trackingNumber: ['LA680658838NL', API_KEY],
      courierCode: ['a', ['a']],
      shippingDate: ['2026-11-20', '9999-99-99'],
      recipient: [{ email: 'a@b' }],
      settings: [{ restrictTrackingToCourierCode: true }],
      originCountryCode: ['FR'],
      toJSON: [throws],
    },
    (given) => call(stub().trackers, 'create', given),
  ),
  'TrackingClient.trackers.get id': entry({}, (given) => call(stub().trackers, 'get', given)),
  'TrackingClient.trackers.createBulk input': entry({}, (given) =>
    call(stub().trackers, 'createBulk', given),
  ),
  'TrackingClient.trackers.update patch': entry({ isSubscribed: [true] }, (given) =>
    call(stub().trackers, 'update', 't-1', given),
  ),
  'TrackingClient.tracking.search input': entry({ trackingNumber: ['LA680658838NL'] }, (given) =>
    call(stub().tracking, 'search', given),
  ),
  'TrackingClient.trackers.listAll': entry({ ...CALL, limit: [1], sort: [1] }, (given) =>
    readSome(call(stub().trackers, 'listAll', given)),
  ),
  'TrackingClient.trackers.poll': entry(POLL, (given) =>
    readSome(call(stub().trackers, 'poll', 't-1', given)),
  ),
  'TrackingClient.trackers.pollMany': entry(POLL, (given) =>
    readSome(call(stub().trackers, 'pollMany', ids, given)),
  ),
  'TrackingClient.trackers.pollMany ids': entry({}, (given) =>
    readSome(call(stub().trackers, 'pollMany', given, { maxDurationMs: 60 })),
  ),
  'TrackingClient.trackers.waitUntilStopped': entry(POLL, (given) =>
    call(stub().trackers, 'waitUntilStopped', 't-1', { maxDurationMs: 60, ...Object(given) }),
  ),
  'TrackingClient.trackers.createMany': entry(
    { ...CALL, chunkSize: [1, 100], concurrency: [1], onProgress: [nothing, throws] },
    (given) => readSome(call(stub().trackers, 'createMany', inputs, given)),
  ),
  'TrackingClient.trackers.createMany inputs': entry({}, (given) =>
    readSome(call(stub().trackers, 'createMany', given)),
  ),
  TokenBucketLimiter: entry(LIMITER, (given) => Reflect.construct(root.TokenBucketLimiter, [given])),
  isTrackingError: entry({}, root.isTrackingError),
  RedisLimiter: entry(
    {
      ...LIMITER,
      redis: [brokenRedis],
      keyPrefix: ['a:'],
      onUnavailable: ['reject', 'local'],
      processes: [1],
      commandTimeoutMs: [5],
      logger: [console],
    },
    (given) => Reflect.construct(redis.RedisLimiter, [given]),
  ),
  RedisDedupeStore: entry({ redis: [brokenRedis], keyPrefix: ['a:'] }, (given) =>
    Reflect.construct(redis.RedisDedupeStore, [given]),
  ),
  PostgresDedupeStore: entry({ pool: [brokenPool], table: ['a.b', '"'] }, (given) =>
    Reflect.construct(postgres.PostgresDedupeStore, [given]),
  ),
  TransactionalInbox: entry(
    { ...INBOX, store: [undefined], leaseMs: [undefined], pool: [brokenPool], table: ['a'] },
    (given) => Reflect.construct(postgres.TransactionalInbox, [given]).process(payloadOf('e-1'), nothing),
  ),
  inboxTableSql: entry({}, (given) => Reflect.apply(postgres.inboxTableSql, undefined, [given])),
  createWebhookHandler: entry(HANDLER, (given) => receiveWith(webhooks.createWebhookHandler, given)),
  'createWebhookHandler.close': entry({ timeoutMs: [0, 5] }, (given) => {
    const inbox = new webhooks.WebhookInbox({ store: STORE });
    return call(webhooks.createWebhookHandler({ secret: SECRET, inbox, onEvent: nothing }), 'close', given);
  }),
  toNodeHandler: entry({}, (given) => Reflect.apply(webhooks.toNodeHandler, undefined, [given])),
  WebhookInbox: entry(INBOX, (given) =>
    Reflect.construct(webhooks.WebhookInbox, [given]).process(payloadOf('e-1'), throws),
  ),
  'WebhookInbox.process callbacks': entry(CALLBACKS, (given) =>
    call(
      new webhooks.WebhookInbox({ store: new webhooks.MemoryDedupeStore(), onError: nothing }),
      'process',
      payloadOf('e-1'),
      given,
    ),
  ),
  'WebhookInbox.process options': entry({ busyTimeoutMs: [0], signal: CALL['signal'] ?? [] }, (given) =>
    call(
      new webhooks.WebhookInbox({ store: new webhooks.MemoryDedupeStore() }),
      'process',
      payloadOf('e-1'),
      nothing,
      given,
    ),
  ),
  MemoryDedupeStore: entry({ maxKeys: [1], now: [() => 0] }, (given) =>
    Reflect.construct(webhooks.MemoryDedupeStore, [given]),
  ),
  parseWebhook: entry({ trackings: [[]], trackerId: ['a'], events: [[{}]] }, webhooks.parseWebhook),
  parseOccurrenceDatetime: entry({}, (given) => webhooks.parseOccurrenceDatetime(String(inspect(given)))),
  sortEvents: entry({ occurrenceDatetime: ['2021-03-04'], order: [1], eventId: ['a'] }, (given) =>
    Reflect.apply(webhooks.sortEvents, undefined, [[asRecord(given), {}]]),
  ),
  isNewerEvent: entry({ occurrenceDatetime: ['2021-03-04'], order: [1], eventId: ['a'] }, (given) =>
    Reflect.apply(webhooks.isNewerEvent, undefined, [asRecord(given), {}]),
  ),
  latestEvent: entry({ occurrenceDatetime: ['2021-03-04'], order: [1], eventId: ['a'] }, (given) =>
    Reflect.apply(webhooks.latestEvent, undefined, [[asRecord(given)]]),
  ),
  createFakeTrackingService: entry(
    {
      seed: ['a', 1],
      now: [() => 0],
      limits: [false, { 'couriers.list': 0 }],
      limitWindow: ['sliding'],
      apiKeys: [[API_KEY]],
      plans: [{ perCall: true }],
      baseUrl: [BASE_URL],
      resultsDelayMs: [0],
      noResults: ['empty'],
      existingStatus: [200],
      latencyMs: [0, () => 1],
      webhooks: [false],
      eventsPerPush: [1],
      play: ['delivered', []],
      speed: [1_000],
      historyLimit: [0],
      onRequest: [nothing],
    },
    (given) => Reflect.apply(testing.createFakeTrackingService, undefined, [given]).reset?.(),
  ),
  createWebhookSender: entry(
    {
      target: [async () => new Response(null)],
      fake: [testing.createFakeTrackingService()],
      secret: ['a'],
      duplicates: [1],
      shuffle: [true],
      seed: [1],
      concurrency: [1],
      until2xx: [false],
      itemsPerRequest: [2],
      shape: ['flat'],
      identifyBy: ['both'],
      timeoutMs: [5],
      onSent: [nothing],
    },
    (given) => Reflect.apply(testing.createWebhookSender, undefined, [given]).flush(),
  ),
  telemetryHooks: entry({ tracerProvider: [undefined, {}], meterProvider: [undefined, {}] }, (given) =>
    Reflect.apply(opentelemetry.telemetryHooks, undefined, [given]).onPoll?.({ id: 'a', lagMs: 0 }),
  ),
  tracedWebhookHandler: entry(HANDLER, (given) => {
    const create: typeof webhooks.createWebhookHandler = (options) =>
      opentelemetry.tracedWebhookHandler(webhooks.createWebhookHandler, options);
    return receiveWith(create, given);
  }),
  dedupeStoreContract: entry({ createStore: [nothing], wait: [nothing], shortLeaseMs: [5] }, (given) =>
    Reflect.apply(testing.dedupeStoreContract, undefined, [given]),
  ),
  trackingHandlers: entry({ baseUrl: [BASE_URL] }, (given) =>
    Reflect.apply(trackingHandlers, undefined, [testing.createFakeTrackingService(), given]),
  ),
  ...Object.fromEntries(
    Object.entries(testing).flatMap(([name, build]) =>
      name.startsWith('build')
        ? [[name, entry({ seed: [1, 'a'] }, (given) => Reflect.apply(build, undefined, [{}, given]))]]
        : [],
    ),
  ),
};
