import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { expect, onTestFinished, test } from 'vitest';
import { bundled } from '../../../scripts/support/bundled.ts';
import { ConnectionError } from '../../../src/errors.ts';
import { REDIS_CLIENTS } from '../../integration/redis-clients.ts';
import { fleetsOn, take } from '../../integration/redis-limiter/fleets.ts';
import { describeWithRedis } from '../../integration/services.ts';
import { OutageProxy } from '../../support/fleet/outage-proxy.ts';

await describeWithRedis('RedisLimiter with the clients of Redis', (url) => {
  const { admin, keyPrefix, makeFleet } = fleetsOn(url);

  test.each(REDIS_CLIENTS)('%s → shares tokens with the other clients', async (_title, connect) => {
    const { redis, close } = await connect(url);
    onTestFinished(async () => void (await close()));
    const { join, toAcquire, keys } = makeFleet();
    const [a, b] = [join(), join({ redis })];
    await take(b, toAcquire(), 2);
    const [permit] = await take(a, toAcquire(), 1);
    expect(permit?.tokensLeft).toBe(0);
    expect(await admin.zcard(keys.tokens)).toBe(3);
  });

  test('a program with no more work → ends by itself', async () => {
    const program = await bundled('test/system/redis-limiter/program.ts');
    const input = [program, url, keyPrefix];
    const { stdout } = await promisify(execFile)(process.execPath, input, { timeout: 25_000 });
    expect(stdout.trim()).toBe('end of program');
  });

  test('Redis does not reply and `onUnavailable` is `reject` → ConnectionError', async () => {
    const proxy = await OutageProxy.open(url);
    onTestFinished(() => proxy.close());
    const redis = new Redis(proxy.url);
    onTestFinished(() => redis.disconnect());
    const { join, toAcquire } = makeFleet({ redis, onUnavailable: 'reject' });
    const limiter = join();
    await limiter.acquire(toAcquire());
    await proxy.takeAway('silent');
    await expect(limiter.acquire(toAcquire())).rejects.toThrow(ConnectionError);
  });

  test('a client of redis that has lost its server → calls are still granted', async () => {
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
