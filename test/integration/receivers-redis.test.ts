import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { runFleet } from './receivers/run.ts';
import { describeWithRedis } from './services.ts';

const TRAFFIC = { events: 800, copies: 3, perWebhook: 8, concurrency: 24 };
const KILLS = 3;

await describeWithRedis('four receiver processes on one Redis', (url) => {
  const prefix = `test:${randomUUID()}:`;
  afterAll(async () => {
    const redis = new Redis(url);
    for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
      if (keys.length > 0) await redis.del(...keys);
    }
    redis.disconnect();
  });

  test('every event delivered 3 times, shuffled, at once → handled exactly once', async () => {
    const receivers = { inbox: 'redis', serviceUrl: url, namespace: `${prefix}calm:` } as const;
    const report = await runFleet({ receivers, size: 4, traffic: TRAFFIC, kills: 0 });
    expect(report).toMatchObject({ lost: [], repeats: 0, unexcused: [] });
  });

  test('receivers killed at random → none lost, repeats only where a kill fell before the commit', async () => {
    const receivers = { inbox: 'ioredis', serviceUrl: url, namespace: `${prefix}killed:` } as const;
    const report = await runFleet({ receivers, size: 4, traffic: TRAFFIC, kills: KILLS });
    expect(report).toMatchObject({ lost: [], unexcused: [], kills: KILLS });
  });
});
