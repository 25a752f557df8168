import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, take } from './fleets.ts';

await describeWithRedis('what one process learns of an endpoint', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test('a 429 in one process → the other waits as long as the service asked', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const [permit] = await take(a, toAcquire(), 1);
    permit?.report({ status: 429, retryAfterMs: 1_500 });
    const pausedAt = performance.now();
    await sleep(50);
    await b.acquire(toAcquire());
    expect(performance.now() - pausedAt).toBeGreaterThanOrEqual(1_480);
  });

  test('a shorter pause after a longer one → the longer one stands for all', async () => {
    const { join, toAcquire, keys } = makeFleet();
    const [a, b] = [join(), join()];
    const [first] = await take(a, toAcquire(), 1);
    const [second] = await take(b, toAcquire(), 1);
    first?.report({ status: 429, retryAfterMs: 30_000 });
    await sleep(50);
    second?.report({ status: 429, retryAfterMs: 1_000 });
    await sleep(50);
    expect(await admin.pttl(keys.pause)).toBeGreaterThan(29_000);
  });

  test('each process keeps talking to Redis within a pause → its end does not move', async () => {
    const { join, toAcquire, keys } = makeFleet();
    const [a, b] = [join(), join()];
    const [permit] = await take(a, toAcquire(), 1);
    permit?.report({ status: 429, retryAfterMs: 10_000 });
    await sleep(50);
    const endsAt = performance.now() + (await admin.pttl(keys.pause));
    for (let round = 0; round < 5; round += 1) {
      const abort = new AbortController();
      for (const limiter of [a, b]) limiter.acquire(toAcquire({ signal: abort.signal })).catch(() => {});
      await sleep(20);
      abort.abort();
      await sleep(20);
    }
    expect(performance.now() + (await admin.pttl(keys.pause))).toBeLessThan(endsAt + 10);
  });

  test('a limit announced to one process → holds for the other, up to its maxLimit', async () => {
    const { join, toAcquire, bucket } = makeFleet();
    const [a, b, careful] = [join(), join(), join()];
    const [permit] = await take(a, toAcquire(), 1);
    permit?.report({ status: 200, announcedLimit: 8, resetMs: 1_000 });
    await sleep(50);
    await b.acquire(toAcquire());
    await careful.acquire(toAcquire({ maxLimit: 5 }));
    expect(b.snapshot(bucket)?.limit).toBe(8);
    expect(careful.snapshot(bucket)?.limit).toBe(5);
  });

  test('a limit in Redis far above the configured one → five times the configured one at most', async () => {
    const { join, toAcquire, bucket, keys } = makeFleet();
    await admin.set(keys.limit, 1_000_000);
    const limiter = join();
    await limiter.acquire(toAcquire());
    expect(limiter.snapshot(bucket)?.limit).toBe(15);
  });

  test('a limit cut to 1 while three tokens are out → the next request waits for the last of them', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const [first] = await take(a, toAcquire(), 3);
    const sentAt = performance.now();
    first?.report({ status: 200, announcedLimit: 1 });
    await sleep(50);
    await b.acquire(toAcquire());
    expect(performance.now() - sentAt).toBeGreaterThan(1_480);
  });

  test('a bucket that nobody uses → its keys expire', async () => {
    const { join, toAcquire, keys } = makeFleet();
    const [permit] = await take(join(), toAcquire(), 1);
    permit?.report({ status: 429, retryAfterMs: 2_000, announcedLimit: 2 });
    await sleep(50);
    for (const key of [keys.tokens, keys.pause, keys.limit]) {
      expect(await admin.pttl(key)).toBeGreaterThan(0);
      expect(await admin.pttl(key)).toBeLessThanOrEqual(3_600_000);
    }
  });

  test('a clock of Redis that is set back a minute → the next call waits no longer than usual', async () => {
    const { join, toAcquire, keys } = makeFleet();
    await take(join(), toAcquire(), 3);
    await sleep(50);
    // What is stored was written on a clock that was a minute ahead.
    for (const token of await admin.zrange(keys.tokens, '0', '-1')) {
      await admin.zincrby(keys.tokens, 60_000, token);
    }
    const [startedAt, limiter] = [performance.now(), join()];
    await take(limiter, toAcquire(), 3);
    const waitedMs = performance.now() - startedAt;
    expect(waitedMs).toBeGreaterThan(1_000);
    expect(waitedMs).toBeLessThan(4_000);
  });
});
