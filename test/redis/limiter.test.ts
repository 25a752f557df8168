import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../src/redis/index.ts';
import { bucket } from '../limiter/make-limiter.ts';
import { makeRedisLimiter } from './limiter/make-redis-limiter.ts';
import { settled } from './limiter/manual-clock.ts';
import { grantAll, ScriptedRedis } from './limiter/scripted-redis.ts';

test('spansProcesses → true, so that the client asks for the name of the account', () => {
  expect(makeRedisLimiter().limiter.spansProcesses).toBe(true);
});

describe('options', () => {
  test.each([
    ['keyPrefix', ''],
    ['keyPrefix', 42],
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
    ['clock', {}],
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

  test.each(['limit', 'maxLimit', 'maxWaitMs', 'maxPauseMs', 'priority'])(
    'acquire with %s -1 → ConfigurationError',
    async (name) => {
      const { limiter } = makeRedisLimiter();
      const asked = limiter.acquire({ bucket, limit: 10, priority: 'interactive', [name]: -1 });
      await expect(asked).rejects.toThrow(ConfigurationError);
    },
  );

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
    expect(calls[0]?.permit?.tokensLeft).toBe(0);
    expect(limiter.snapshot(bucket)).toEqual({ limit: 7, inUse: 1, queued: 2, pausedUntil: null });
  });

  test('a pause that ends between two milliseconds → told in whole ones', async () => {
    const { limiter, sent, clock } = makeRedisLimiter();
    clock.block(0.3);
    (await sent()).report({ status: 429, retryAfterMs: 1_000.1 });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(Math.round(clock.wallNow() + 1_000.1));
  });
});

describe('many accounts', () => {
  /** So many other accounts, used once each, that the limiter looks for buckets to forget. */
  async function crowd({ acquire, clock }: ReturnType<typeof makeRedisLimiter>): Promise<void> {
    for (let account = 0; account < 256; account += 1) {
      const call = acquire({ bucket: { ...bucket, account: `account-${account}-of-the-crowd` } });
      await settled();
      call.permit?.cancel();
    }
    await clock.advance(1);
    acquire({ bucket: { ...bucket, account: 'one more' } });
  }

  test('nothing out, nobody waiting → forgotten', async () => {
    const made = makeRedisLimiter();
    await crowd(made);
    expect(made.limiter.snapshot({ ...bucket, account: 'account-0-of-the-crowd' })).toBeUndefined();
  });

  test.each<[string, (made: ReturnType<typeof makeRedisLimiter>) => unknown]>([
    ['tokens out', ({ sent }) => sent()],
    [
      'a call waiting',
      async ({ acquire, redis }) => {
        redis.reply = () => ({ askInMs: 900 });
        acquire();
        await settled();
        redis.reply = grantAll;
      },
    ],
    [
      'a pause',
      async ({ sent, clock }) => {
        (await sent()).report({ status: 429, retryAfterMs: 60_000 });
        await clock.advance(2_000);
      },
    ],
    [
      'a question under way',
      async ({ acquire, redis }) => {
        redis.reply = () => new Promise(() => {});
        const abort = new AbortController();
        acquire({ signal: abort.signal });
        await settled();
        abort.abort();
        redis.reply = grantAll;
      },
    ],
  ])('%s → not forgotten', async (_title, occupy) => {
    const made = makeRedisLimiter();
    await occupy(made);
    await crowd(made);
    expect(made.limiter.snapshot(bucket)).toBeDefined();
  });
});
