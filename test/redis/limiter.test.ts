import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../src/redis/index.ts';
import { bucket } from '../limiter/make-limiter.ts';
import { settled } from '../limiter/manual-clock.ts';
import { makeRedisLimiter } from './limiter/make-redis-limiter.ts';
import { ScriptedRedis } from './limiter/scripted-redis.ts';

describe('options', () => {
  test.each([
    ['keyPrefix', ''],
    ['keyPrefix', 'a{b'],
    ['keyPrefix', 'a}b'],
    ['onUnavailable', 'wait'],
    ['processes', 0],
    ['processes', 1.5],
    ['maxQueue', -1],
    ['maxUplinkMs', -1],
    ['reserve', -1],
    ['commandTimeoutMs', 0],
    ['onFallback', 'log'],
    ['logger', {}],
    ['redis', {}],
  ])('%s %j → ConfigurationError that names it', (name, value) => {
    // Sound for a test of what callers without types pass.
    const options = { redis: new ScriptedRedis(), [name]: value } as unknown as RedisLimiterOptions;
    expect(() => new RedisLimiter(options)).toThrow(ConfigurationError);
    expect(() => new RedisLimiter(options)).toThrow(name);
  });

  test('an unknown option → ConfigurationError that names it', () => {
    const options = { redis: new ScriptedRedis(), prefix: 'a' };
    expect(() => new RedisLimiter(options)).toThrow(/`prefix`/);
  });

  test.each(['limit', 'maxLimit', 'maxWaitMs'])('acquire with %s -1 → ConfigurationError', async (name) => {
    const { limiter } = makeRedisLimiter();
    const asked = limiter.acquire({ bucket, limit: 10, priority: 'interactive', [name]: -1 });
    await expect(asked).rejects.toThrow(ConfigurationError);
  });

  test('a new limiter → sends nothing', async () => {
    const { redis } = makeRedisLimiter();
    await settled();
    expect(redis.asked).toHaveLength(0);
  });
});

describe('snapshot', () => {
  test('a bucket nobody asked for → undefined', () => {
    expect(makeRedisLimiter().limiter.snapshot(bucket)).toBeUndefined();
  });

  test('one token out and two calls waiting → told so, with the limit that Redis knows', async () => {
    const { limiter, acquire, redis } = makeRedisLimiter();
    redis.reply = () => ({ limit: 7, starts: [0], askInMs: 900 });
    const calls = [acquire(), acquire(), acquire()];
    await settled();
    expect(calls[0]?.ticket?.tokensLeft).toBe(0);
    expect(limiter.snapshot(bucket)).toEqual({ limit: 7, inUse: 1, queued: 2, pausedUntil: null });
  });

  test('300 buckets used once each → idle ones are forgotten', async () => {
    const { limiter, acquire, clock } = makeRedisLimiter();
    const of = (index: number) => ({ ...bucket, account: `account-${index}` });
    for (let index = 0; index < 256; index += 1) {
      const call = acquire({ bucket: of(index) });
      await settled();
      call.ticket?.cancel();
    }
    await clock.advance(1_000);
    acquire({ bucket: of(256) });
    expect(limiter.snapshot(of(0))).toBeUndefined();
  });
});
