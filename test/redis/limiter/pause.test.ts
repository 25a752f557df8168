import { describe, expect, test } from 'vitest';
import { LongPauseError } from '../../../src/limiter/limiter.ts';
import { bucket } from '../../limiter/make-limiter.ts';
import { makeRedisLimiter } from './make-redis-limiter.ts';
import { settled } from './manual-clock.ts';

const busy = () => ({ askInMs: 900 });

describe('a pause longer than maxPauseMs', () => {
  test('told by an answer to this process → waiting and later calls reject at once, with what is left of it', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = busy;
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

  test('told to another process → a call rejects once Redis tells', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = () => ({ pausedForMs: 61_000, askInMs: 60_950 });
    const call = acquire({ maxPauseMs: 60_000 });
    await settled();
    expect(call.error).toBeInstanceOf(LongPauseError);
  });

  test('nobody waits for its end → Redis is told so at once, and then is left alone', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = ({ interactive }) => ({
      pausedForMs: 61_000,
      ...(interactive > 0 ? { askInMs: 60_950 } : {}),
    });
    acquire({ maxPauseMs: 60_000 });
    await settled();
    expect(redis.asked.map(({ interactive }) => interactive)).toEqual([1, 0]);
    await clock.advance(120_000);
    expect(redis.asked).toHaveLength(2);
  });

  test('others would wait for its end → they do', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = busy;
    const patient = [acquire(), acquire({ maxPauseMs: 61_000 }), acquire({ maxPauseMs: 600_000 })];
    const impatient = acquire({ maxPauseMs: 0 });
    await settled();
    permit.report({ status: 429, retryAfterMs: 61_000 });
    await clock.advance(10_000);
    expect(patient.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting']);
    expect(impatient.state).toBe('rejected');
  });

  test('the rest of it is short enough → a later call waits', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    (await sent()).report({ status: 429, retryAfterMs: 61_000 });
    redis.reply = busy;
    await clock.advance(2_000);
    const call = acquire({ maxPauseMs: 60_000 });
    await settled();
    expect(call.state).toBe('waiting');
  });

  test('without Redis → waiting calls reject as well', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = () => new Error('connect ECONNREFUSED');
    const call = acquire({ maxPauseMs: 60_000 });
    await clock.advance(500);
    permit.report({ status: 429, retryAfterMs: 61_000 });
    await settled();
    expect(call.error).toBeInstanceOf(LongPauseError);
  });
});

describe('the end of a pause', () => {
  test('a delay without sense → one hour, here and for all', async () => {
    const { sent, redis, limiter, clock } = makeRedisLimiter();
    const permit = await sent();
    permit.report({ status: 429, retryAfterMs: Number.MAX_SAFE_INTEGER });
    await settled();
    expect(redis.asked[1]).toMatchObject({ refusal: { pauseMs: 3_600_000 } });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 3_600_000);
  });

  test('a shorter pause later → the longer one stands', async () => {
    const { sent, limiter, clock } = makeRedisLimiter();
    const [first, second] = [await sent(), await sent()];
    first?.report({ status: 429, retryAfterMs: 10_000 });
    second?.report({ status: 429, retryAfterMs: 1_000 });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 10_000);
  });

  test('Redis tells of the same pause a little later → its end does not move', async () => {
    const { sent, redis, limiter, clock } = makeRedisLimiter();
    const permit = await sent();
    const endsAt = clock.wallNow() + 1_000;
    redis.reply = () => ({ pausedForMs: 1_000 });
    permit.report({ status: 429, retryAfterMs: 1_000 });
    clock.block(20);
    await settled();
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(endsAt);
  });

  test('shorter than what two messages of one pause may differ by → kept', async () => {
    const { sent, limiter, clock } = makeRedisLimiter();
    (await sent()).report({ status: 429, retryAfterMs: 15 });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 15);
  });

  test.each([
    ['at its end', { pausedForMs: 75, starts: [75] }],
    ['20 ms before, which is no other end', { starts: [30] }],
  ])(
    'told by an answer that was slow on its way → the token that starts %s is used',
    async (_title, grant) => {
      const { acquire, redis, clock } = makeRedisLimiter();
      redis.reply = () => {
        clock.block(50);
        return { pausedForMs: 1_000, askInMs: 900 };
      };
      const call = acquire();
      await settled();
      const grants = [grant];
      redis.reply = () => grants.shift() ?? busy();
      await clock.advance(900 + 75);
      expect(call.state).toBe('granted');
    },
  );
});
