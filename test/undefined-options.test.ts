// With `exactOptionalPropertyTypes`, an option may be undefined only if its type says so. The compiler checks the types, and the tests
// show that an undefined option counts as left out.
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
import type { TelemetryOptions } from '../src/opentelemetry/index.ts';
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
import type { TrackingHandlersOptions } from '../src/testing/msw.ts';
import {
  createWebhookHandler,
  type InboxOptions,
  MemoryDedupeStore,
  type MemoryDedupeStoreOptions,
  type ProcessOptions,
  type WebhookHandlerOptions,
  WebhookInbox,
} from '../src/webhooks/index.ts';
import { TAKERS } from './support/takers.ts';

type OptionalNames<Options> = {
  [Name in keyof Options]-?: Record<never, never> extends Pick<Options, Name> ? Name : never;
}[keyof Options];

/** The optional fields of a type that do not accept undefined. */
type Refusing<Options> = {
  [Name in OptionalNames<Options>]-?: undefined extends Required<Options>[Name] ? never : Name;
}[OptionalNames<Options>];

type Play = NonNullable<Parameters<ReturnType<typeof createFakeTrackingService>['play']>[2]>;
type Listen = NonNullable<Parameters<ReturnType<typeof createFakeTrackingService>['listen']>[0]>;

type AllOptions = [
  BulkRequestOptions,
  CreateManyOptions,
  Extract<Failure, { code?: unknown }>,
  Extract<Failure, { kind: unknown }>,
  FakePlans,
  FakeTrackingServiceOptions,
  Hooks,
  InboxOptions,
  LimiterOptions,
  Listen,
  MemoryDedupeStoreOptions,
  Play,
  PollManyOptions,
  PollOnceOptions,
  PollOptions,
  PostgresDedupeStoreOptions,
  ProcessOptions,
  RawRequest,
  RedisDedupeStoreOptions,
  RedisLimiterOptions,
  RequestOptions,
  RetryOptions,
  TelemetryOptions,
  TrackerInput,
  TrackerListQuery,
  TrackerRequestOptions,
  TrackerToPoll,
  TrackerUpdate,
  TrackingClientOptions,
  TrackingHandlersOptions,
  TrackingSearchInput,
  WebhookHandlerOptions,
  WebhookSenderOptions,
];

/** The fields of several types that do not accept undefined. */
type RefusingOf<Types extends readonly unknown[]> = {
  [Index in keyof Types]: Refusing<Types[Index]>;
}[number];

/** This does not compile if there is such a field. */
type AllRefusing = RefusingOf<AllOptions>;
const refusesNone: [AllRefusing] extends [never] ? true : AllRefusing = true;

/** The options that are required. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  TrackingClient: ['apiKey', 'baseUrl'],
  'pollMany.add': ['id'],
  RedisLimiter: ['redis'],
  RedisDedupeStore: ['redis'],
  PostgresDedupeStore: ['pool'],
  WebhookInbox: ['store'],
  createWebhookHandler: ['secret', 'onEvent'],
  createWebhookSender: ['target', 'fake'],
};

test('the types of options and inputs → each optional field accepts undefined', () => {
  expect(refusesNone).toBe(true);
});

describe('every option as undefined → as if it were left out', () => {
  test.each(Object.entries(TAKERS))('%s', async (name, take) => {
    const { message } = Object(await catchError(() => take({ misspelt: 1 })));
    const [, known = ''] = /known options: (.*)$/.exec(String(message)) ?? [];
    const names = known.split(', ').filter((option) => !REQUIRED[name]?.includes(option));
    expect(names).not.toEqual([]);
    const options = Object.fromEntries(names.map((option) => [option, undefined]));
    // A poll begins at once, and fails because the tracker does not exist.
    const soon = names.includes('initialDelayMs') ? { initialDelayMs: 0 } : {};
    expect(await catchError(() => take({ ...options, ...soon }))).not.toMatchObject({
      name: 'ConfigurationError',
    });
  });

  test('options within options', async () => {
    const { baseUrl, apiKey, fetch } = createFakeTrackingService();
    const limits = { limits: { 'couriers.list': undefined }, maxQueue: undefined };
    const retry = { retries: undefined, maxRetryAfterMs: undefined, maxBackoffMs: undefined };
    const hooks = { onStart: undefined, aroundAttempt: undefined, onPoll: undefined };
    const client = new TrackingClient({ baseUrl, apiKey, fetch, retry, rateLimit: limits, hooks });
    expect(await client.couriers.list({ retry })).not.toEqual([]);
    expect(new TokenBucketLimiter(limits)).toBeDefined();
  });

  test('the fake service', async () => {
    const quota = { quota: undefined };
    const fake = createFakeTrackingService({
      plans: { perShipment: quota, perCall: quota },
      limits: { 'couriers.list': undefined },
    });
    fake.couriers.push({ ...buildCourier({}, { seed: undefined }), supportsSynchronousFetch: undefined });
    const status = { code: undefined, message: undefined, retryAfterMs: undefined, headers: undefined };
    fake.fail('*', { ...status, body: undefined, times: undefined, status: 429 }).cancel();
    fake.fail('*', { status: undefined, times: undefined, kind: 'reset' }).cancel();
    const server = await fake.listen({ port: undefined, host: undefined, control: undefined });
    expect(server.url).toContain('http://127.0.0.1:');
    await server.close();
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

async function catchError(run: () => unknown): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    return error;
  }
}

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
