import { describe, expect, test } from 'vitest';
import { ConnectionError } from '../../../src/errors.ts';
import { countGranted } from '../../limiter/make-limiter.ts';
import { settled } from '../../support/settled.ts';
import {
  bucket,
  grantAll,
  grantNone,
  makeRedisLimiter,
  neverReply,
  QUIET_MS,
  refuseConnection,
} from './make-redis-limiter.ts';

describe('the log', () => {
  test('an outage that several calls and endpoints notice → one line at its start and one at its end', async () => {
    const { acquire, redis, clock, lines } = makeRedisLimiter();
    redis.reply = refuseConnection;
    acquire();
    acquire({ bucket: { ...bucket, endpoint: 'couriers.list' } });
    acquire();
    await clock.advance(1_200);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('ECONNREFUSED');
    expect(lines[0]).toContain('this process uses 1/');
    redis.reply = grantAll;
    await clock.advance(500);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('Redis is back');
  });

  test('a program closes its connection before the last tokens are reported → no line', async () => {
    const { sent, redis, clock, lines } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = () => new Error('The client is closed');
    permit.noteResponse({ status: 200 });
    await clock.advance(10_000);
    expect(redis.commands).toHaveLength(2);
    expect(lines).toEqual([]);
  });

  test('one shard is down, the others are not → one line a minute that Redis is lost', async () => {
    const { acquire, redis, clock, lines } = makeRedisLimiter({ onUnavailable: 'reject' });
    const isDown = (keys: readonly string[]) => keys[0]?.includes('couriers.list') === true;
    redis.reply = (command, keys) => (isDown(keys) ? refuseConnection() : grantAll(command));
    for (let call = 0; call < 10; call += 1) {
      acquire({ bucket: { ...bucket, endpoint: 'couriers.list' } });
      acquire();
      await clock.advance(11_000);
    }
    expect(lines).toEqual(Array(2).fill(expect.stringContaining('calls reject')));
  });

  test('the call that noticed an outage is aborted before the next try → still a line at the end', async () => {
    const { acquire, redis, clock, lines } = makeRedisLimiter();
    redis.reply = refuseConnection;
    const abort = new AbortController();
    acquire({ signal: abort.signal });
    await clock.advance(100);
    redis.reply = neverReply;
    await clock.advance(200);
    abort.abort();
    await clock.advance(1_000);
    redis.reply = grantAll;
    acquire();
    await clock.advance(500);
    expect(lines).toEqual([
      expect.stringContaining('ECONNREFUSED'),
      expect.stringContaining('Redis is back'),
    ]);
  });

  test('Redis does not reply, and each call gives up before `commandTimeoutMs` → one line', async () => {
    const { acquire, redis, clock, lines } = makeRedisLimiter();
    redis.reply = neverReply;
    for (let call = 0; call < 6; call += 1) {
      const abort = new AbortController();
      acquire({ signal: abort.signal });
      await clock.advance(400);
      abort.abort();
      await clock.advance(2_000);
    }
    expect(lines).toEqual([expect.stringContaining('no reply within the `commandTimeoutMs` of 500 ms')]);
  });

  test('a report fails, and Redis is back before the next call → no line', async () => {
    const { acquire, sent, redis, clock, lines } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = refuseConnection;
    permit.noteResponse({ status: 200 });
    await clock.advance(10_000);
    redis.reply = grantAll;
    const call = acquire();
    await settled();
    expect(call.permit).toBeDefined();
    expect(lines).toEqual([]);
  });

  test('a report fails, and Redis is down at the next call → one line at its start and one at its end', async () => {
    const { acquire, sent, redis, clock, lines } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = refuseConnection;
    permit.noteResponse({ status: 200 });
    await clock.advance(10_000);
    acquire();
    await clock.advance(100);
    expect(lines).toEqual([expect.stringContaining('ECONNREFUSED')]);
    redis.reply = grantAll;
    await clock.advance(1_000);
    acquire();
    await clock.advance(100);
    expect(lines).toEqual([expect.anything(), expect.stringContaining('Redis is back')]);
  });
});

describe('without Redis, onUnavailable local', () => {
  test.each([
    ['refuses connections', refuseConnection],
    ['never replies', neverReply],
  ])(
    'Redis %s → calls are granted from the share of this process, also of a lower limit',
    async (_title, reply) => {
      const { acquire, redis, clock } = makeRedisLimiter({ processes: 4 });
      redis.reply = reply;
      const calls = Array.from({ length: 6 }, () => acquire());
      await clock.advance(QUIET_MS - 1);
      expect(countGranted(calls)).toBe(0);
      await clock.advance(30);
      expect(countGranted(calls)).toBe(2);
      for (const { permit } of calls) {
        permit?.send();
        permit?.noteResponse({ status: 200, limit: 4 });
      }
      await clock.advance(1_030);
      expect(countGranted(calls)).toBe(2 + 1);
    },
  );

  test.each([1, 20, 21, 200, 2_000])(
    'Redis does not reply, commandTimeoutMs %i → the whole share is granted every second',
    async (commandTimeoutMs) => {
      const { acquire, redis, clock } = makeRedisLimiter({ commandTimeoutMs });
      redis.reply = neverReply;
      const calls = Array.from({ length: 60 }, () => acquire());
      await clock.advance(commandTimeoutMs + QUIET_MS);
      for (let second = 0; second < 4; second += 1) {
        for (const { permit } of calls) {
          permit?.send();
          permit?.noteResponse({ status: 200, limit: 10 });
        }
        await clock.advance(1_030);
      }
      expect(countGranted(calls)).toBe(50);
    },
  );

  test.each([
    ['a limit below the number of processes → still one request at a time', 4, 3, 'interactive', 1],
    ['a share of ten and background calls only → one token stays free', 1, 10, 'background', 9],
    ['an odd limit and two processes → half of the limit, rounded down', 2, 9, 'interactive', 4],
  ] as const)('%s', async (_title, processes, limit, priority, granted) => {
    const { acquire, redis, clock } = makeRedisLimiter({ processes, limits: { 'trackers.get': limit } });
    redis.reply = refuseConnection;
    const calls = Array.from({ length: 20 }, () => acquire({ priority }));
    await clock.advance(QUIET_MS + 30);
    expect(countGranted(calls)).toBe(granted);
  });

  test('a waiting call → an empty command every 250 ms, until the call is aborted', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = refuseConnection;
    const abort = new AbortController();
    acquire({ signal: abort.signal });
    await clock.advance(1_100);
    expect(redis.commands.map(({ wanted }) => wanted)).toEqual([1, 0, 0, 0, 0]);
    abort.abort();
    await clock.advance(10_000);
    expect(redis.commands).toHaveLength(5);
    expect(clock.timerCount).toBe(0);
  });

  test('tokens of the share in use when Redis is back → Redis gets these tokens and the rest of the share', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ processes: 4 });
    redis.reply = refuseConnection;
    const calls = Array.from({ length: 3 }, () => acquire());
    await clock.advance(QUIET_MS + 5);
    expect(calls.map(({ permit }) => permit?.tokensLeft)).toEqual([1, 0, undefined]);
    calls[0]?.permit?.send();
    redis.reply = grantAll;
    await clock.advance(260);
    const back = redis.commands.find(({ recovers }) => recovers === 1);
    expect(back).toMatchObject({ shareLeft: 0, wanted: 1 });
    expect(back?.tokens.map(([number]) => number)).toEqual([3, 4]);
  });

  test('Redis is back, and its first reply is slow → the rest of the share is granted by Redis only', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = refuseConnection;
    const calls = Array.from({ length: 30 }, () => acquire());
    await clock.advance(QUIET_MS - 100);
    redis.reply = async ({ wanted, shareLeft }) => {
      if (wanted > 0) await new Promise((resolve) => setTimeout(resolve, 200));
      return { granted: Math.min(wanted, shareLeft), askInMs: 900 };
    };
    await clock.advance(500);
    expect(countGranted(calls)).toBe(10);
  });

  test('Redis is back, but its first reply does not come → the share is used again', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = refuseConnection;
    const calls = Array.from({ length: 30 }, () => acquire());
    await clock.advance(QUIET_MS - 100);
    redis.reply = ({ wanted }) => (wanted > 0 ? neverReply() : {});
    await clock.advance(200);
    expect(countGranted(calls)).toBe(0);
    await clock.advance(520);
    expect(countGranted(calls)).toBe(10);
  });

  test('a reply that comes too late → its tokens are not used', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    let replyLate: (() => void) | undefined;
    redis.reply = (command) =>
      new Promise((resolve) => {
        replyLate ??= () => resolve(grantAll(command));
      });
    const call = acquire();
    await clock.advance(600);
    redis.reply = grantNone;
    replyLate?.();
    // The probe that is under way gets no reply either.
    await clock.advance(750);
    expect(redis.commands.at(-1)).toMatchObject({ recovers: 1, tokens: [], wanted: 1 });
    expect(call.state).toBe('waiting');
  });

  test('a pause that is known when the outage begins → kept without Redis', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = refuseConnection;
    permit.noteResponse({ status: 429, retryAfterMs: 6_000 });
    const call = acquire();
    await clock.advance(5_900);
    expect(call.state).toBe('waiting');
    await clock.advance(400);
    expect(call.state).toBe('granted');
  });

  test('a pause, a limit and a response during the outage → sent when Redis is back', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = refuseConnection;
    permit.noteResponse({ status: 429, retryAfterMs: 6_000, limit: 5 });
    permit.settlePause(false);
    acquire();
    await clock.advance(100);
    redis.reply = grantNone;
    await clock.advance(200);
    const back = redis.commands.find(({ recovers }) => recovers === 1);
    expect(back).toMatchObject({ announcedLimit: 5, tokens: [[0, 760]] });
    expect(back?.pauseMs).toBeGreaterThan(5_600);
  });

  test.each([
    ['before the timeout of the next try', 'the share is used', 770, 0],
    ['after that timeout', 'Redis is tried first', 771, 1],
  ])('a failed command, then a call %s → %s', async (_when, _outcome, quietMs, recovers) => {
    const { acquire, redis, clock } = makeRedisLimiter();
    let askedAt = 0;
    redis.reply = () => {
      askedAt = clock.now();
      return refuseConnection();
    };
    acquire();
    await clock.advance(QUIET_MS + 30);
    await clock.advance(askedAt + quietMs - clock.now());
    redis.reply = grantAll;
    const call = acquire();
    await settled();
    expect(call.state).toBe('granted');
    expect(redis.commands.at(-1)?.recovers).toBe(recovers);
  });
});

describe('without Redis, onUnavailable reject', () => {
  test('a failed command → every waiting call rejects with ConnectionError, never sent', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ onUnavailable: 'reject' });
    redis.reply = refuseConnection;
    const calls = [acquire(), acquire()];
    await clock.advance(1);
    for (const { error } of calls) {
      expect(error).toBeInstanceOf(ConnectionError);
      expect(error).toMatchObject({ neverSent: true });
    }
  });
});
