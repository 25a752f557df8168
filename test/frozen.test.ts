import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../src/client.ts';
import type { TrackingClientOptions } from '../src/options.ts';
import type * as Webhooks from '../src/webhooks/index.ts';
import { TRACKER } from './contract/support/samples.ts';
import type * as MakeClient from './support/make-client.ts';
import { catchRejection, networkFailure, toResponse } from './support/make-client.ts';
import { E1 } from './webhooks/support.ts';

/**
 * While the process is frozen, its clock goes on, but its timers wait. The timers of these tests are virtual, but the client must take
 * them for real ones, so it is imported while they are installed.
 */
let nowMs = 0;
let setVirtualTimer = globalThis.setTimeout;
const setTimeout = (callback: () => void, delayMs?: number) => setVirtualTimer(callback, delayMs);
let makeClient: typeof MakeClient.makeClient;
let WebhookInbox: typeof Webhooks.WebhookInbox;

beforeAll(async () => {
  vi.stubGlobal('setTimeout', setTimeout);
  vi.resetModules();
  ({ makeClient } = await import('./support/make-client.ts'));
  ({ WebhookInbox } = await import('../src/webhooks/index.ts'));
  vi.unstubAllGlobals();
  // Other files of this worker must not get these modules.
  vi.resetModules();
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  setVirtualTimer = globalThis.setTimeout;
  vi.stubGlobal('setTimeout', setTimeout);
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** Runs the timers of the next `ms` milliseconds, as they fire after a freeze of `frozenMs`. */
async function passTime(ms: number, frozenMs = 0): Promise<void> {
  // First the code that runs now sets its timers.
  await vi.advanceTimersByTimeAsync(0);
  nowMs += ms + frozenMs;
  await vi.advanceTimersByTimeAsync(ms);
}

const PAYLOADS = {
  couriers: { data: [] },
  search: { data: { trackings: [] } },
  tracker: { data: { tracker: TRACKER } },
};

/** A service whose response arrives when the test says so. */
function makeSlowService(body: unknown) {
  let respond: () => void = () => {};
  const response = new Promise<Response>((resolve) => {
    respond = () => resolve(toResponse({ body }));
  });
  return { ...makeClient(() => response, { retry: false }), respond: () => respond() };
}

const CALLS: readonly (readonly [
  name: string,
  body: unknown,
  call: (client: TrackingClient) => Promise<unknown>,
])[] = [
  ['timeoutMs', PAYLOADS.couriers, (client) => client.couriers.list({ timeoutMs: 1_000 })],
  ['totalTimeoutMs', PAYLOADS.couriers, (client) => client.couriers.list({ totalTimeoutMs: 1_000 })],
  [
    'timeoutMs of a paid call',
    PAYLOADS.search,
    (client) => client.tracking.search({ trackingNumber: 'LA680658838NL' }, { timeoutMs: 1_000 }),
  ],
];

describe.each(CALLS)('a process that is frozen past %s', (_name, body, call) => {
  test('a response that arrived meanwhile → the call succeeds', async () => {
    const { client, respond } = makeSlowService(body);
    const outcome = call(client);
    await passTime(500);
    await passTime(500, 5_000);
    respond();
    expect(await outcome).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('no response → TimeoutError a second later', async () => {
    const { client } = makeSlowService(body);
    let isOver = false;
    const rejection = catchRejection(call(client)).finally(() => {
      isOver = true;
    });
    await passTime(1_000, 5_000);
    await passTime(999);
    expect(isOver).toBe(false);
    await passTime(1);
    expect(await rejection).toMatchObject({ name: 'TimeoutError', timeoutMs: 1_000 });
  });
});

test('no response until a timer fires on time → TimeoutError at once', async () => {
  const { client } = makeSlowService(PAYLOADS.couriers);
  const rejection = catchRejection(client.couriers.list({ timeoutMs: 1_000 }));
  await passTime(1_000, 40);
  expect(await rejection).toMatchObject({ name: 'TimeoutError' });
});

test('a timer that fires 300 ms late → TimeoutError after another 300 ms', async () => {
  const { client } = makeSlowService(PAYLOADS.couriers);
  let isOver = false;
  const rejection = catchRejection(client.couriers.list({ timeoutMs: 1_000 })).finally(() => {
    isOver = true;
  });
  await passTime(1_000, 300);
  await passTime(299);
  expect(isOver).toBe(false);
  await passTime(1);
  expect(await rejection).toMatchObject({ name: 'TimeoutError' });
});

test('faked timers on a real clock that is far ahead → TimeoutError when the faked timer fires', async () => {
  vi.stubGlobal('setTimeout', setVirtualTimer);
  const { client } = makeSlowService(PAYLOADS.couriers);
  const rejection = catchRejection(client.couriers.list({ timeoutMs: 1_000 }));
  await passTime(1_000, 60_000);
  expect(await rejection).toMatchObject({ name: 'TimeoutError' });
});

describe('a process that is frozen past its time limit before a request is sent → TimeoutError, nothing is sent', () => {
  const never = new Promise<never>(() => {});
  const refused = networkFailure('ECONNREFUSED');

  test.each<readonly [name: string, script: Error, options: TrackingClientOptions]>([
    ['totalTimeoutMs while the key is read', refused, { apiKey: () => never, totalTimeoutMs: 1_000 }],
    ['timeoutMs while the key is read', refused, { apiKey: () => never, timeoutMs: 1_000 }],
    [
      'totalTimeoutMs in aroundAttempt',
      refused,
      { hooks: { aroundAttempt: () => never }, totalTimeoutMs: 500 },
    ],
    ['timeoutMs in aroundAttempt', refused, { hooks: { aroundAttempt: () => never }, timeoutMs: 500 }],
  ])('%s', async (_name, script, options) => {
    const { client, requests } = makeClient(script, { retry: false, ...options });
    const rejection = catchRejection(client.tracking.search({ trackingNumber: 'LA680658838NL' }));
    await passTime(options.timeoutMs ?? options.totalTimeoutMs ?? 0, 60_000);
    expect(await rejection).toMatchObject({ name: 'TimeoutError' });
    expect(requests).toHaveLength(0);
  });

  test('totalTimeoutMs in the back-off', async () => {
    const { client, requests } = makeClient(refused, { retry: { retries: 4 }, totalTimeoutMs: 2_000 });
    const rejection = catchRejection(client.tracking.search({ trackingNumber: 'LA680658838NL' }));
    await passTime(0);
    expect(requests).toHaveLength(1);
    await passTime(2_000, 60_000);
    expect(await rejection).toMatchObject({ name: 'TimeoutError', phase: 'backoff' });
    expect(requests).toHaveLength(1);
  });

  test('totalTimeoutMs in the queue', async () => {
    const rateLimit = { limits: { 'tracking.search': 1 } };
    const { client, requests } = makeClient({ body: PAYLOADS.search }, { rateLimit, totalTimeoutMs: 30_000 });
    const input = { trackingNumber: 'LA680658838NL' };
    const first = client.tracking.search(input);
    await passTime(0);
    await first;
    const rejection = catchRejection(client.tracking.search(input));
    await passTime(30_000, 600_000);
    expect(await rejection).toMatchObject({ name: 'TimeoutError' });
    expect(requests).toHaveLength(1);
  });
});

test('createMany, a response that arrived while the process was frozen → created', async () => {
  const input = { trackingNumber: TRACKER.trackingNumber };
  const item = { itemStatus: 'created', inputData: input, tracker: TRACKER };
  const { client, respond } = makeSlowService({ status: 'success', data: [item] });
  const run = client.trackers.createMany([input], { timeoutMs: 1_000 });
  const first = run.next();
  await passTime(1_000, 60_000);
  respond();
  expect((await first).value).toMatchObject({ status: 'created' });
});

test('waitUntilStopped, results that arrived while the process was frozen past maxDurationMs → the results', async () => {
  const tracker = { ...TRACKER, isTracked: false };
  const { client, respond } = makeSlowService({
    data: { trackings: [{ tracker, events: [{ eventId: 'e' }] }] },
  });
  const waiting = client.trackers.waitUntilStopped('t', { initialDelayMs: 0, maxDurationMs: 2_000 });
  await passTime(1_000);
  await passTime(1_000, 60_000);
  respond();
  await passTime(0);
  expect(await waiting).toMatchObject({ tracker: { isTracked: false } });
});

describe('pollMany, a process that is frozen past maxDurationMs', () => {
  const results = { data: { trackings: [{ tracker: TRACKER, events: [{ eventId: 'e' }] }] } };
  const settings = { intervalMs: 1_000, initialDelayMs: 0, maxDurationMs: 10_000 };

  test('no poll in flight → the stream ends at once, without another poll', async () => {
    const { client, requests } = makeClient({ body: results });
    const polls = client.trackers.pollMany(['t'], { ...settings, intervalMs: 20_000 });
    const updates = collect(polls);
    await passTime(0);
    await passTime(10_000, 60_000);
    expect(await updates).toHaveLength(1);
    expect(requests).toHaveLength(1);
  });

  test('a poll without a response, and frozen again → the stream ends a second later', async () => {
    const { client, requests } = makeClient(() => new Promise<Response>(() => {}));
    const polls = client.trackers.pollMany(['t', 'u'], { ...settings, concurrency: 1 });
    const updates = collect(polls);
    await passTime(10_000, 60_000);
    await passTime(1_000, 60_000);
    expect(await updates).toEqual([]);
    expect(requests).toHaveLength(1);
  });

  test('a poll that waits for its turn → is not sent', async () => {
    const { client, requests } = makeClient({ body: results });
    const polls = client.trackers.pollMany(['t', 'u'], {
      ...settings,
      maxPerSecond: 1,
      maxDurationMs: 1_500,
    });
    const updates = collect(polls);
    await passTime(0);
    await passTime(900);
    await passTime(600, 60_000);
    expect(await updates).toHaveLength(1);
    expect(requests).toHaveLength(1);
  });
});

test('a store that never answers a claim, frozen meanwhile → unavailable when its time limit of 4.5 s has passed', async () => {
  const never = () => new Promise<never>(() => {});
  const inbox = new WebhookInbox({
    store: { claim: never, commit: never, release: never },
    onError: () => {},
  });
  const result = inbox.process(E1, { onEvent: () => {} });
  await passTime(4_500, 60_000);
  expect(await result).toMatchObject({ outcome: 'unavailable' });
});
