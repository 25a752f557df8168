import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RedisLimiter } from '../../../src/redis/index.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, take } from './fleets.ts';

await describeWithRedis('turns of processes that wait', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test('a waiting call aborts → no token and no place is left in Redis', async () => {
    const { join, toAcquire, keys } = makeFleet();
    const [a, b] = [join(), join()];
    await take(a, toAcquire(), 3);
    const abort = new AbortController();
    const call = b.acquire(toAcquire({ signal: abort.signal }));
    await sleep(50);
    expect(await admin.zcard(keys.waiters)).toBe(1);
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await sleep(50);
    expect(await admin.zcard(keys.tokens)).toBe(3);
    expect(await admin.zcard(keys.waiters)).toBe(0);
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
    // The first burst went to the process that was there alone. From then on each round is shared.
    const rounds = [2, 3, 4].map((round) => order.slice(4 * round, 4 * round + 4));
    for (const round of rounds) expect(new Set(round)).toEqual(new Set(['many', 'few']));
  });
});
