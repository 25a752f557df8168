import { describe, expect, test } from 'vitest';
import { bucket } from '../../limiter/make-limiter.ts';
import { makeRedisLimiter } from './make-redis-limiter.ts';
import { settled } from './manual-clock.ts';

describe('what Redis is told', () => {
  test('an answer → told within 300 ms, as time left until one window after the answer', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    await clock.advance(40);
    permit.report({ status: 200 });
    await clock.advance(299);
    expect(redis.asked).toHaveLength(1);
    await clock.advance(1);
    expect(redis.asked[1]?.leases).toEqual([{ number: 0, backInMs: 710, isExact: true }]);
  });

  test('three answers within 300 ms → one command', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    const permits = [await sent(), await sent(), await sent()];
    for (const permit of permits) {
      permit.report({ status: 200 });
      await clock.advance(50);
    }
    await clock.advance(300);
    expect(redis.asked.slice(3).map(({ leases }) => leases.length)).toEqual([3]);
  });

  test('two answers for tokens of one command → told apart by their numbers', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    const calls = [acquire(), acquire()];
    await settled();
    for (const { permit } of calls) {
      permit?.send();
      permit?.report({ status: 200 });
    }
    await clock.advance(300);
    expect(redis.asked[1]?.leases.map(({ number }) => number)).toEqual([0, 1]);
  });

  test('an answer after which another call asks → told in the same command', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    permit.report({ status: 200 });
    await clock.advance(100);
    acquire();
    await settled();
    expect(redis.asked).toHaveLength(2);
    expect(redis.asked[1]).toMatchObject({ interactive: 1, leases: [{ isExact: true }] });
  });

  test('an answer after 800 ms → the latest bound stands', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    await clock.advance(800);
    permit.report({ status: 200 });
    await clock.advance(300);
    expect(redis.asked[1]?.leases).toEqual([{ number: 0, backInMs: 410, isExact: true }]);
  });

  test('cancelled before sending → told at once, free at once', async () => {
    const { acquire, redis } = makeRedisLimiter();
    const call = acquire();
    await settled();
    call.permit?.cancel();
    await settled();
    expect(redis.asked[1]?.leases).toEqual([{ number: 0, backInMs: 0, isExact: true }]);
  });

  test('cancelled after sending → nothing is told, the service may have counted it', async () => {
    const { sent, redis, clock, limiter } = makeRedisLimiter();
    const permit = await sent();
    permit.cancel();
    await clock.advance(1_000);
    expect(redis.asked).toHaveLength(1);
    expect(limiter.snapshot(bucket)?.inUse).toBe(1);
  });

  test('never answered → nothing is told, Redis holds the latest bound already', async () => {
    const { sent, redis, clock, limiter } = makeRedisLimiter();
    await sent();
    await clock.advance(5_000);
    expect(redis.asked).toHaveLength(1);
    expect(limiter.snapshot(bucket)?.inUse).toBe(0);
  });

  test('granted and not sent → the lease is renewed before it ends, for a minute', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    acquire();
    await clock.advance(69);
    expect(redis.asked).toHaveLength(1);
    await clock.advance(1);
    expect(redis.asked[1]?.leases).toEqual([{ number: 0, backInMs: 2_510, isExact: false }]);
    await clock.advance(120_000);
    const commands = redis.asked.length;
    await clock.advance(120_000);
    expect(redis.asked).toHaveLength(commands);
  });

  test('sent in the last millisecond of its lease → nothing is told, Redis holds the latest bound already', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    const call = acquire();
    await settled();
    clock.block(100);
    call.permit?.send();
    await settled();
    expect(redis.asked).toHaveLength(1);
  });

  test('sent after its lease ended → held from the sending on', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    const call = acquire();
    await settled();
    clock.block(70_000);
    await clock.advance(1);
    redis.asked.length = 0;
    call.permit?.send();
    await settled();
    expect(redis.asked.flatMap(({ leases }) => leases)).toEqual([
      { number: 0, backInMs: 1_510, isExact: false },
    ]);
  });
});

describe('what concerns all processes', () => {
  test('a 429 → told at once, with the pause', async () => {
    const { sent, redis, limiter, clock } = makeRedisLimiter();
    const permit = await sent();
    permit.report({ status: 429, retryAfterMs: 4_000 });
    await settled();
    expect(redis.asked[1]).toMatchObject({ refusal: { pauseMs: 4_000 } });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 4_000);
  });

  test.each([undefined, Number.NaN, -1])('a 429 with a delay of %s → one window', async (retryAfterMs) => {
    const { sent, redis } = makeRedisLimiter();
    const permit = await sent();
    permit.report({ status: 429, retryAfterMs });
    await settled();
    expect(redis.asked[1]).toMatchObject({ refusal: { pauseMs: 1_000 } });
  });

  test('an answer that is no 429 → pauses nobody', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    (await sent()).report({ status: 503, retryAfterMs: 4_000 });
    await clock.advance(300);
    expect(redis.asked[1]?.refusal).toBeUndefined();
  });

  test('a 429 for a request that is answered already → pauses nobody', async () => {
    const { sent, limiter } = makeRedisLimiter();
    const permit = await sent();
    permit.report({ status: 200 });
    permit.report({ status: 429, retryAfterMs: 4_000 });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBeNull();
  });

  test('two 429s that Redis hears of together → the longer pause, and when the later request was sent', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    const older = await sent();
    await clock.advance(10);
    const newer = await sent();
    await clock.advance(5);
    newer.report({ status: 429, retryAfterMs: 4_000 });
    older.report({ status: 429, retryAfterMs: 1_000 });
    await settled();
    expect(redis.asked[2]?.refusal).toEqual({ pauseMs: 4_000, sentMsAgo: 5 });
  });

  test('news that come up while Redis hears others → told right after, and nothing twice', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    const [first, second, third] = [await sent(), await sent(), await sent()];
    redis.reply = ({ refusal }) => {
      if (refusal?.pauseMs === 4_000) second.report({ status: 429, retryAfterMs: 8_000, announcedLimit: 6 });
      return {};
    };
    first.report({ status: 429, retryAfterMs: 4_000, announcedLimit: 5 });
    await settled();
    third.report({ status: 200 });
    await clock.advance(300);
    expect(redis.asked.slice(3).map(({ refusal }) => refusal?.pauseMs)).toEqual([4_000, 8_000, undefined]);
    expect(redis.asked.slice(3).map(({ announcement }) => announcement?.limit)).toEqual([5, 6, undefined]);
  });

  test('a pause of another process → known here', async () => {
    const { acquire, redis, limiter, clock } = makeRedisLimiter();
    redis.reply = () => ({ pausedForMs: 2_000, askInMs: 1_950 });
    acquire();
    await settled();
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 2_000);
  });

  test('another limit than the known one → told at once', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    await clock.advance(40);
    permit.report({ status: 200, announcedLimit: 5 });
    await settled();
    expect(redis.asked[1]?.announcement).toEqual({ limit: 5, sentMsAgo: 40 });
  });

  test.each([10, 0, 2.5, Number.NaN, 1_001])('an announced limit of %s → no news', async (announcedLimit) => {
    const { sent, redis } = makeRedisLimiter();
    const permit = await sent();
    permit.report({ status: 200, announcedLimit });
    await settled();
    expect(redis.asked).toHaveLength(1);
  });

  test('two answers that overtake each other → the limit of the later request is told', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    const older = await sent();
    await clock.advance(10);
    const newer = await sent();
    newer.report({ status: 200, announcedLimit: 5 });
    older.report({ status: 200, announcedLimit: 7 });
    await settled();
    expect(redis.asked.at(-1)).toMatchObject({ announcement: { limit: 5 } });
  });

  test('a limit that Redis knows, though maxLimit hides it → no news', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    redis.reply = ({ interactive }) => ({ limit: 10, announced: 20, starts: interactive > 0 ? [0] : [] });
    for (let time = 0; time < 3; time += 1) {
      const permit = await sent({ maxLimit: 10 });
      permit.report({ status: 200, announcedLimit: 20 });
      await clock.advance(1_000);
    }
    expect(redis.asked.filter(({ announcement }) => announcement)).toHaveLength(0);
    expect(redis.asked.every(({ maxLimit }) => maxLimit === 10)).toBe(true);
  });
});
