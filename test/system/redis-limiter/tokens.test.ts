import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import type { NodeRedisClient } from '../../../src/redis/redis-client.ts';
import { fleetsOn, silent, take } from '../../integration/redis-limiter/fleets.ts';
import { describeWithRedis } from '../../integration/services.ts';

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

/** A client that loses the first reply to every command and sends the command again, as after a broken connection. */
function repeating(redis: Redis) {
  const commands: string[] = [];
  const client: NodeRedisClient = {
    eval: (script, { keys, arguments: input }) => redis.eval(script, keys.length, ...keys, ...input),
    evalSha: async (sha1, { keys, arguments: input }) => {
      commands.push(sha1);
      await redis.evalsha(sha1, keys.length, ...keys, ...input);
      return redis.evalsha(sha1, keys.length, ...keys, ...input);
    },
  };
  return { client, commands };
}

await describeWithRedis('tokens that processes share', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test.each([
    ['and gets its responses → the other process waits one window', true, 1_000],
    ['and dies after sending → the tokens become free again by themselves', false, 1_500],
  ])('a process uses up the limit %s', async (_title, hasResponses, minMs) => {
    const { join, toAcquire, keys } = makeFleet();
    const permits = await take(join(), toAcquire(), 3);
    const sentAt = performance.now();
    if (hasResponses) for (const permit of permits) permit.report({ status: 200 });
    await take(join(), toAcquire(), 3);
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(minMs);
    expect(await admin.pttl(keys.tokens)).toBeGreaterThan(0);
  });

  test('a permit that is cancelled before sending → its token is free in Redis', async () => {
    const { join, toAcquire, keys } = makeFleet();
    const permit = await join().acquire(toAcquire());
    permit.cancel();
    await vi.waitFor(async () => expect(await admin.zcard(keys.tokens)).toBe(0));
  });

  test.each([
    ['a limit of half a million', 500_000, 1],
    ['more waiting calls than one command serves', 5_000, 2_500],
  ])('%s → Redis grants all calls without a timeout', async (_title, limit, calls) => {
    const lines: string[] = [];
    const logger = { ...silent, warn: (line: string) => lines.push(line) };
    const { join, toAcquire } = makeFleet({ logger, limits: { 'trackers.createBulk': limit } });
    const permits = await take(join(), toAcquire(), calls);
    expect(permits).toHaveLength(calls);
    expect(lines).toEqual([]);
  });

  test('a waiting call aborts → Redis keeps no token and no queue entry for it', async () => {
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

  test('a client that sends each command twice → one token for each call', async () => {
    const { join, toAcquire, keys } = makeFleet();
    await take(join(), toAcquire(), 1);
    const { client, commands } = repeating(admin);
    await take(join({ redis: client }), toAcquire(), 2);
    expect(commands).toHaveLength(1);
    expect(await admin.zcard(keys.tokens)).toBe(3);
  });

  test('background calls in one process → leave the reserve free for an interactive call in another', async () => {
    const { join, toAcquire } = makeFleet({ limits: { 'trackers.createBulk': 10 } });
    const [a, b] = [join(), join()];
    const calls = Array.from({ length: 12 }, () => a.acquire(toAcquire({ priority: 'background' })));
    await Promise.all(calls.slice(0, 9));
    // Resolves at once, or only after a minute, because background calls hold all other tokens until they are cancelled.
    await b.acquire(toAcquire());
    await Promise.all(calls.map(async (call) => (await call).cancel()));
  });

  test('four processes at a limit of 2 → the processes take turns', async () => {
    const { join, toAcquire } = makeFleet({ limits: { 'trackers.createBulk': 2 } });
    const order: number[] = [];
    const abort = new AbortController();
    const calls = [0, 1, 2, 3].flatMap((process) => {
      const limiter = join();
      return Array.from({ length: 5 }, async () => {
        const permit = await limiter.acquire(toAcquire({ signal: abort.signal }));
        order.push(process);
        permit.send();
        permit.report({ status: 200 });
        if (order.length === 10) abort.abort();
      });
    });
    await Promise.allSettled(calls);
    // The first two tokens went to the process that came first.
    expect(order.slice(2, 10).toSorted()).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
  });

  test('a waiting process dies → the next process in the queue still gets a token', async () => {
    const { join, toAcquire, keys } = makeFleet({ limits: { 'trackers.createBulk': 1 } });
    const [a, dead, b] = [join(), join({ redis: mortal(admin) }), join()];
    const [permit] = await take(a, toAcquire(), 1);
    permit?.report({ status: 200 });
    dead.acquire(toAcquire()).catch(() => {});
    await vi.waitFor(async () => expect(await admin.zcard(keys.waiters)).toBe(1));
    // A background call that comes later waits behind the interactive call.
    await expect(b.acquire(toAcquire({ priority: 'background' }))).resolves.toBeDefined();
  });
});
