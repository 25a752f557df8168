import { describe, expect, test } from 'vitest';
import { QueueFullError } from '../../../src/errors.ts';
import { LongPauseError } from '../../../src/limiter/limiter.ts';
import { settled } from '../../support/settled.ts';
import {
  bucket,
  grantNone,
  makeRedisLimiter,
  neverReply,
  QUIET_MS,
  refuseConnection,
} from './make-redis-limiter.ts';

describe('aborts', () => {
  test('a signal that has aborted → rejects with its reason, no command', async () => {
    const { acquire, redis } = makeRedisLimiter();
    const call = acquire({ signal: AbortSignal.abort('enough') });
    await settled();
    expect(call.error).toBe('enough');
    expect(redis.commands).toHaveLength(0);
  });

  test('the last waiting call aborts → a command at once that no call waits', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = grantNone;
    const abort = new AbortController();
    const call = acquire({ signal: abort.signal });
    await settled();
    abort.abort('enough');
    await settled();
    expect(call.error).toBe('enough');
    expect(redis.commands.map(({ wanted }) => wanted)).toEqual([1, 0]);
  });
});

describe('maxQueue', () => {
  test('more calls than maxQueue → the latest calls reject after the first reply', async () => {
    const { acquire, redis } = makeRedisLimiter({ maxQueue: 2 });
    redis.reply = () => ({ starts: [0], askInMs: 900 });
    const calls = [acquire(), acquire(), acquire(), acquire(), acquire()];
    await settled();
    const states = calls.map(({ state }) => state);
    expect(states).toEqual(['granted', 'waiting', 'waiting', 'rejected', 'rejected']);
    expect(calls[4]?.error).toBeInstanceOf(QueueFullError);
  });

  test.each([
    ['refuses connections', refuseConnection],
    ['does not reply', neverReply],
  ])('maxQueue 0, Redis %s and the share has tokens → granted', async (_title, reply) => {
    const { acquire, redis, clock } = makeRedisLimiter({ maxQueue: 0 });
    redis.reply = reply;
    acquire();
    await clock.advance(QUIET_MS);
    const calls = [];
    for (let call = 0; call < 6; call += 1) {
      calls.push(acquire());
      await clock.advance(1_000);
    }
    expect(calls.map(({ state }) => state)).toEqual(Array.from({ length: 6 }, () => 'granted'));
  });

  test('maxQueue 0 without Redis, more calls than the share has → the rest reject', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ maxQueue: 0, processes: 5 });
    redis.reply = refuseConnection;
    acquire();
    await clock.advance(QUIET_MS);
    const calls = [acquire(), acquire(), acquire()];
    await settled();
    expect(calls.map(({ state }) => state)).toEqual(['granted', 'granted', 'rejected']);
    expect(calls[2]?.error).toBeInstanceOf(QueueFullError);
  });
});

describe('a pause longer than maxPauseMs', () => {
  test('a 429 in this process → waiting and later calls reject at once, with the rest of the pause', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = grantNone;
    const waiting = [
      acquire({ maxPauseMs: 60_000 }),
      acquire({ maxPauseMs: 60_000, priority: 'background' }),
    ];
    await settled();
    permit.report({ status: 429, retryAfterMs: 61_000 });
    await settled();
    for (const { error } of waiting) {
      expect(error).toBeInstanceOf(LongPauseError);
      expect(error).toMatchObject({ pausedForMs: 61_000 });
    }
    await clock.advance(500);
    const later = acquire({ maxPauseMs: 60_000 });
    await settled();
    expect(later.error).toMatchObject({ pausedForMs: 60_500 });
  });

  test('a 429 in another process → a call rejects after the reply, and a command says that no call waits', async () => {
    const { acquire, redis, clock, limiter } = makeRedisLimiter();
    redis.reply = ({ wanted }) => ({ pauseLeftMs: 61_000, askInMs: wanted > 0 ? 60_950 : 0 });
    const call = acquire({ maxPauseMs: 60_000 });
    await settled();
    expect(call.error).toBeInstanceOf(LongPauseError);
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 61_000);
    await clock.advance(120_000);
    expect(redis.commands).toMatchObject([
      { wanted: 1, pauseMs: 0 },
      { wanted: 0, pauseMs: 0 },
    ]);
  });
});

describe('the end of a pause', () => {
  test('a shorter pause after a longer pause → the longer pause holds', async () => {
    const { sent, limiter, clock } = makeRedisLimiter();
    const [first, second] = [await sent(), await sent()];
    first.report({ status: 429, retryAfterMs: 10_000 });
    second.report({ status: 429, retryAfterMs: 1_000 });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 10_000);
  });
});
