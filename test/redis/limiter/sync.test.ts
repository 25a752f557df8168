import { describe, expect, test } from 'vitest';
import { keysOf } from '../../../src/redis/limiter-sync.ts';
import { bucket, countGranted } from '../../limiter/make-limiter.ts';
import { makeRedisLimiter } from './make-redis-limiter.ts';
import { settled } from './manual-clock.ts';

describe('keys', () => {
  test('the keys of a bucket → what stands in braces is the same in all, so a cluster keeps them together', () => {
    const tags = keysOf('prefix:', bucket).map((key) => /\{(.*?)\}/.exec(key)?.[1]);
    expect(new Set(tags).size).toBe(1);
    expect(tags[0]).toMatch(/^trackers\.get:[0-9a-f]{32}$/);
  });

  test.each(['baseUrl', 'account', 'endpoint'] as const)('another %s → other keys', (part) => {
    expect(keysOf('prefix:', { ...bucket, [part]: 'other' })).not.toEqual(keysOf('prefix:', bucket));
  });

  test('an endpoint with braces → still one pair of braces', () => {
    const [key = ''] = keysOf('prefix:', { ...bucket, endpoint: '{}x}' });
    expect(key).toMatch(/^prefix:\{x:[0-9a-f]{32}\}:2:leases$/);
  });

  test('the account → not in the keys', () => {
    expect(keysOf('prefix:', { ...bucket, account: 'a1b2c3' }).join()).not.toContain('a1b2c3');
  });
});

describe('asking', () => {
  test('50 calls in one tick → one command that asks for all', async () => {
    const { acquire, redis } = makeRedisLimiter();
    const calls = Array.from({ length: 50 }, () => acquire());
    await settled();
    expect(redis.asked).toMatchObject([{ interactive: 50, background: 0, limit: 10 }]);
    expect(countGranted(calls)).toBe(50);
  });

  test('calls of both priorities → each counted for itself', async () => {
    const { acquire, redis } = makeRedisLimiter();
    acquire();
    acquire({ priority: 'background' });
    acquire({ priority: 'background' });
    await settled();
    expect(redis.asked).toMatchObject([{ interactive: 1, background: 2 }]);
  });

  test('told to come back in 700 ms → silent until then', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => ({ askInMs: 700 });
    acquire();
    await clock.advance(699);
    acquire();
    await settled();
    expect(redis.asked).toHaveLength(1);
    await clock.advance(1);
    expect(redis.asked).toHaveLength(2);
    expect(redis.asked[1]).toMatchObject({ interactive: 2 });
  });

  test('calls that come while Redis is being asked → asked for right after', async () => {
    const { acquire } = makeRedisLimiter();
    const first = acquire();
    await Promise.resolve();
    await Promise.resolve();
    const second = acquire();
    await settled();
    expect([first.state, second.state]).toEqual(['granted', 'granted']);
  });

  test('an interactive call while background calls wait → asked for at once', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = () => ({ askInMs: 700 });
    acquire({ priority: 'background' });
    await settled();
    acquire();
    await settled();
    expect(redis.asked).toMatchObject([
      { interactive: 0, background: 1 },
      { interactive: 1, background: 1 },
    ]);
  });

  test('an interactive call while Redis is being asked for a background call → asked for right after', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = ({ interactive }) => ({ starts: interactive > 0 ? [0] : [], askInMs: 900 });
    acquire({ priority: 'background' });
    await Promise.resolve();
    await Promise.resolve();
    const call = acquire();
    await settled();
    expect(redis.asked[0]).toMatchObject({ interactive: 0, background: 1 });
    expect(call.state).toBe('granted');
  });

  test('an interactive call after another one was served and background calls wait on → asked for at once', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = ({ interactive }) => ({ starts: interactive > 0 ? [0] : [], askInMs: 900 });
    acquire();
    acquire({ priority: 'background' });
    await settled();
    const call = acquire();
    await settled();
    expect(call.state).toBe('granted');
  });

  test('an answer that is no list → counts as Redis failing, nothing throws', async () => {
    const { acquire, redis, fallbacks } = makeRedisLimiter();
    redis.evalSha = async () => 'OK';
    acquire();
    await settled();
    expect(fallbacks).toEqual(['unavailable']);
  });
});

describe('tokens that come back soon', () => {
  test('a token that is free in 120 ms → granted then, without another command', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => ({ starts: [120] });
    const call = acquire();
    await clock.advance(119);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.state).toBe('granted');
    expect(redis.asked).toHaveLength(1);
  });

  test('tokens that Redis names out of their order → each granted at its time', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => ({ starts: [120, 40] });
    const calls = [acquire(), acquire()];
    await clock.advance(40);
    expect(countGranted(calls)).toBe(1);
    await clock.advance(80);
    expect(countGranted(calls)).toBe(2);
  });

  test('the call gives up before → the token goes back for the time it would have been free', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => ({ starts: [120] });
    const abort = new AbortController();
    const call = acquire({ signal: abort.signal });
    await clock.advance(20);
    abort.abort(new Error('enough'));
    await settled();
    expect(call.error).toEqual(new Error('enough'));
    expect(redis.asked[1]).toMatchObject({
      interactive: 0,
      leases: [{ number: 0, backInMs: 100, isExact: true }],
    });
  });

  test('the first of two waiting calls gives up → the second takes its token', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = ({ interactive }) => (interactive > 1 ? { starts: [120], askInMs: 900 } : { askInMs: 900 });
    const abort = new AbortController();
    acquire({ signal: abort.signal });
    const second = acquire();
    await settled();
    abort.abort();
    await clock.advance(120);
    expect(second.state).toBe('granted');
  });

  test('a 429 arrives before → the token is not used', async () => {
    const { acquire, sent, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    redis.reply = ({ interactive, refusal }) =>
      refusal ? { pausedForMs: 1_000, askInMs: 950 } : { starts: interactive > 0 ? [120] : [] };
    const call = acquire();
    await settled();
    permit.report({ status: 429, retryAfterMs: 1_000 });
    await clock.advance(500);
    expect(call.state).toBe('waiting');
    const returned = redis.asked.flatMap(({ leases }) => leases);
    expect(returned).toContainEqual({ number: 1, backInMs: 120, isExact: true });
  });
});

test('keyPrefix → before every key', async () => {
  const { acquire, redis } = makeRedisLimiter({ keyPrefix: 'mine:' });
  acquire();
  await settled();
  expect(redis.keys[0]?.every((key) => key.startsWith('mine:{'))).toBe(true);
});
