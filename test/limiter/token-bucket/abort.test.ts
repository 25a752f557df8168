import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { settled } from '../../support/settled.ts';
import { bucket, makeLimiter } from '../make-limiter.ts';

const reason = new Error('the caller lost interest');

describe('abort', () => {
  test('an abort before the call → rejects with the reason of the signal and takes no token', async () => {
    const { acquire, limiter } = makeLimiter();
    const call = acquire({ signal: AbortSignal.abort(reason) });
    await settled();
    expect(call.error).toBe(reason);
    expect(limiter.snapshot(bucket)?.inUse).toBe(0);
  });

  test('an abort in a pause → rejects at once, not when the pause ends', async () => {
    const { acquire, respond, clock, limiter } = makeLimiter();
    await respond(1, { status: 429, retryAfterMs: 60_000 });
    const controller = new AbortController();
    const call = acquire({ signal: controller.signal });
    expect(clock.timerCount).toBe(1);
    controller.abort(reason);
    await settled();
    expect(call).toMatchObject({ state: 'rejected', error: reason });
    expect(limiter.snapshot(bucket)?.queued).toBe(0);
    expect(clock.timerCount).toBe(0);
  });
});

describe('listeners', () => {
  const countListeners = ({ signal }: AbortController) => getEventListeners(signal, 'abort').length;

  test('10,000 calls on one signal over two buckets → one listener, one timer per bucket, all rejected on abort', async () => {
    const { acquire, respond, clock } = makeLimiter();
    const other = { ...bucket, endpoint: 'couriers.list' };
    await respond(3);
    await respond(1, {}, { bucket: other });
    const controller = new AbortController();
    const calls = Array.from({ length: 10_000 }, (_, index) =>
      acquire({ signal: controller.signal, ...(index % 2 === 0 ? {} : { bucket: other }) }),
    );
    expect([countListeners(controller), clock.timerCount]).toEqual([1, 2]);
    controller.abort(reason);
    await settled();
    expect(calls.every((call) => call.error === reason)).toBe(true);
    expect(clock.timerCount).toBe(0);
  });

  test('a call granted at once, or rejected by a full queue → no listener is left', async () => {
    const { acquire } = makeLimiter({ limit: 1, maxQueue: 0 });
    const controller = new AbortController();
    const calls = [1, 2].map(() => acquire({ signal: controller.signal }));
    await settled();
    expect(calls.map((call) => call.state)).toEqual(['granted', 'rejected']);
    expect(countListeners(controller)).toBe(0);
  });
});
