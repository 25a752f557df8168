import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { QueueFullError } from '../../src/errors.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { settled } from '../support/settled.ts';
import { watchTimers } from '../support/watch-timers.ts';
import { bucket, countGranted, makeLimiter } from './make-limiter.ts';

describe('the one timer', () => {
  test('nobody waits, though tokens are out → no timer', async () => {
    const { answered, clock } = makeLimiter();
    await answered(3);
    expect(clock.timerCount).toBe(0);
  });

  test('nobody waits, though the endpoint is paused → no timer', async () => {
    const { answered, clock } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 60_000 });
    expect(clock.timerCount).toBe(0);
  });

  test('a thousand wait → one timer', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3);
    for (let call = 0; call < 1_000; call += 1) acquire();
    expect(clock.timerCount).toBe(1);
  });

  test('the last waiting call was granted → no timer is left', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3);
    const call = acquire();
    await clock.advance(1_010);
    expect(call.state).toBe('granted');
    expect(clock.timerCount).toBe(0);
  });

  test('a thousand calls join the queue → the timer is set once, not a thousand times', async () => {
    const { acquire, answered } = makeLimiter();
    await answered(3);
    await watchTimers(async (started) => {
      for (let call = 0; call < 1_000; call += 1) acquire();
      expect(started).toHaveLength(1);
    });
  });

  test('a token is free → neither a timer nor a look at the clock later', async () => {
    const { acquire } = makeLimiter();
    await watchTimers(async (started) => {
      acquire();
      await settled();
      expect(started).toEqual([]);
    });
  });

  test.each([3_600_000, -3_600_000])('the wall clock steps by %d ms → nothing changes', async (stepMs) => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3, { status: 429, retryAfterMs: 2_000 });
    const call = acquire();
    await clock.advance(500);
    vi.setSystemTime(Date.now() + stepMs);
    await clock.advance(1_499);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.state).toBe('granted');
  });
});

describe('with the runner’s fake timers', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('limiter made before or after they were installed → waits in fake time and leaves no timer', async () => {
    vi.useRealTimers();
    const limiter = new TokenBucketLimiter();
    vi.useFakeTimers();
    const options = { bucket, limit: 1, priority: 'interactive' } as const;
    const first = await limiter.acquire(options);
    first.send();
    first.report({ status: 200 });
    let granted = false;
    const second = limiter.acquire(options).then(() => {
      granted = true;
    });
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1_009);
    expect(granted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await second;
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('maxQueue', () => {
  test.each([
    ['an interactive call waits, and a background one comes', 'interactive', 'background'],
    ['a background call waits, and an interactive one comes', 'background', 'interactive'],
    ['two background calls come', 'background', 'background'],
  ] as const)('of 1, %s → the later one is rejected', async (_title, first, second) => {
    const { acquire, answered } = makeLimiter({ maxQueue: 1 });
    await answered(3);
    const calls = [acquire({ priority: first }), acquire({ priority: second })];
    await settled();
    expect(calls.map(({ state }) => state)).toEqual(['waiting', 'rejected']);
    expect(calls[1]?.error).toBeInstanceOf(QueueFullError);
  });

  test('of Infinity → every call waits', async () => {
    const { acquire, answered } = makeLimiter({ maxQueue: Number.POSITIVE_INFINITY });
    await answered(3);
    const calls = [acquire(), acquire()];
    await settled();
    expect(calls.map(({ state }) => state)).toEqual(['waiting', 'waiting']);
  });

  test('of 0, the second call of a bucket with a limit of 1 → rejected', async () => {
    const { acquire } = makeLimiter({ maxQueue: 0 });
    const calls = [acquire({ limit: 1 }), acquire({ limit: 1 })];
    await settled();
    expect(calls.map(({ state }) => state)).toEqual(['granted', 'rejected']);
  });

  test('2 wait at a bound of 2 → the third is rejected at once, the two stay', async () => {
    const { acquire, answered, limiter } = makeLimiter({ maxQueue: 2 });
    await answered(3);
    const calls = [acquire(), acquire({ priority: 'background' }), acquire()];
    await settled();
    expect(calls.map((call) => call.state)).toEqual(['waiting', 'waiting', 'rejected']);
    expect(calls[2]?.error).toBeInstanceOf(QueueFullError);
    expect(limiter.snapshot(bucket)?.queued).toBe(2);
  });

  test('0 → calls that can go at once do, the next is rejected', async () => {
    const { acquire } = makeLimiter({ maxQueue: 0 });
    const calls = [acquire(), acquire(), acquire(), acquire()];
    await settled();
    expect(countGranted(calls)).toBe(3);
    expect(calls[3]?.error).toBeInstanceOf(QueueFullError);
  });

  test('an interactive call finds the reserved token behind a full queue of background calls → granted', async () => {
    const { acquire } = makeLimiter({ maxQueue: 1 });
    for (let call = 0; call < 10; call += 1) acquire({ limit: 10, priority: 'background' });
    const urgent = acquire();
    await settled();
    expect(urgent.state).toBe('granted');
  });

  test('full for one endpoint → another still takes calls', async () => {
    const { acquire, answered } = makeLimiter({ maxQueue: 1 });
    const other = { ...bucket, endpoint: 'couriers.list' };
    await answered(3);
    await answered(3, {}, { bucket: other });
    acquire();
    const elsewhere = acquire({ bucket: other });
    await settled();
    expect(elsewhere.state).toBe('waiting');
  });
});
