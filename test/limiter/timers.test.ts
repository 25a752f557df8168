import { describe, expect, test } from 'vitest';
import { QueueFullError } from '../../src/errors.ts';
import { settled } from '../support/settled.ts';
import { watchTimers } from '../support/watch-timers.ts';
import { bucket, countGranted, makeLimiter } from './make-limiter.ts';

describe('the one timer', () => {
  test.each([
    ['tokens are out', { status: 200 }],
    ['the endpoint is paused', { status: 429, retryAfterMs: 60_000 }],
  ])('nobody waits, though %s → no timer', async (_title, feedback) => {
    const { answered, clock } = makeLimiter();
    await answered(3, feedback);
    expect(clock.timerCount).toBe(0);
  });

  test('a thousand calls join the queue → the timer is set once, and gone when the last is granted', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(3, {}, { limit: 3 });
    await watchTimers(async (started) => {
      for (let call = 0; call < 1_000; call += 1) acquire();
      expect(started).toHaveLength(1);
    });
    expect(clock.timerCount).toBe(1);
    await clock.advance(1_000 * 60_000);
    expect(clock.timerCount).toBe(0);
  });
});

describe('maxQueue', () => {
  test.each([
    ['of 1, an interactive call waits and a background one comes', 1, ['interactive', 'background']],
    ['of 1, a background call waits and an interactive one comes', 1, ['background', 'interactive']],
    ['of 1, two background calls come', 1, ['background', 'background']],
    ['of 2, a third call comes', 2, ['interactive', 'background', 'interactive']],
  ] as const)('%s → the last one is rejected, the others wait', async (_title, maxQueue, priorities) => {
    const { acquire, answered, limiter } = makeLimiter({ maxQueue });
    await answered(3);
    const calls = priorities.map((priority) => acquire({ priority }));
    await settled();
    expect(calls.at(-1)?.error).toBeInstanceOf(QueueFullError);
    expect(calls.slice(0, -1).map(({ state }) => state)).toEqual(Array(maxQueue).fill('waiting'));
    expect(limiter.snapshot(bucket)?.queued).toBe(maxQueue);
  });

  test('of 0 → calls that can go at once do, the next is rejected', async () => {
    const { acquire } = makeLimiter({ maxQueue: 0 });
    const calls = [acquire(), acquire(), acquire(), acquire()];
    await settled();
    expect(countGranted(calls)).toBe(3);
    expect(calls[3]?.error).toBeInstanceOf(QueueFullError);
  });

  test('an interactive call finds the reserved token behind a full queue of background calls → granted', async () => {
    const { acquire, tryAcquire } = makeLimiter({ maxQueue: 1 });
    for (let call = 0; call < 10; call += 1) acquire({ limit: 10, priority: 'background' });
    expect(await tryAcquire()).toBe('granted');
  });
});
