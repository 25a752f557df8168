import { expect, test, vi } from 'vitest';
import { fleetsOn, silent, take } from '../../integration/redis-limiter/fleets.ts';
import { describeWithRedis } from '../../integration/services.ts';

await describeWithRedis('tokens that processes share', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test.each([
    ['and gets its responses → the other process waits one window', true, 1_000],
    ['and dies after sending → the tokens become free again by themselves', false, 1_500],
  ])('a process uses up the limit %s', async (_title, hasResponses, minMs) => {
    const { join, toAcquire, keys } = makeFleet();
    const permits = await take(join(), toAcquire(), 3);
    const sentAt = performance.now();
    if (hasResponses) for (const permit of permits) permit.noteResponse({ status: 200 });
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
    ['thousands of waiting calls', 5_000, 2_500],
  ])('%s → Redis grants all calls without a timeout', async (_title, limit, calls) => {
    const lines: string[] = [];
    const logger = { ...silent, warn: (line: string) => lines.push(line) };
    const { join, toAcquire } = makeFleet({ logger, limits: { 'trackers.createBulk': limit } });
    const permits = await take(join(), toAcquire(), calls);
    expect(permits).toHaveLength(calls);
    expect(lines).toEqual([]);
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
});
