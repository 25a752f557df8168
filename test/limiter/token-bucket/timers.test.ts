import { describe, expect, test, vi } from 'vitest';
import { QueueFullError } from '../../../src/errors.ts';
import { TokenBucketLimiter } from '../../../src/limiter/token-bucket.ts';
import { settled } from '../../support/settled.ts';
import { bucket, countGranted, makeLimiter, observe, toAcquire } from '../make-limiter.ts';

describe('timers', () => {
  test.each([
    ['tokens are in use', { status: 200 }],
    ['the endpoint is paused', { status: 429, retryAfterMs: 60_000 }],
  ])('no waiting call, though %s → no timer', async (_title, feedback) => {
    const { respond, clock } = makeLimiter();
    await respond(3, feedback);
    expect(clock.timerCount).toBe(0);
  });
});

describe('maxQueue', () => {
  test.each([
    ['of 1, an interactive and then a background call', 1, ['interactive', 'background']],
    ['of 1, a background and then an interactive call', 1, ['background', 'interactive']],
    ['of 1, two background calls', 1, ['background', 'background']],
    ['of 2, three calls', 2, ['interactive', 'background', 'interactive']],
  ] as const)('maxQueue %s → the last call rejects, the rest wait', async (_title, maxQueue, priorities) => {
    const { acquire, respond, limiter } = makeLimiter({ maxQueue });
    await respond(3);
    const calls = priorities.map((priority) => acquire({ priority }));
    await settled();
    expect(calls.at(-1)?.error).toBeInstanceOf(QueueFullError);
    expect(calls.slice(0, -1).map(({ state }) => state)).toEqual(Array(maxQueue).fill('waiting'));
    expect(limiter.snapshot(bucket)?.queued).toBe(maxQueue);
  });

  test('a call that leaves a full queue, and two more calls → the first of them waits', async () => {
    const { acquire, respond } = makeLimiter({ maxQueue: 2 });
    await respond(3);
    const controller = new AbortController();
    const calls = [acquire(), acquire({ signal: controller.signal })];
    controller.abort();
    calls.push(acquire(), acquire());
    await settled();
    expect(calls.map(({ state }) => state)).toEqual(['waiting', 'rejected', 'waiting', 'rejected']);
  });

  test('maxQueue of 0 → calls with a free token are granted, the next call is rejected', async () => {
    const { acquire } = makeLimiter({ maxQueue: 0 });
    const calls = [acquire(), acquire(), acquire(), acquire()];
    await settled();
    expect(countGranted(calls)).toBe(3);
    expect(calls[3]?.error).toBeInstanceOf(QueueFullError);
  });

  test('a full queue of background calls, and an interactive call → granted with the reserved token', async () => {
    const { acquire, tryAcquire } = makeLimiter({ limit: 10, maxQueue: 1 });
    for (let call = 0; call < 10; call += 1) acquire({ priority: 'background' });
    expect(await tryAcquire()).toBe('granted');
  });
});

// The clock jumps, and timers that were set before never fire.
describe('a test runner that installs or removes fake timers while a limiter is in use', () => {
  const RETURN_MS = 1_010;
  const ask = (limiter: TokenBucketLimiter) => observe(limiter.acquire(toAcquire(1)));

  async function use(limiter: TokenBucketLimiter): Promise<void> {
    const permit = await limiter.acquire(toAcquire(1));
    permit.send();
    permit.noteResponse({ status: 200 });
  }

  test('fake timers removed while a call waits → granted under the fake timers installed later', async () => {
    const limiter = new TokenBucketLimiter();
    vi.useFakeTimers();
    await use(limiter);
    const first = ask(limiter);
    vi.useRealTimers();
    vi.useFakeTimers();
    const second = ask(limiter);
    await vi.advanceTimersByTimeAsync(RETURN_MS + 1);
    expect(first.state).toBe('granted');
    first.permit?.send();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(second.state).toBe('granted');
  });
});
