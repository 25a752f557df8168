import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { QueueFullError, TimeoutError } from '../../src/errors.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { bucket, grantedOf, makeLimiter } from './make-limiter.ts';
import { settled } from './manual-clock.ts';

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

  test('a thousand wait, each with its own deadline → one timer', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3);
    for (let call = 0; call < 1_000; call += 1) acquire({ maxWaitMs: 5_000 - call });
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
    const { acquire, answered, clock } = makeLimiter();
    await answered(3);
    for (let call = 0; call < 1_000; call += 1) acquire();
    expect(clock.requestedDelaysMs).toHaveLength(1);
  });

  test('one of two waiting calls runs out of time → the timer is set once more, for the other', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3, { status: 429, retryAfterMs: 60_000 });
    acquire({ maxWaitMs: 100 });
    acquire();
    await clock.advance(1_000);
    expect(clock.requestedDelaysMs).toEqual([100, 59_900]);
  });

  test('it fires early → the call waits for the rest of its time, and goes then', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3);
    clock.earlyByMs = 2;
    const startedAt = clock.now();
    const call = acquire();
    await clock.advance(1_100);
    expect((call.doneAt ?? 0) - startedAt).toBeGreaterThanOrEqual(1_010);
    expect((call.doneAt ?? 0) - startedAt).toBeLessThan(1_012);
  });

  test('the largest maxUplinkMs → no delay beyond 2^31 - 1 ms is asked for, and the call goes at its end', async () => {
    const maxUplinkMs = 2 ** 31 - 1;
    const { acquire, sent, clock } = makeLimiter({ maxUplinkMs });
    await sent(1, { limit: 1 });
    const call = acquire();
    await clock.advance(maxUplinkMs + 1_009);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.state).toBe('granted');
    expect(Math.max(...clock.requestedDelaysMs)).toBe(2 ** 31 - 1);
  });

  test.each([3_600_000, -3_600_000])('the wall clock steps by %d ms → nothing changes', async (stepMs) => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3, { status: 429, retryAfterMs: 2_000 });
    const call = acquire();
    await clock.advance(500);
    clock.stepWallClock(stepMs);
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

describe('maxWaitMs', () => {
  test('of 500 ms, after a call of 400 ms was aborted → rejected after 500 ms', async () => {
    const { acquire, sent, clock } = makeLimiter();
    await sent(3);
    const controller = new AbortController();
    acquire({ maxWaitMs: 400, signal: controller.signal });
    const call = acquire({ maxWaitMs: 500 });
    controller.abort();
    await clock.advance(500);
    expect(call.error).toBeInstanceOf(TimeoutError);
  });

  test('over before a token comes → TimeoutError of the queue at that moment, no token burnt', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, {}, { limit: 1 });
    const call = acquire({ maxWaitMs: 400 });
    const next = acquire();
    await clock.advance(399);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.error).toBeInstanceOf(TimeoutError);
    expect(call.error).toMatchObject({ phase: 'queue', timeoutMs: 400 });
    await clock.advance(610);
    expect(next.state).toBe('granted');
  });

  test('a token comes in time → granted, and nothing happens at the deadline', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, {}, { limit: 1 });
    const call = acquire({ maxWaitMs: 1_010 });
    await clock.advance(1_010);
    expect(call.state).toBe('granted');
    expect(clock.timerCount).toBe(0);
  });

  test('0 with a free token → granted', async () => {
    const { acquire } = makeLimiter();
    const call = acquire({ maxWaitMs: 0 });
    await settled();
    expect(call.state).toBe('granted');
  });

  test('0 without a free token → rejected at once', async () => {
    const { acquire, answered } = makeLimiter();
    await answered(3);
    const call = acquire({ maxWaitMs: 0 });
    await settled();
    expect(call.error).toBeInstanceOf(TimeoutError);
  });

  test('shorter ones join later → each is rejected in its own time', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 60_000 });
    const startedAt = clock.now();
    const waits = [5_000, 300, 9_000, 1_000];
    const calls = waits.map((maxWaitMs, index) =>
      acquire({ maxWaitMs, priority: index % 2 ? 'interactive' : 'background' }),
    );
    await clock.advance(10_000);
    expect(calls.map((call) => (call.doneAt ?? 0) - startedAt)).toEqual(waits);
  });

  test('behind a closed gate → still served', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 60_000 });
    const call = acquire({ maxWaitMs: 50 });
    await clock.advance(50);
    expect(call.error).toBeInstanceOf(TimeoutError);
  });

  test('passed while the event loop was blocked → rejected, the token goes to the next', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, {}, { limit: 1 });
    const late = acquire({ maxWaitMs: 1_050 });
    const next = acquire();
    clock.block(1_200);
    await clock.advance(0);
    expect(late.error).toBeInstanceOf(TimeoutError);
    expect(next.state).toBe('granted');
  });

  test('Infinity → waits as long as it takes', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3);
    const call = acquire({ maxWaitMs: Number.POSITIVE_INFINITY });
    await clock.advance(1_010);
    expect(call.state).toBe('granted');
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
    expect(grantedOf(calls)).toBe(3);
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
