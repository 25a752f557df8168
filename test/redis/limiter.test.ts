import { describe, expect, test } from 'vitest';
import { ConfigurationError, QueueFullError } from '../../src/errors.ts';
import { LongPauseError } from '../../src/limiter/limiter.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../src/redis/index.ts';
import { formatKeys } from '../../src/redis/limiter-script.ts';
import { countGranted } from '../limiter/make-limiter.ts';
import { settled } from '../support/settled.ts';
import {
  bucket,
  grantNone,
  makeRedisLimiter,
  neverReply,
  QUIET_MS,
  refuseConnection,
  ScriptedRedis,
} from './limiter/make-redis-limiter.ts';

describe('options', () => {
  test.each([
    ['keyPrefix', ''],
    ['keyPrefix', 'a{b'],
    ['onUnavailable', 'wait'],
    ['processes', 0],
    ['maxQueue', -1],
    ['commandTimeoutMs', 0],
    ['logger', {}],
    ['redis', {}],
    ['reserve', 1],
  ])('%s %j → ConfigurationError that names it', (name, value) => {
    // Safe cast: callers without types may pass such values.
    const options = { redis: new ScriptedRedis(), [name]: value } as unknown as RedisLimiterOptions;
    expect(() => new RedisLimiter(options)).toThrow(ConfigurationError);
    expect(() => new RedisLimiter(options)).toThrow(name);
  });

  test('keyPrefix → put before every key', async () => {
    const { acquire, redis } = makeRedisLimiter({ keyPrefix: 'mine:' });
    acquire();
    await settled();
    expect(redis.keys[0]?.every((key) => key.startsWith('mine:{'))).toBe(true);
  });
});

describe('keys', () => {
  test('the keys of a bucket → the same hash tag in braces, so that a cluster keeps them on one node', () => {
    const tags = formatKeys('prefix:', bucket).map((key) => /\{(.*?)\}/.exec(key)?.[1]);
    expect(new Set(tags).size).toBe(1);
    expect(tags[0]).toMatch(/^trackers\.get:[0-9a-f]{32}$/);
  });

  test.each(['baseUrl', 'account', 'endpoint'] as const)('another %s → other keys', (part) => {
    expect(formatKeys('prefix:', { ...bucket, [part]: 'other' })).not.toEqual(formatKeys('prefix:', bucket));
  });
});

test('one token in use and two waiting calls → a snapshot with both, and the limit in Redis', async () => {
  const { limiter, acquire, redis } = makeRedisLimiter();
  redis.reply = () => ({ limit: 7, granted: 1, askInMs: 900 });
  const calls = [acquire(), acquire(), acquire()];
  await settled();
  expect(calls[0]?.permit?.tokensLeft).toBe(0);
  expect(limiter.snapshot(bucket)).toEqual({ limit: 7, inUse: 1, queued: 2, pausedUntil: null });
});

test('a call that waits for Redis aborts → rejects with the reason, and no command follows', async () => {
  const { acquire, redis, clock } = makeRedisLimiter();
  redis.reply = grantNone;
  const abort = new AbortController();
  const call = acquire({ signal: abort.signal });
  await settled();
  abort.abort('enough');
  await clock.advance(10_000);
  expect(call.error).toBe('enough');
  expect(redis.commands.map(({ wanted }) => wanted)).toEqual([1]);
});

describe('maxQueue', () => {
  test('more calls than maxQueue → the latest calls reject after the first reply', async () => {
    const { acquire, redis } = makeRedisLimiter({ maxQueue: 2 });
    redis.reply = () => ({ granted: 1, askInMs: 900 });
    const calls = [acquire(), acquire(), acquire(), acquire(), acquire()];
    await settled();
    const states = calls.map(({ state }) => state);
    expect(states).toEqual(['granted', 'waiting', 'waiting', 'rejected', 'rejected']);
    expect(calls[4]?.error).toBeInstanceOf(QueueFullError);
  });

  test('maxQueue 0 and a reply that leaves free tokens → the other calls get them from the next commands', async () => {
    const { acquire, redis, clock } = makeRedisLimiter({ maxQueue: 0 });
    redis.reply = ({ wanted }) => ({ granted: Math.ceil(wanted / 2) });
    const calls = [acquire(), acquire(), acquire(), acquire()];
    await clock.advance(100);
    expect(countGranted(calls)).toBe(4);
  });

  test('one of the latest calls aborts before the first reply → the latest of the others rejects', async () => {
    const { acquire, redis } = makeRedisLimiter({ maxQueue: 2 });
    redis.reply = grantNone;
    const controller = new AbortController();
    const calls = [
      acquire(),
      acquire({ priority: 'background' }),
      acquire(),
      acquire({ signal: controller.signal }),
    ];
    controller.abort('enough');
    await settled();
    expect(calls.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'rejected', 'rejected']);
    expect(calls[3]?.error).toBe('enough');
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

test('a 429 in another process, whose pause is longer than maxPauseMs → a call rejects after the reply', async () => {
  const { acquire, redis, clock, limiter } = makeRedisLimiter();
  redis.reply = () => ({ pauseLeftMs: 61_000, askInMs: 61_000 });
  const call = acquire({ maxPauseMs: 60_000 });
  await settled();
  expect(call.error).toBeInstanceOf(LongPauseError);
  expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 61_000);
});

test('a call that waits for long, then 256 other accounts → idle buckets are deleted, the bucket of the call is kept', async () => {
  const { acquire, clock, limiter, redis } = makeRedisLimiter();
  redis.reply = grantNone;
  acquire();
  await settled();
  // A bucket is idle only if nothing has used it for ten seconds.
  await clock.advance(10_010);
  for (let account = 0; account < 256; account += 1) {
    acquire({ bucket: { ...bucket, account: `other-${account}` } });
  }
  expect(limiter.snapshot(bucket).queued).toBe(1);
});
