import { describe, expect, test, vi } from 'vitest';
import { bucketOf, countGranted } from '../../limiter/make-limiter.ts';
import { settled } from '../../support/settled.ts';
import { watchTimers } from '../../support/watch-timers.ts';
import { bucket, grantAll, grantNone, makeRedisLimiter } from './make-redis-limiter.ts';

describe('commands about tokens', () => {
  test('three responses within 300 ms → one command with the number of each token', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    const calls = [acquire(), acquire(), acquire()];
    await settled();
    for (const { permit } of calls) permit?.send();
    for (const { permit } of calls) {
      permit?.noteResponse({ status: 200 });
      await clock.advance(50);
    }
    await clock.advance(300);
    const told = redis.commands.slice(1).map(({ tokens }) => tokens.map(([number]) => number));
    expect(told).toEqual([[0, 1, 2]]);
  });

  test.each([true, false])(
    'a request without a response, cancelled: %s → one command with the latest return of its token',
    async (isCancelled) => {
      const { sent, redis, clock, limiter } = makeRedisLimiter();
      const permit = await sent();
      if (isCancelled) permit.cancel();
      await clock.advance(1_000);
      expect(limiter.snapshot(bucket)?.inUse).toBe(1);
      await clock.advance(1_000);
      expect(limiter.snapshot(bucket)?.inUse).toBe(0);
      expect(redis.commands.slice(1).map(({ tokens }) => tokens)).toEqual([[[0, 1_210]]]);
    },
  );

  test('a permit that is cancelled before sending → its token is freed in Redis at once', async () => {
    const { acquire, redis } = makeRedisLimiter();
    const call = acquire();
    await settled();
    call.permit?.cancel();
    await settled();
    expect(redis.commands[1]?.tokens).toEqual([[0, 0]]);
  });

  test('a permit that is not sent → no command; Redis and the process forget its token after 2.51 s', async () => {
    const { acquire, redis, clock, limiter } = makeRedisLimiter();
    acquire();
    await clock.advance(2_509);
    expect(limiter.snapshot(bucket).inUse).toBe(1);
    await clock.advance(1);
    expect(limiter.snapshot(bucket).inUse).toBe(0);
    expect(redis.commands).toHaveLength(1);
  });

  test('a permit that is sent more than a second later → Redis gets the new return of its token at once', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    const call = acquire();
    await clock.advance(1_001);
    call.permit?.send();
    await settled();
    expect(redis.commands[1]?.tokens).toEqual([[0, 1_510]]);
  });
});

describe('commands about the endpoint', () => {
  test('a 429 → its pause is sent at once and only once', async () => {
    const { sent, redis, limiter, clock } = makeRedisLimiter();
    const permits = [await sent(), await sent()];
    permits[0]?.noteResponse({ status: 429, retryAfterMs: 800 });
    await settled();
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 800);
    permits[1]?.noteResponse({ status: 200 });
    await clock.advance(300);
    expect(redis.commands.slice(2).map(({ pauseMs }) => pauseMs)).toEqual([800, 0]);
  });

  test('a 503 with a delay → no pause is sent', async () => {
    const { sent, redis, clock } = makeRedisLimiter();
    (await sent()).noteResponse({ status: 503, retryAfterMs: 4_000 });
    await clock.advance(300);
    expect(redis.commands[1]?.pauseMs).toBe(0);
  });

  test('a 429 while a command is under way → its pause is sent right afterwards', async () => {
    const { sent, redis } = makeRedisLimiter();
    const [first, second] = [await sent(), await sent()];
    redis.reply = ({ pauseMs }) => {
      if (pauseMs === 400) second?.noteResponse({ status: 429, retryAfterMs: 800 });
      return {};
    };
    first?.noteResponse({ status: 429, retryAfterMs: 400 });
    await settled();
    expect(redis.commands.slice(2).map(({ pauseMs }) => pauseMs)).toEqual([400, 800]);
  });

  test.each([
    ['names no used-up quota', false, [1_000, 3_900]],
    ['names a used-up quota', true, [1_000]],
    ['stalls', undefined, [1_000, 3_500]],
  ])(
    'a 429 with a delay of 4 s, whose body %s → pauses of $2 ms are sent',
    async (_title, isQuotaUsedUp, pauses) => {
      const { sent, redis, limiter, clock } = makeRedisLimiter();
      const permit = await sent();
      permit.noteResponse({ status: 429, retryAfterMs: 4_000 });
      await clock.advance(100);
      if (isQuotaUsedUp !== undefined) permit.settlePause(isQuotaUsedUp);
      await clock.advance(500);
      expect(redis.commands.flatMap(({ pauseMs }) => (pauseMs > 0 ? [pauseMs] : []))).toEqual(pauses);
      const endsInMs = isQuotaUsedUp ? 400 : 3_400;
      expect(limiter.snapshot(bucket).pausedUntil).toBe(clock.wallNow() + endsInMs);
    },
  );

  test('a new announced limit → sent at once, and only once', async () => {
    const { sent, redis, clock, limiter } = makeRedisLimiter();
    const permits = [await sent(), await sent()];
    redis.reply = () => ({ limit: 5 });
    for (const permit of permits) permit.noteResponse({ status: 200, limit: 5 });
    await clock.advance(300);
    expect(redis.commands.slice(2).map(({ announcedLimit }) => announcedLimit)).toEqual([5]);
    expect(limiter.snapshot(bucket)?.limit).toBe(5);
  });

  test('a new announced limit while a command is under way → kept, and sent right afterwards', async () => {
    const { sent, redis, limiter } = makeRedisLimiter();
    const [first, second] = [await sent(), await sent()];
    redis.reply = ({ pauseMs, announcedLimit }) => {
      if (pauseMs > 0) second?.noteResponse({ status: 200, limit: 5 });
      return { limit: announcedLimit || 10 };
    };
    first?.noteResponse({ status: 429, retryAfterMs: 4_000 });
    await settled();
    expect(redis.commands.slice(2).map(({ announcedLimit }) => announcedLimit)).toEqual([0, 5]);
    expect(limiter.snapshot(bucket).limit).toBe(5);
  });

  test('a limit of the caller → sent as the highest limit; without it five times the limit', async () => {
    const { acquire, redis } = makeRedisLimiter({ limits: { 'trackers.get': 12 } });
    acquire();
    acquire({ bucket: bucketOf(3) });
    await settled();
    expect(redis.commands.map(({ limit, maxLimit }) => [limit, maxLimit])).toEqual([
      [12, 12],
      [3, 15],
    ]);
  });
});

describe('requesting tokens', () => {
  test('50 calls in one tick → one command that requests 50 tokens', async () => {
    const { acquire, redis } = makeRedisLimiter();
    const calls = Array.from({ length: 50 }, () => acquire());
    await settled();
    expect(redis.commands).toMatchObject([{ interactive: 50, wanted: 50, limit: 10, reserve: 1 }]);
    expect(countGranted(calls)).toBe(50);
  });

  test('a reply with a wait of 700 ms → no command until then', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => ({ askInMs: 700 });
    acquire();
    await clock.advance(699);
    acquire();
    await settled();
    expect(redis.commands).toHaveLength(1);
    await clock.advance(1);
    expect(redis.commands[1]).toMatchObject({ wanted: 2 });
  });

  test('an interactive call while background calls wait → its token is requested at once', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = grantNone;
    acquire({ priority: 'background' });
    await settled();
    acquire();
    await settled();
    expect(redis.commands).toMatchObject([
      { interactive: 0, wanted: 1 },
      { interactive: 1, wanted: 2 },
    ]);
  });
});

describe('a token that no call needs when the reply arrives', () => {
  test('its call was aborted → the token is returned at once', async () => {
    const { acquire, redis } = makeRedisLimiter();
    const abort = new AbortController();
    redis.reply = (command) => {
      if (redis.commands.length === 1) abort.abort(new Error('enough'));
      return grantAll(command);
    };
    const call = acquire({ signal: abort.signal });
    await settled();
    expect(call.error).toEqual(new Error('enough'));
    expect(redis.commands[1]).toMatchObject({ wanted: 0, tokens: [[0, 0]] });
  });

  test('a 429 paused its endpoint meanwhile → the token is returned at once, and the call waits', async () => {
    const { acquire, sent, redis } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = (command) => {
      if (redis.commands.length === 2) permit.noteResponse({ status: 429, retryAfterMs: 1_000 });
      return redis.commands.length === 2 ? grantAll(command) : { pauseLeftMs: 1_000, askInMs: 1_000 };
    };
    const call = acquire();
    await settled();
    expect(call.state).toBe('waiting');
    expect(redis.commands[2]).toMatchObject({ pauseMs: 1_000, wanted: 1 });
    expect(redis.commands[2]?.tokens).toContainEqual([1, 0]);
  });
});

describe('a process that is frozen for some time', () => {
  /** Lets time pass in which no timer runs and no reply is read. */
  function freeze(ms: number): void {
    const thawed = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => thawed() + ms);
  }

  test('5 s before it reads a reply → others may have its token, so it is returned and requested again', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = (command) => {
      if (redis.commands.length === 1) freeze(5_000);
      return grantAll(command);
    };
    const call = acquire();
    await settled();
    expect(redis.commands[1]).toMatchObject({ wanted: 1, firstNumber: 1, tokens: [[0, 0]] });
    expect(call.state).toBe('granted');
  });

  test('5 s before it sends → its token is in use again, and Redis gets the new end at once', async () => {
    const { acquire, redis, limiter } = makeRedisLimiter();
    const call = acquire();
    await settled();
    freeze(5_000);
    expect(limiter.snapshot(bucket).inUse).toBe(0);
    call.permit?.send();
    await settled();
    expect(limiter.snapshot(bucket).inUse).toBe(1);
    expect(redis.commands[1]?.tokens).toEqual([[0, 1_510]]);
  });
});

describe('the timer of a bucket', () => {
  test('a response that is not reported yet → the timer does not keep the process alive', async () => {
    const { sent } = makeRedisLimiter();
    await watchTimers(async (started) => {
      const permit = await sent();
      permit.noteResponse({ status: 200 });
      await settled();
      expect(started.at(-1)?.timer.hasRef()).toBe(false);
    });
  });

  test('a call that waits for its turn → the timer keeps the process alive', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = grantNone;
    await watchTimers(async (started) => {
      acquire();
      await settled();
      expect(started.at(-1)?.timer.hasRef()).toBe(true);
    });
  });
});
