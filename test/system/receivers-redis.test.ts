import { expect, test } from 'vitest';
import { ownKeys } from '../integration/redis-clients.ts';
import { describeWithRedis } from '../integration/services.ts';
import { runFleet } from './receivers/run.ts';

const TRAFFIC = { events: 200, copies: 3, perWebhook: 8, concurrency: 24 };
const KILLS = 3;

await describeWithRedis('four receiver processes on one Redis', (url) => {
  const { keyPrefix } = ownKeys(url);

  test('every event delivered 3 times, shuffled, receivers killed at random → none lost, repeats only where a kill fell before the commit', async () => {
    const receivers = { inbox: 'ioredis', serviceUrl: url, namespace: `${keyPrefix}killed:` } as const;
    const report = await runFleet({ receivers, size: 4, traffic: TRAFFIC, kills: KILLS });
    expect(report).toMatchObject({ lost: [], unexcused: [], kills: KILLS });
  });
});
