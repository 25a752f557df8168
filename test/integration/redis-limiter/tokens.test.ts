import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import type { NodeRedisClient } from '../../../src/redis/redis-client.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, silent, take } from './fleets.ts';

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

await describeWithRedis('tokens that processes share', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test('a limit that is used up by one process → the other waits for the first token to come back', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const permits = await take(a, toAcquire(), 3);
    for (const permit of permits) permit.report({ status: 200 });
    const settledAt = performance.now();
    await b.acquire(toAcquire());
    expect(performance.now() - settledAt).toBeGreaterThanOrEqual(1_000);
  });

  test('a process that dies after sending → its tokens come back by themselves', async () => {
    const { join, toAcquire, keys } = makeFleet();
    await take(join(), toAcquire(), 3);
    const sentAt = performance.now();
    await take(join(), toAcquire(), 3);
    const waitedMs = performance.now() - sentAt;
    expect(waitedMs).toBeGreaterThanOrEqual(1_500);
    expect(waitedMs).toBeLessThan(2_000);
    expect(await admin.pttl(keys.tokens)).toBeGreaterThan(0);
  });

  test('cancelled before sending → another process has the token at once', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const permit = await a.acquire(toAcquire({ limit: 1 }));
    permit.cancel();
    await sleep(50);
    const startedAt = performance.now();
    await b.acquire(toAcquire({ limit: 1 }));
    expect(performance.now() - startedAt).toBeLessThan(500);
  });

  test('a reply that never arrives → its tokens come back by themselves', async () => {
    let isLost = true;
    const lose = (reply: Promise<unknown>) =>
      reply.then((value) => (isLost ? new Promise<never>(() => {}) : value));
    const redis: NodeRedisClient = {
      eval: (script, call) => lose(admin.eval(script, call.keys.length, ...call.keys, ...call.arguments)),
      evalSha: (sha1, call) => lose(admin.evalsha(sha1, call.keys.length, ...call.keys, ...call.arguments)),
    };
    const { join, toAcquire, keys } = makeFleet({ redis, commandTimeoutMs: 100 });
    const startedAt = performance.now();
    const granted = take(join(), toAcquire(), 3);
    await vi.waitFor(async () => expect(await admin.zcard(keys.tokens)).toBe(3), {
      timeout: 1_500,
      interval: 20,
    });
    isLost = false;
    await granted;
    // A busy machine takes a while longer than the two seconds that tokens stay out at most.
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });

  test.each([
    ['a limit of half a million', 500_000, 1],
    ['more waiting calls than one command serves', 5_000, 2_500],
  ])('%s → all granted by Redis, which is not held up', async (_title, limit, calls) => {
    const lines: string[] = [];
    const logger = { ...silent, warn: (line: string) => lines.push(line) };
    const { join, toAcquire } = makeFleet({ logger });
    const permits = await take(join(), toAcquire({ limit }), calls);
    expect(permits).toHaveLength(calls);
    expect(lines).toEqual([]);
  });

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
