import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeClient, rejectionOf, type Step } from '../support/make-client.ts';

const never: Step = () => new Promise<Response>(() => {});
const stalled: Step = () =>
  new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{')) }));
const OK: Step = { body: { data: [] } };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('which time ends a call', () => {
  test.each([
    [50, 100, 'timeoutMs', 50],
    [100, 50, 'totalTimeoutMs', 50],
    [100, 100, 'totalTimeoutMs', 100],
    [100, undefined, 'timeoutMs', 100],
  ] as const)(
    'timeoutMs %d, totalTimeoutMs %s → %s, not a moment before',
    async (timeoutMs, totalTimeoutMs, option, endsAfterMs) => {
      const { client } = makeClient(never);
      const settled = vi.fn();
      client.couriers.list({ timeoutMs, totalTimeoutMs, retry: false }).catch(settled);
      await vi.advanceTimersByTimeAsync(endsAfterMs - 1);
      expect(settled).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      expect(settled).toHaveBeenCalledExactlyOnceWith(
        expect.objectContaining({ name: 'TimeoutError', message: expect.stringContaining(`\`${option}\``) }),
      );
    },
  );

  test('the wall clock jumps an hour → nothing changes', async () => {
    const { client } = makeClient(never);
    const settled = vi.fn();
    client.couriers.list({ totalTimeoutMs: 100 }).catch(settled);
    await vi.advanceTimersByTimeAsync(0);
    vi.setSystemTime(Date.now() + 3_600_000);
    await vi.advanceTimersByTimeAsync(99);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(settled).toHaveBeenCalledOnce();
  });

  test('the timer fires while the clock says that time is left → over all the same, no further attempt', async () => {
    const { client, requests } = makeClient(never, { retry: { minDelayMs: 0 } });
    const failing = rejectionOf(client.couriers.list({ totalTimeoutMs: 100 }));
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    await vi.advanceTimersByTimeAsync(100);
    expect(await failing).toMatchObject({ message: expect.stringContaining('`totalTimeoutMs`') });
    expect(requests).toHaveLength(1);
  });
});

describe('what the error says', () => {
  test.each([
    ['headers', never],
    ['body', stalled],
  ] as const)('out of time in phase %s → phase and time', async (phase, script) => {
    const { client } = makeClient(script, { retry: false });
    const failing = rejectionOf(client.couriers.list({ timeoutMs: 5 }));
    await vi.advanceTimersByTimeAsync(5);
    const error = await failing;
    expect(error).toMatchObject({ name: 'TimeoutError', phase, timeoutMs: 5 });
    expect(error).not.toHaveProperty('cause');
  });

  test('out of time in the queue → phase and time', async () => {
    const { client } = makeClient(OK, { rateLimit: {} });
    await client.couriers.list();
    const failing = rejectionOf(client.couriers.list({ totalTimeoutMs: 5 }));
    await vi.advanceTimersByTimeAsync(5);
    expect(await failing).toMatchObject({ name: 'TimeoutError', phase: 'queue', timeoutMs: 5 });
  });
});

describe('after an attempt', () => {
  test('a result in time → no timer is left', async () => {
    const { client } = makeClient(OK);
    await client.couriers.list({ totalTimeoutMs: 100, signal: new AbortController().signal });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a failure in time → no timer is left', async () => {
    const { client } = makeClient(new Error('x'), { retry: false });
    await rejectionOf(client.couriers.list({ totalTimeoutMs: 100 }));
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an abort → the reason, `fetch` learns it, no timer is left', async () => {
    const fetch = vi.fn((_request: unknown, _init?: RequestInit) => new Promise<Response>(() => {}));
    const { client } = makeClient({}, { fetch });
    const controller = new AbortController();
    const failing = rejectionOf(client.couriers.list({ signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(0);
    controller.abort('stop');
    expect(await failing).toBe('stop');
    expect(fetch.mock.calls[0]?.[1]?.signal?.reason).toBe('stop');
    expect(vi.getTimerCount()).toBe(0);
  });
});
