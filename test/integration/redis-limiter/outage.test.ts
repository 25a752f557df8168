import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { expect, onTestFinished, test } from 'vitest';
import { OutageProxy } from '../../../bench/fleet/proxy.ts';
import { ConnectionError } from '../../../src/errors.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn } from './fleets.ts';

await describeWithRedis('Redis goes away', (url) => {
  const { makeFleet } = fleetsOn(url);

  test.each(['refused', 'silent'] as const)(
    'it is %s and `onUnavailable` is `reject` → ConnectionError within 1 s',
    async (kind) => {
      const proxy = await OutageProxy.open(url);
      onTestFinished(() => proxy.close());
      const redis = new Redis(proxy.url);
      redis.on('error', () => {});
      onTestFinished(() => redis.disconnect());
      const { join, toAcquire } = makeFleet({ redis, onUnavailable: 'reject' });
      const limiter = join();
      await limiter.acquire(toAcquire());
      await proxy.takeAway(kind);
      const startedAt = performance.now();
      await expect(limiter.acquire(toAcquire())).rejects.toThrow(ConnectionError);
      expect(performance.now() - startedAt).toBeLessThan(1_000);
    },
  );

  test('a client of redis that has lost its server → its calls go on too', async () => {
    const proxy = await OutageProxy.open(url);
    onTestFinished(() => proxy.close());
    const redis = createClient({ url: proxy.url });
    redis.on('error', () => {});
    await redis.connect();
    onTestFinished(() => redis.destroy());
    const { join, toAcquire } = makeFleet({ redis });
    const limiter = join();
    await limiter.acquire(toAcquire());
    await proxy.takeAway('refused');
    await expect(limiter.acquire(toAcquire())).resolves.toBeDefined();
  });
});
