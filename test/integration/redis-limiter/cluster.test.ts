import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { RedisLimiter } from '../../../src/redis/index.ts';
import { describeWithProgram } from '../services.ts';
import { silent } from './fleets.ts';
import { type OwnRedis, startOwnRedis } from './own-redis.ts';

describeWithProgram('redis-server', 'RedisLimiter on a cluster of Redis', () => {
  const bucket = {
    baseUrl: 'https://api.example.test/v1',
    account: 'account-1',
    endpoint: 'trackers.createBulk',
  };
  let cluster: OwnRedis;
  let node: { host: string; port: number };

  beforeAll(async () => {
    cluster = await startOwnRedis('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1');
    node = { host: '127.0.0.1', port: cluster.port };
    const admin = new Redis(node);
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    const isReady = async () => String(await admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok');
    await vi.waitUntil(isReady, { timeout: 60_000 });
    admin.disconnect();
  });
  afterAll(() => cluster.stop());

  test('a cluster of ioredis and one of redis → share tokens', async () => {
    const ioredis = new Cluster([node]);
    onTestFinished(() => ioredis.disconnect());
    await once(ioredis, 'ready');
    const nodeRedis = createCluster({ rootNodes: [{ socket: node }] });
    await nodeRedis.connect();
    onTestFinished(() => nodeRedis.destroy());
    const options = { bucket, priority: 'interactive' } as const;
    await new RedisLimiter({ redis: ioredis, logger: silent }).acquire(options);
    const permit = await new RedisLimiter({ redis: nodeRedis, logger: silent }).acquire(options);
    expect(permit.tokensLeft).toBe(1);
  });
});
