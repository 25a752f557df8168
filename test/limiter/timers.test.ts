import { describe, expect, test } from 'vitest';
import { QueueFullError } from '../../src/errors.ts';
import { settled } from '../support/settled.ts';
import { watchTimers } from '../support/watch-timers.ts';
import { bucket, countGranted, makeLimiter } from './make-limiter.ts';

describe('timers', () => {
  test.each([
    ['tokens are in use', { status: 200 }],
    ['the endpoint is paused', { status: 429, retryAfterMs: 60_000 }],
  ])('no waiting call, though %s → no timer', async (_title, feedback) => {
    const { respond, clock } = makeLimiter();
    await respond(3, feedback);
    expect(clock.timerCount).toBe(0);
  });

  test('a thousand calls join the queue → one timer, and none after the last grant', async () => {
    const { acquire, respond, clock } = makeLimiter();
    await respond(3, {});
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
