import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RedisLimiter } from '../../../src/redis/index.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, take } from './fleets.ts';

await describeWithRedis('turns of processes that wait', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  /** How many calls Redis keeps a turn for. */
  async function callsInTurn(key: string): Promise<number> {
    const values = await admin.hvals(key);
    // Sound: the script writes nothing else there.
    const turns = values.map((value) => JSON.parse(value) as { interactive: number; background: number });
    return turns.reduce((sum, { interactive, background }) => sum + interactive + background, 0);
  }

  test('a waiting call aborts → no lease and no turn is left in Redis', async () => {
    const { join, asked, leases, waiting } = makeFleet();
    const [one, other] = [join(), join()];
    await take(one, asked(), 3);
    const abort = new AbortController();
    const call = other.acquire(asked({ signal: abort.signal }));
    await sleep(50);
    expect(await callsInTurn(waiting)).toBe(1);
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await sleep(50);
    expect(await admin.zcard(leases)).toBe(3);
    expect(await callsInTurn(waiting)).toBe(0);
  });

  test('an interactive call in one process and background calls in another → the interactive one goes first', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const permits = await take(one, asked({ limit: 1 }), 1);
    const order: string[] = [];
    const background = one
      .acquire(asked({ limit: 1, priority: 'background' }))
      .then(() => order.push('background'));
    await sleep(50);
    for (const permit of permits) permit.report({ status: 200 });
    const interactive = other.acquire(asked({ limit: 1 })).then((permit) => {
      order.push('interactive');
      permit.cancel();
    });
    await Promise.all([background, interactive]);
    expect(order).toEqual(['interactive', 'background']);
  });

  test('background calls in one process → leave the reserve free for an interactive call in another', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const calls = Array.from({ length: 12 }, () => one.acquire(asked({ limit: 10, priority: 'background' })));
    await Promise.all(calls.slice(0, 9));
    const startedAt = performance.now();
    await other.acquire(asked({ limit: 10 }));
    expect(performance.now() - startedAt).toBeLessThan(500);
    await Promise.all(calls.map(async (call) => (await call).cancel()));
  });

  test('a process with 60 waiting calls and one with 10 → they take turns', async () => {
    const { join, asked } = makeFleet();
    const order: string[] = [];
    const abort = new AbortController();
    const use = (name: string, limiter: RedisLimiter) =>
      limiter.acquire(asked({ limit: 4, signal: abort.signal })).then((permit) => {
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
    // The first burst went to the process that was there alone. It owes for that, and then each round is shared.
    const rounds = [2, 3, 4].map((round) => order.slice(4 * round, 4 * round + 4));
    for (const round of rounds) expect(new Set(round)).toEqual(new Set(['many', 'few']));
  });
});
