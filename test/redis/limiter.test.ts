import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../src/redis/index.ts';
import { formatKeys } from '../../src/redis/limiter-script.ts';
import { settled } from '../support/settled.ts';
import { bucket, grantNone, makeRedisLimiter, ScriptedRedis } from './limiter/make-redis-limiter.ts';

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

describe('snapshot', () => {
  test('one token in use and two waiting calls → a snapshot with both, and the limit in Redis', async () => {
    const { limiter, acquire, redis } = makeRedisLimiter();
    redis.reply = () => ({ limit: 7, starts: [0], askInMs: 900 });
    const calls = [acquire(), acquire(), acquire()];
    await settled();
    expect(calls[0]?.permit?.tokensLeft).toBe(0);
    expect(limiter.snapshot(bucket)).toEqual({ limit: 7, inUse: 1, queued: 2, pausedUntil: null });
  });
});

test('a waiting call, then 256 other accounts → idle buckets are deleted, the bucket of the call is kept', async () => {
  const { acquire, limiter, redis } = makeRedisLimiter();
  redis.reply = grantNone;
  acquire();
  await settled();
  for (let account = 0; account < 256; account += 1) {
    acquire({ bucket: { ...bucket, account: `other-${account}` } });
  }
  expect(limiter.snapshot(bucket).queued).toBe(1);
});
