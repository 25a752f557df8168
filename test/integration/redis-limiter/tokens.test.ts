import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { NodeRedisClient } from '../../../src/redis/redis-client.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, silent, take } from './fleets.ts';

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

  test('a call aborts whose token is about to come back → the token goes to another process in time', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b, c] = [join(), join(), join()];
    for (const permit of await take(a, toAcquire({ limit: 1 }), 1)) permit.report({ status: 200 });
    const settledAt = performance.now();
    const abort = new AbortController();
    const call = b.acquire(toAcquire({ limit: 1, signal: abort.signal }));
    call.catch(() => {});
    await sleep(980);
    abort.abort();
    await sleep(20);
    await c.acquire(toAcquire({ limit: 1 }));
    expect(performance.now() - settledAt).toBeLessThan(1_500);
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

  test('granted and sent only after 2.5 s → nobody else got the token meanwhile', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const permit = await a.acquire(toAcquire({ limit: 1 }));
    let isGranted = false;
    const call = b.acquire(toAcquire({ limit: 1 })).then(() => {
      isGranted = true;
    });
    await sleep(2_500);
    expect(isGranted).toBe(false);
    permit.send();
    permit.report({ status: 200 });
    await call;
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
});
