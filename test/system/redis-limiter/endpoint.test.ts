import { expect, test, vi } from 'vitest';
import { LongPauseError } from '../../../src/limiter/limiter.ts';
import { fleetsOn, take } from '../../integration/redis-limiter/fleets.ts';
import { describeWithRedis } from '../../integration/services.ts';

// All processes of a fleet use one connection, so Redis hears of a report before it hears of the next call.
await describeWithRedis('shared state of an endpoint', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test('a 429 in one process → the other process waits for the same Retry-After', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const [permit] = await take(a, toAcquire(), 1);
    permit?.noteResponse({ status: 429, retryAfterMs: 1_500 });
    permit?.settlePause(false);
    const pausedAt = performance.now();
    await b.acquire(toAcquire());
    expect(performance.now() - pausedAt).toBeGreaterThanOrEqual(1_480);
  });

  test('a shorter pause after a longer pause → the longer pause holds for all processes', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b, c] = [join(), join(), join()];
    const [first] = await take(a, toAcquire(), 1);
    const [second] = await take(b, toAcquire(), 1);
    first?.noteResponse({ status: 429, retryAfterMs: 30_000 });
    first?.settlePause(false);
    second?.noteResponse({ status: 429, retryAfterMs: 1_000 });
    await expect(c.acquire(toAcquire({ maxPauseMs: 10_000 }))).rejects.toThrow(LongPauseError);
  });

  test('a limit announced to one process → holds for the other process, up to the limit that its caller set', async () => {
    const { join, toAcquire, bucket } = makeFleet();
    const [a, b, careful] = [join(), join(), join({ limits: { 'trackers.createBulk': 5 } })];
    const [permit] = await take(a, toAcquire(), 1);
    permit?.noteResponse({ status: 200, limit: 8, resetMs: 1_000 });
    await b.acquire(toAcquire());
    await careful.acquire(toAcquire());
    expect(b.snapshot(bucket)?.limit).toBe(8);
    expect(careful.snapshot(bucket)?.limit).toBe(5);
  });

  test('a limit cut to 1 while three tokens are in use → the next request waits for the last token', async () => {
    const { join, toAcquire } = makeFleet();
    const [a, b] = [join(), join()];
    const [first] = await take(a, toAcquire(), 3);
    const sentAt = performance.now();
    first?.noteResponse({ status: 200, limit: 1 });
    await b.acquire(toAcquire());
    expect(performance.now() - sentAt).toBeGreaterThan(1_480);
  });

  test('a bucket that nobody uses → its keys expire', async () => {
    const { join, toAcquire, keys } = makeFleet();
    const [permit] = await take(join(), toAcquire(), 1);
    permit?.noteResponse({ status: 429, retryAfterMs: 20_000, limit: 2 });
    await vi.waitFor(async () => {
      for (const key of [keys.tokens, keys.pause, keys.limit]) {
        expect(await admin.pttl(key)).toBeGreaterThan(0);
        expect(await admin.pttl(key)).toBeLessThanOrEqual(3_600_000);
      }
    });
  });
});
