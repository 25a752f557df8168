import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { createClient, createClientPool } from 'redis';
import { expect, onTestFinished, test } from 'vitest';
import { bundled } from '../../../scripts/support/bundled.ts';
import type { RedisClient } from '../../../src/redis/index.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, take } from './fleets.ts';

await describeWithRedis('RedisLimiter with the clients of Redis', (url) => {
  const { admin, keyPrefix, makeFleet } = fleetsOn(url);

  const connectors: readonly [string, () => Promise<{ redis: RedisClient; close(): unknown }>][] = [
    [
      'a client of redis',
      async () => {
        const redis = await createClient({ url }).connect();
        return { redis, close: () => redis.close() };
      },
    ],
    [
      'a client of redis that gives buffers',
      async () => {
        const redis = await createClient({ url }).connect();
        return { redis: redis.withTypeMapping({ 36: Buffer, 58: String }), close: () => redis.close() };
      },
    ],
    [
      'a pool of redis',
      async () => {
        const redis = createClientPool({ url }, { maximum: 4 });
        await redis.connect();
        return { redis, close: () => redis.close() };
      },
    ],
    [
      'a client of ioredis',
      async () => {
        const redis = new Redis(url);
        return { redis, close: () => redis.quit() };
      },
    ],
  ];

  test.each(connectors)('%s → shares tokens with the others', async (_title, connect) => {
    const { redis, close } = await connect();
    onTestFinished(async () => void (await close()));
    const { join, toAcquire, keys } = makeFleet();
    const [a, b] = [join(), join({ redis })];
    await take(b, toAcquire(), 2);
    const [permit] = await take(a, toAcquire(), 1);
    expect(permit?.tokensLeft).toBe(0);
    expect(await admin.zcard(keys.tokens)).toBe(3);
  });

  test('scripts that Redis forgot → loaded again', async () => {
    const { join, toAcquire } = makeFleet();
    const limiter = join();
    await limiter.acquire(toAcquire());
    await admin.script('FLUSH');
    await expect(limiter.acquire(toAcquire())).resolves.toBeDefined();
  });

  test('a program that has nothing more to do → ends by itself', async () => {
    const program = await bundled('test/integration/redis-limiter/program.ts');
    const input = [program, url, keyPrefix];
    const { stdout } = await promisify(execFile)(process.execPath, input, { timeout: 25_000 });
    expect(stdout.trim()).toBe('end of program');
  });
});
