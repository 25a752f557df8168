import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import { catchRejection, makeClient, type Step } from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

const never: Step = () => new Promise<Response>(() => {});
const stalled: Step = () =>
  new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{')) }));
const OK: Step = { body: { data: [] } };
const input = { trackingNumber: 'LA680658838NL' };
const TITLE = 'GET https://api.example.test/public/v1/couriers';

/** Responds after a delay and ignores its signal. */
const late =
  (delayMs: number, status = 200): Step =>
  () =>
    new Promise<Response>((resolve) => {
      setTimeout(() => resolve(Response.json({ data: [] }, { status })), delayMs);
    });

beforeEach(() => {
  vi.useFakeTimers();
});
/** Returns when a call rejects, in milliseconds from now, and the reason. */
async function rejectInVirtualTime(start: () => PromiseLike<unknown>) {
  const startedAt = performance.now();
  const error = await settleInVirtualTime(() => catchRejection(start()));
  return { error, endedAt: performance.now() - startedAt };
}

describe('the timeout that ends a call', () => {
  test.each([
    [50, 100, 'timeoutMs', 50],
    [100, 50, 'totalTimeoutMs', 50],
    [100, 100, 'totalTimeoutMs', 100],
    [100, undefined, 'timeoutMs', 100],
  ] as const)(
    'timeoutMs %d, totalTimeoutMs %s → TimeoutError that names %s, after %d ms',
    async (timeoutMs, totalTimeoutMs, option, ms) => {
      const { client } = makeClient(never, { retry: false });
      const { error, endedAt } = await rejectInVirtualTime(() =>
        client.couriers.list({ timeoutMs, totalTimeoutMs }),
      );
      expect(error).toMatchObject({
        name: 'TimeoutError',
        message: expect.stringContaining(`\`${option}\``),
      });
      expect(endedAt).toBe(ms);
    },
  );

  test.each([
    ['couriers.list', 30_000, (client: TrackingClient) => client.couriers.list()],
    ['tracking.search', 90_000, (client: TrackingClient) => client.tracking.search(input)],
    ['trackers.track', 90_000, (client: TrackingClient) => client.trackers.track(input)],
    [
      'a raw request to the path of trackers.track',
      90_000,
      (client: TrackingClient) => client.request({ method: 'POST', path: '/trackers/track' }),
    ],
    [
      'a raw request to another path',
      30_000,
      (client: TrackingClient) => client.request({ method: 'POST', path: '/reports' }),
    ],
  ] as const)('%s without options → TimeoutError after %d ms', async (_name, timeoutMs, call) => {
    const { client } = makeClient(never, { retry: false });
    const { error, endedAt } = await rejectInVirtualTime(() => call(client));
    expect(error).toMatchObject({ name: 'TimeoutError', timeoutMs });
    expect(endedAt).toBe(timeoutMs);
  });
});

describe('fields of the error', () => {
  test.each([
    ['headers', never, 'waiting for a response'],
    ['body', stalled, 'reading the response'],
  ] as const)(
    'a timeout in phase %s → TimeoutError with phase and time, without a cause',
    async (phase, script, activity) => {
      const { client } = makeClient(script, { retry: false });
      const { error } = await rejectInVirtualTime(() => client.couriers.list({ timeoutMs: 5 }));
      const message = `${TITLE} timed out after 5 ms (\`timeoutMs\`) while ${activity}`;
      expect(error).toMatchObject({ name: 'TimeoutError', phase, timeoutMs: 5, message });
      expect(error).not.toHaveProperty('cause');
    },
  );

  test('a timeout in the queue → TimeoutError with phase and time, nothing is sent', async () => {
    const { client, requests } = makeClient(OK, { rateLimit: {} });
    await client.couriers.list();
    const { error, endedAt } = await rejectInVirtualTime(() => client.couriers.list({ totalTimeoutMs: 200 }));
    const message = `${TITLE} timed out after 200 ms (\`totalTimeoutMs\`) while waiting for its turn under the rate limit`;
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'queue', timeoutMs: 200, message });
    expect(endedAt).toBe(200);
    await vi.runAllTimersAsync();
    expect(requests).toHaveLength(1);
  });
});

describe('a repeat after a timeout', () => {
  test('a second attempt → gets the whole timeoutMs again', async () => {
    const { client, requests } = makeClient(never, { retry: { retries: 1 } });
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const { error, endedAt } = await rejectInVirtualTime(() => client.couriers.list({ timeoutMs: 2_000 }));
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'headers', timeoutMs: 2_000 });
    expect(requests).toHaveLength(2);
    expect(endedAt).toBe(4_500);
  });

  test('a fetch that ignores its signal and responds too late → the late response is ignored', async () => {
    const seen: number[] = [];
    const { client } = makeClient([late(4_000, 500), late(1_900)], {
      hooks: { onResponse: ({ attempt }) => seen.push(attempt) },
    });
    const call = () => client.couriers.list({ timeoutMs: 2_000 }).withResponse();
    expect(await settleInVirtualTime(call)).toMatchObject({ attempts: 2 });
    expect(seen).toEqual([2]);
  });

  test('a late response to the first attempt → the second attempt still waits for its own headers', async () => {
    const { client } = makeClient([late(4_000), never], { retry: { retries: 1 } });
    const { error } = await rejectInVirtualTime(() => client.couriers.list({ timeoutMs: 2_000 }));
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'headers' });
  });
});

test.each([
  ['a result', OK, {}],
  ['a failure of fetch', new Error('x'), { retry: false }],
  ['a 404', { status: 404 }, {}],
  ['a result of the second attempt', [{ status: 503, headers: { 'retry-after': '2' } }, OK], {}],
] as [string, Step | Step[], object][])(
  'a call that ends with %s → no timer and no listener is left',
  async (_what, script, options) => {
    const { client } = makeClient(script, options);
    const { signal } = new AbortController();
    await settleInVirtualTime(() => client.couriers.list({ signal, totalTimeoutMs: 60_000 }).catch(() => {}));
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  },
);
