import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import type { RedisLimiter } from '../../../src/redis/index.ts';
import type { NodeRedisClient } from '../../../src/redis/redis-client.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, take } from './fleets.ts';

/** A client that lets one command through and none after it. */
function mortal(redis: Redis): NodeRedisClient {
  let commands = 0;
  const run = <T>(send: () => T): T | Promise<never> => {
    commands += 1;
    return commands === 1 ? send() : new Promise<never>(() => {});
  };
  return {
    eval: (script, { keys, arguments: input }) =>
      run(() => redis.eval(script, keys.length, ...keys, ...input)),
    evalSha: (sha1, { keys, arguments: input }) =>
      run(() => redis.evalsha(sha1, keys.length, ...keys, ...input)),
  };
}

await describeWithRedis('turns of processes that wait', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test('a waiting call aborts → no token and no place is left in Redis', async () => {
    const { join, toAcquire, keys } = makeFleet();
    const [a, b] = [join(), join()];
    await take(a, toAcquire(), 3);
    const abort = new AbortController();
    const call = b.acquire(toAcquire({ signal: abort.signal }));
    await vi.waitFor(async () => expect(await admin.zcard(keys.waiters)).toBe(1));
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await vi.waitFor(async () => expect(await admin.zcard(keys.waiters)).toBe(0));
    expect(await admin.zcard(keys.tokens)).toBe(3);
  });

  test('background calls in one process → leave the reserve free for an interactive call in another', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const calls = Array.from({ length: 12 }, () =>
      a.acquire(toAcquire({ limit: 10, priority: 'background' })),
    );
    await Promise.all(calls.slice(0, 9));
    const startedAt = performance.now();
    await b.acquire(toAcquire({ limit: 10 }));
    expect(performance.now() - startedAt).toBeLessThan(500);
    await Promise.all(calls.map(async (call) => (await call).cancel()));
  });

  test('a process with 60 waiting calls and one with 10 → they take turns', async () => {
    const { join, toAcquire } = makeFleet();
    const order: string[] = [];
    const abort = new AbortController();
    const use = (name: string, limiter: RedisLimiter) =>
      limiter.acquire(toAcquire({ limit: 4, signal: abort.signal })).then((permit) => {
        order.push(name);
        permit.send();
        permit.report({ status: 200 });
        if (order.length === 20) abort.abort();
      });
    const many = join();
    const few = join();
    const calls = Array.from({ length: 60 }, () => use('many', many));
    await sleep(100);
    calls.push(...Array.from({ length: 10 }, () => use('few', few)));
    await Promise.allSettled(calls);
    // The first burst went to the process that was there alone; by calls, the other one would get 2 of the next 16.
    expect(order.slice(4, 20).filter((name) => name === 'few').length).toBeGreaterThanOrEqual(4);
  });

  test('four processes at a limit of 1 → each gets a token in each round', async () => {
    const { join, toAcquire } = makeFleet();
    const order: number[] = [];
    const abort = new AbortController();
    const calls = [0, 1, 2, 3].flatMap((process) => {
      const limiter = join();
      return Array.from({ length: 4 }, async () => {
        const permit = await limiter.acquire(toAcquire({ limit: 1, signal: abort.signal }));
        order.push(process);
        permit.send();
        permit.report({ status: 200 });
        if (order.length === 9) abort.abort();
      });
    });
    await Promise.allSettled(calls);
    // The first token went to the process that was there alone.
    expect(order.slice(1, 9).toSorted()).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
  });

  test('a waiting process that dies → the other one waits at most half a second longer for it', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, dead, b] = [join(), join({ redis: mortal(admin) }), join()];
    const [permit] = await take(a, toAcquire({ limit: 1 }), 1);
    permit?.report({ status: 200 });
    const reportedAt = performance.now();
    dead.acquire(toAcquire({ limit: 1 })).catch(() => {});
    await sleep(50);
    await b.acquire(toAcquire({ limit: 1 }));
    expect(performance.now() - reportedAt).toBeLessThan(2_200);
  });
});
