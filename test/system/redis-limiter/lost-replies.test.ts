import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { fleetsOn } from '../../integration/redis-limiter/fleets.ts';
import { describeWithRedis } from '../../integration/services.ts';
import { makeCounter } from '../../support/counting.ts';
import { openLossyProxy } from '../lossy-proxy.ts';

await describeWithRedis('a connection to Redis that breaks before replies', (url) => {
  const { makeFleet } = fleetsOn(url);

  test('ioredis sends commands again, and their script runs twice → no request is refused', {
    timeout: 60_000,
  }, async () => {
    const limit = 10;
    const { join, toAcquire } = makeFleet({
      onUnavailable: 'reject',
      limits: { 'trackers.createBulk': limit },
    });
    const proxies = await Promise.all([1, 2, 3, 4].map(() => openLossyProxy(url)));
    const limiters = await Promise.all(
      proxies.map(async (proxy) => {
        onTestFinished(() => proxy.close());
        const redis = new Redis(proxy.url, { retryStrategy: () => 20 });
        redis.on('error', () => {});
        onTestFinished(() => redis.disconnect());
        await once(redis, 'ready');
        return join({ redis });
      }),
    );
    const counter = makeCounter('sliding', limit);
    let refused = 0;
    const call = async (limiter: ReturnType<typeof join>): Promise<void> => {
      // A command that gets no reply in time rejects the call, which is then made again.
      const permit = await limiter.acquire(toAcquire()).catch(() => undefined);
      if (permit === undefined) return await sleep(100).then(() => call(limiter));
      permit.send();
      await sleep(10 * Math.random());
      if (!counter.tryCount(performance.now())) refused += 1;
      permit.noteResponse({ status: 200 });
    };
    await Promise.all(limiters.map(call));
    for (const proxy of proxies) proxy.loseReplies(0.25);
    await Promise.all(limiters.flatMap((limiter) => Array.from({ length: 20 }, () => call(limiter))));
    expect(proxies.reduce((sum, { lost }) => sum + lost, 0)).toBeGreaterThan(5);
    expect(refused).toBe(0);
  });
});
