import { describe, expect, test } from 'vitest';
import { ConnectionError } from '../../../src/errors.ts';
import { countGranted } from '../../limiter/make-limiter.ts';
import { makeRedisLimiter, QUIET_MS } from './make-redis-limiter.ts';
import { settled } from './manual-clock.ts';
import { grantAll } from './scripted-redis.ts';

const refused = () => new Error('connect ECONNREFUSED 127.0.0.1:6379');
const silent = () => new Promise<never>(() => {});

describe('without Redis, onUnavailable local', () => {
  test.each([
    ['refuses connections', refused],
    ['never answers', silent],
  ])('Redis %s → calls go on with the share of this process', async (_title, reply) => {
    const { acquire, redis, clock } = makeRedisLimiter({ processes: 4 });
    redis.reply = reply;
    const calls = Array.from({ length: 6 }, () => acquire());
    await clock.advance(QUIET_MS - 1);
    expect(countGranted(calls)).toBe(0);
    await clock.advance(30);
    expect(countGranted(calls)).toBe(2);
    for (const { permit } of calls) {
      permit?.send();
      permit?.report({ status: 200, announcedLimit: 10 });
    }
    await clock.advance(1_030);
    expect(countGranted(calls)).toBe(4);
  });

  test('a limit below the number of processes → still one request at a time', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ processes: 4 });
    redis.reply = refused;
    const calls = [acquire({ limit: 3 }), acquire({ limit: 3 })];
    await clock.advance(QUIET_MS + 30);
    expect(countGranted(calls)).toBe(1);
  });

  test.each([
    ['0, which is no limit', 0],
    ['1,600, which no service allows in a second', 1_600],
    ['20, above maxLimit', 20],
  ])('an announced limit of %s → the share stays', async (_title, announcedLimit) => {
    const { acquire, redis, clock } = makeRedisLimiter({ processes: 2 });
    redis.reply = refused;
    const calls = Array.from({ length: 20 }, () => acquire({ maxLimit: 10 }));
    await clock.advance(QUIET_MS + 30);
    for (const { permit } of calls) {
      permit?.send();
      permit?.report({ status: 200, announcedLimit });
    }
    await clock.advance(1_030);
    expect(countGranted(calls)).toBe(10);
  });

  test('a lower limit is announced → the share is one of it', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ processes: 2 });
    redis.reply = refused;
    const calls = Array.from({ length: 20 }, () => acquire());
    await clock.advance(QUIET_MS + 30);
    for (const { permit } of calls) {
      permit?.send();
      permit?.report({ status: 200, announcedLimit: 4 });
    }
    await clock.advance(1_030);
    expect(countGranted(calls)).toBe(5 + 2);
  });

  test('a 429 → the share is spread over the window', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = refused;
    const refusedOne = acquire();
    await clock.advance(QUIET_MS + 30);
    refusedOne.permit?.send();
    refusedOne.permit?.report({ status: 429, retryAfterMs: 0 });
    const calls = [acquire(), acquire(), acquire()];
    await clock.advance(1_000);
    // A tenth of the limit of 10 is left to others.
    const times = [refusedOne, ...calls].map(({ doneAt }) => Number(doneAt));
    const gaps = calls.map((_, index) => Number(times[index + 1]) - Number(times[index]));
    expect(gaps).toEqual([112, 112, 112]);
  });

  test('Redis is back before the share opens → calls get their tokens from Redis', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = refused;
    const call = acquire();
    await clock.advance(1_000);
    redis.reply = grantAll;
    await clock.advance(250);
    expect(call.state).toBe('granted');
    expect(redis.asked.at(-1)).toMatchObject({ recovers: true, interactive: 1 });
  });

  test('while Redis is away → tried every 250 ms as long as a call waits, without asking for anything', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = refused;
    const abort = new AbortController();
    acquire({ signal: abort.signal });
    await clock.advance(1_100);
    expect(redis.asked.map(({ interactive }) => interactive)).toEqual([1, 0, 0, 0, 0]);
    abort.abort();
    await clock.advance(10_000);
    expect(redis.asked).toHaveLength(5);
    expect(clock.timerCount).toBe(0);
  });

  test('tokens of the own share that are out when Redis is back → told to Redis first', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ processes: 4 });
    redis.reply = refused;
    const calls = Array.from({ length: 3 }, () => acquire());
    await clock.advance(QUIET_MS + 5);
    expect(calls.map(({ permit }) => permit?.tokensLeft)).toEqual([1, 0, undefined]);
    calls[0]?.permit?.send();
    redis.reply = grantAll;
    await clock.advance(260);
    const back = redis.asked.find(({ recovers }) => recovers);
    expect(back).toMatchObject({ share: 2, interactive: 1 });
    // Redis is tried 40 ms after the grants: one was sent 5 ms after, the other may be sent until 100 ms after.
    expect(back?.leases).toEqual([
      { number: 3, backInMs: 1_510 + 5 - 40, isExact: false },
      { number: 4, backInMs: 1_510 + 100 - 40, isExact: false },
    ]);
  });

  test('an answer that comes too late → its tokens are not used, and Redis learns that this process holds none', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    let answerLate: (() => void) | undefined;
    redis.reply = (asked) =>
      new Promise((resolve) => {
        answerLate ??= () => resolve(grantAll(asked));
      });
    const call = acquire();
    await clock.advance(600);
    redis.reply = ({ recovers }) => (recovers ? { askInMs: 900 } : {});
    answerLate?.();
    // The probe that is under way is not answered either.
    await clock.advance(500);
    await clock.advance(250);
    expect(redis.asked.at(-1)).toMatchObject({ recovers: true, leases: [], interactive: 1 });
    expect(call.state).toBe('waiting');
  });

  test('a pause that is known when Redis goes → kept without it', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = refused;
    permit.report({ status: 429, retryAfterMs: 6_000 });
    const call = acquire();
    await clock.advance(5_900);
    expect(call.state).toBe('waiting');
    await clock.advance(400);
    expect(call.state).toBe('granted');
  });

  test('news that Redis did not hear → told when it is back', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const [refusedOne, unsent] = [await sent(), acquire()];
    await settled();
    redis.reply = refused;
    refusedOne.report({ status: 429, retryAfterMs: 6_000, announcedLimit: 5 });
    unsent.permit?.cancel();
    acquire();
    await clock.advance(100);
    redis.reply = () => ({ askInMs: 900 });
    await clock.advance(200);
    const back = redis.asked.find(({ recovers }) => recovers);
    expect(back).toMatchObject({ announcement: { limit: 5 } });
    expect(back?.refusal?.pauseMs).toBeGreaterThan(5_600);
    expect(back?.leases).toEqual([{ number: 0, backInMs: 760, isExact: true }]);
  });

  test.each([
    ['a second', 'the own share is used', 1_000, false],
    ['more than a second', 'Redis is asked first', 1_001, true],
    ['a minute', 'Redis is asked first', 60_000, true],
  ])('a call %s after Redis was asked in vain → %s', async (_when, _outcome, quietMs, recovers) => {
    const { acquire, redis, clock } = makeRedisLimiter();
    let askedAt = 0;
    redis.reply = () => {
      askedAt = clock.now();
      return refused();
    };
    acquire();
    await clock.advance(QUIET_MS + 30);
    await clock.moveTo(askedAt + quietMs);
    redis.reply = grantAll;
    const call = acquire();
    await settled();
    expect(call.state).toBe('granted');
    expect(redis.asked.at(-1)?.recovers).toBe(recovers);
  });

  test('an event loop that was blocked while the answer came → no outage', async () => {
    const { acquire, redis, clock, fallbacks } = makeRedisLimiter();
    let answer: (() => void) | undefined;
    redis.reply = (asked) =>
      new Promise((resolve) => {
        answer = () => resolve(grantAll(asked));
      });
    const call = acquire();
    await settled();
    clock.block(2_000);
    await clock.advance(1);
    answer?.();
    await settled();
    expect(call.state).toBe('granted');
    expect(fallbacks).toEqual([]);
  });
});

describe('without Redis, onUnavailable reject', () => {
  test('a failed command → every waiting call rejects with ConnectionError, never sent', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ onUnavailable: 'reject' });
    redis.reply = refused;
    const calls = [acquire(), acquire()];
    await clock.advance(1);
    for (const { error } of calls) {
      expect(error).toBeInstanceOf(ConnectionError);
      expect(error).toMatchObject({ neverSent: true });
    }
  });

  test('no answer → rejects after commandTimeoutMs', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ onUnavailable: 'reject', commandTimeoutMs: 200 });
    redis.reply = silent;
    const call = acquire();
    await clock.advance(199);
    expect(call.state).toBe('waiting');
    await clock.advance(22);
    expect(call.state).toBe('rejected');
  });

  test('Redis back → the next call is granted', async () => {
    const { acquire, redis, clock, fallbacks } = makeRedisLimiter({ onUnavailable: 'reject' });
    redis.reply = refused;
    acquire();
    await clock.advance(1);
    redis.reply = grantAll;
    const call = acquire();
    await clock.advance(1);
    expect(call.state).toBe('granted');
    expect(fallbacks).toEqual(['unavailable', 'recovered']);
  });

  test('nobody waits any more → no timer and no command goes on for ever', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter({ onUnavailable: 'reject' });
    const permit = await sent();
    redis.reply = refused;
    permit.report({ status: 429, retryAfterMs: 60_000 });
    acquire();
    await clock.advance(5_000);
    const commands = redis.asked.length;
    await clock.advance(30_000);
    expect(redis.asked).toHaveLength(commands);
    expect(clock.timerCount).toBe(0);
  });
});
