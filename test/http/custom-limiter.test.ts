import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { TimeoutError } from '../../src/errors.ts';
import type { Limiter, Permit } from '../../src/limiter/limiter.ts';
import { makeClient, rejectionOf, type Step } from '../support/make-client.ts';

const OK: Step = { body: { data: [] } };

/** A limiter of somebody's own: it knows no pauses, no deadlines and no signals. */
function limiterOf(acquire: (cancel: () => void) => Promise<Permit>) {
  const cancel = vi.fn();
  const limiter: Limiter = { acquire: () => acquire(cancel), snapshot: () => undefined };
  return { limiter, cancel };
}
const createPermit = (cancel: () => void): Permit => ({ tokensLeft: 1, send() {}, report() {}, cancel });
const setUp = (script: Step | Step[], acquire: (cancel: () => void) => Promise<Permit>) => {
  const { limiter, cancel } = limiterOf(acquire);
  return { ...makeClient(script, { rateLimit: undefined, limiter }), cancel };
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a limiter that knows no pauses', () => {
  const PAUSE: Step = { status: 429, headers: { 'retry-after': '30' }, body: '' };

  test('429 with Retry-After → the next attempt comes after it', async () => {
    const { client, requests } = setUp([PAUSE, OK], async (cancel) => createPermit(cancel));
    const listing = client.couriers.list().then((couriers) => couriers.length);
    await vi.advanceTimersByTimeAsync(29_000);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(await listing).toBe(0);
    expect(requests).toHaveLength(2);
  });

  test('a permit in the last millisecond of the pause → sent at once', async () => {
    const sentAt: number[] = [];
    const { limiter } = limiterOf(async (cancel) => {
      if (sentAt.length > 0) await new Promise((resolve) => setTimeout(resolve, 29_999));
      return createPermit(cancel);
    });
    const onRequest = () => sentAt.push(performance.now());
    const { client } = makeClient([PAUSE, OK], { rateLimit: undefined, limiter, hooks: { onRequest } });
    client.couriers.list().catch(() => {});
    await vi.advanceTimersByTimeAsync(40_000);
    expect(Number(sentAt[1]) - Number(sentAt[0])).toBe(29_999);
  });

  test('an abort meanwhile → rejects at once, the permit is given back', async () => {
    const { client, requests, cancel } = setUp([PAUSE, OK], async (given) => createPermit(given));
    const controller = new AbortController();
    const failing = rejectionOf(client.couriers.list({ signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(1000);
    cancel.mockClear();
    controller.abort('enough');
    expect(await failing).toBe('enough');
    expect(cancel).toHaveBeenCalledOnce();
    expect(requests).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a limiter that never answers', () => {
  const never = () => new Promise<Permit>(() => {});

  test('totalTimeoutMs → TimeoutError when it is over', async () => {
    const { client } = setUp(OK, never);
    const failing = rejectionOf(client.couriers.list({ totalTimeoutMs: 100 }));
    await vi.advanceTimersByTimeAsync(100);
    expect(await failing).toMatchObject({ name: 'TimeoutError', phase: 'queue', timeoutMs: 100 });
  });

  test('an abort → the reason at once, no timer left', async () => {
    const { client } = setUp(OK, never);
    const controller = new AbortController();
    const options = { signal: controller.signal, totalTimeoutMs: 1000 };
    const failing = rejectionOf(client.couriers.list(options));
    controller.abort('enough');
    expect(await failing).toBe('enough');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a permit that comes too late → given back, nothing is sent', async () => {
    let grant = (_ticket: Permit) => {};
    const { client, requests, cancel } = setUp(
      OK,
      () =>
        new Promise((resolve) => {
          grant = resolve;
        }),
    );
    const failing = rejectionOf(client.couriers.list({ totalTimeoutMs: 100 }));
    await vi.advanceTimersByTimeAsync(100);
    await failing;
    grant(createPermit(cancel));
    await vi.advanceTimersByTimeAsync(0);
    expect(cancel).toHaveBeenCalledOnce();
    expect(requests).toHaveLength(0);
  });

  test('a permit that takes a minute, and no deadline → waited for without a timer of ours', async () => {
    const { client, requests } = setUp(OK, async (cancel) => {
      await new Promise((resolve) => setTimeout(resolve, 60_000));
      return createPermit(cancel);
    });
    const listing = client.couriers.list().then((couriers) => couriers.length);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(requests).toHaveLength(0);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await listing).toBe(0);
  });

  test('a permit in time → sent, no timer left', async () => {
    const { client, requests } = setUp(OK, async (cancel) => createPermit(cancel));
    await client.couriers.list({ totalTimeoutMs: 100, signal: new AbortController().signal });
    expect(requests).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a limiter that honors deadlines itself', () => {
  /** A client with one that grants, or rejects, after so many milliseconds. */
  const clientWith = (delayMs: number, failure?: Error) => {
    const { limiter, cancel } = limiterOf(async (given) => {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      if (failure !== undefined) throw failure;
      return createPermit(given);
    });
    const options = {
      rateLimit: undefined,
      limiter: { ...limiter, honorsDeadlines: true },
      retry: false,
    } as const;
    return { ...makeClient(OK, options), cancel };
  };

  test('its permit comes too late → TimeoutError, the permit is given back, nothing is sent', async () => {
    const { client, requests, cancel } = clientWith(100);
    const failing = rejectionOf(client.couriers.list({ totalTimeoutMs: 100 }));
    await vi.advanceTimersByTimeAsync(100);
    expect(await failing).toMatchObject({ name: 'TimeoutError', phase: 'queue', timeoutMs: 100 });
    expect(cancel).toHaveBeenCalledOnce();
    expect(requests).toHaveLength(0);
  });

  test('it gives up a millisecond before the call would → its own TimeoutError', async () => {
    const failure = new TimeoutError('its own', { phase: 'queue', timeoutMs: 99 });
    const failing = rejectionOf(clientWith(99, failure).client.couriers.list({ totalTimeoutMs: 100 }));
    await vi.advanceTimersByTimeAsync(99);
    expect(await failing).toBe(failure);
  });

  test('it fails in another way when the time is over → its failure', async () => {
    const failure = new Error('its own');
    const failing = rejectionOf(clientWith(100, failure).client.couriers.list({ totalTimeoutMs: 100 }));
    await vi.advanceTimersByTimeAsync(100);
    expect(await failing).toBe(failure);
  });

  test('while a call waits for it → the client keeps no timer and no listener of its own', async () => {
    const limiter: Limiter = {
      honorsDeadlines: true,
      acquire: () => new Promise<Permit>(() => {}),
      snapshot: () => undefined,
    };
    const { client } = makeClient(OK, { rateLimit: undefined, limiter });
    const { signal } = new AbortController();
    client.couriers.list({ totalTimeoutMs: 100, signal }).catch(() => {});
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('while it says nothing of deadlines → the client keeps one timer', async () => {
    const { client } = setUp(OK, () => new Promise<Permit>(() => {}));
    client.couriers.list({ totalTimeoutMs: 100 }).catch(() => {});
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(1);
  });
});
