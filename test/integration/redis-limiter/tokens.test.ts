import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { NodeRedisClient } from '../../../src/redis/index.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, take } from './fleets.ts';

await describeWithRedis('tokens that processes share', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test('a limit that is used up by one process → the other waits for the first token to come back', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const permits = await take(one, asked(), 3);
    for (const permit of permits) permit.report({ status: 200 });
    const settledAt = performance.now();
    await other.acquire(asked());
    expect(performance.now() - settledAt).toBeGreaterThanOrEqual(1_000);
  });

  test('a process that dies after sending → its tokens come back by themselves', async () => {
    const { join, asked, leases, waiting } = makeFleet();
    await take(join(), asked(), 3);
    const sentAt = performance.now();
    await take(join(), asked(), 3);
    const waitedMs = performance.now() - sentAt;
    expect(waitedMs).toBeGreaterThanOrEqual(1_500);
    expect(waitedMs).toBeLessThan(2_000);
    expect(await admin.pttl(leases)).toBeGreaterThan(0);
    expect(await admin.pttl(waiting)).not.toBe(-1);
  });

  test('a call aborts whose token is about to come back → the token goes to another process in time', async () => {
    const { join, asked } = makeFleet();
    const [one, other, third] = [join(), join(), join()];
    for (const permit of await take(one, asked({ limit: 1 }), 1)) permit.report({ status: 200 });
    const settledAt = performance.now();
    const abort = new AbortController();
    const call = other.acquire(asked({ limit: 1, signal: abort.signal }));
    call.catch(() => {});
    await sleep(980);
    abort.abort();
    await third.acquire(asked({ limit: 1 }));
    expect(performance.now() - settledAt).toBeLessThan(1_500);
  });

  test('cancelled before sending → another process has the token at once', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const permit = await one.acquire(asked({ limit: 1 }));
    permit.cancel();
    await sleep(50);
    const startedAt = performance.now();
    await other.acquire(asked({ limit: 1 }));
    expect(performance.now() - startedAt).toBeLessThan(500);
  });

  test('granted and sent only after 2.5 s → nobody else got the token meanwhile', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const permit = await one.acquire(asked({ limit: 1 }));
    let isGranted = false;
    const call = other.acquire(asked({ limit: 1 })).then(() => {
      isGranted = true;
    });
    await sleep(2_500);
    expect(isGranted).toBe(false);
    permit.send();
    permit.report({ status: 200 });
    await call;
  });

  test('a reply that never arrives → its tokens are free as soon as the process is back', async () => {
    let isLost = true;
    const lose = (reply: Promise<unknown>) =>
      reply.then((value) => (isLost ? new Promise<never>(() => {}) : value));
    const redis: NodeRedisClient = {
      eval: (script, call) => lose(admin.eval(script, call.keys.length, ...call.keys, ...call.arguments)),
      evalSha: (sha1, call) => lose(admin.evalsha(sha1, call.keys.length, ...call.keys, ...call.arguments)),
    };
    const { join, asked, leases } = makeFleet({ redis, commandTimeoutMs: 100 });
    const startedAt = performance.now();
    const granted = take(join(), asked(), 3);
    await sleep(150);
    expect(await admin.zcard(leases)).toBe(3);
    isLost = false;
    await granted;
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(await admin.zcard(leases)).toBe(3);
  });

  test.each([
    ['a limit of half a million', 500_000, 1],
    ['more waiting calls than one sync looks at', 5_000, 2_500],
  ])('%s → all granted by Redis, which is not held up', async (_title, limit, calls) => {
    const fallbacks: unknown[] = [];
    const { join, asked } = makeFleet({ onFallback: (info) => fallbacks.push(info) });
    const permits = await take(join(), asked({ limit }), calls);
    expect(permits).toHaveLength(calls);
    expect(fallbacks).toEqual([]);
  });
});
