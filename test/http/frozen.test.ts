import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import { TRACKER } from '../contract/support/samples.ts';
import { catchRejection, makeClient, toResponse } from '../support/make-client.ts';

/** The clock of the process, which goes on while the process is frozen, unlike its timers. */
let nowMs = 0;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});

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

test('a timer that fires on time → TimeoutError at once', async () => {
  const { client } = makeSlowService(PAYLOADS.couriers);
  const rejection = catchRejection(client.couriers.list({ timeoutMs: 1_000 }));
  await passTime(1_000, 40);
  expect(await rejection).toMatchObject({ name: 'TimeoutError' });
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
