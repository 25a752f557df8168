import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { RedisDedupeStore, RedisLimiter } from '../../../src/redis/index.ts';
import { describeWithProgram } from '../services.ts';
import { silent } from './fleets.ts';
import { type OwnRedis, startOwnRedis } from './own-redis.ts';

describeWithProgram('redis-server', 'RedisLimiter on a cluster of Redis', () => {
  const bucket = {
    baseUrl: 'https://api.example.test/v1',
    account: 'account-1',
    endpoint: 'trackers.createBulk',
  };
  let nodes: OwnRedis[];
  let node: { host: string; port: number };

  beforeAll(async () => {
    const settings = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];
    nodes = await Promise.all([startOwnRedis(...settings), startOwnRedis(...settings)]);
    const [first = 0, second = 0] = nodes.map(({ port }) => port);
    node = { host: '127.0.0.1', port: first };
    const admins = [new Redis(first), new Redis(second)];
    const ranges = [
      ['0', '8191'],
      ['8192', '16383'],
    ];
    await Promise.all(
      admins.map((admin, index) => admin.call('CLUSTER', 'ADDSLOTSRANGE', ...(ranges[index] ?? []))),
    );
    await admins[0]?.call('CLUSTER', 'MEET', node.host, String(second));
    for (const admin of admins) {
      const isReady = async () => {
        const info = String(await admin.call('CLUSTER', 'INFO'));
        return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:2');
      };
      await vi.waitUntil(isReady, { timeout: 60_000 });
      admin.disconnect();
    }
  });
  afterAll(() => Promise.all(nodes.map((each) => each.stop())));

  async function connectIoredis(enableAutoPipelining = false): Promise<Cluster> {
    const cluster = new Cluster([node], { enableAutoPipelining });
    onTestFinished(() => cluster.disconnect());
    await once(cluster, 'ready');
    return cluster;
  }

  test('a cluster of ioredis and one of redis → share tokens', async () => {
    const ioredis = await connectIoredis();
    const nodeRedis = createCluster({ rootNodes: [{ socket: node }] });
    await nodeRedis.connect();
    onTestFinished(() => nodeRedis.destroy());
    const options = { bucket, priority: 'interactive' } as const;
    await new RedisLimiter({ redis: ioredis, logger: silent }).acquire(options);
    const permit = await new RedisLimiter({ redis: nodeRedis, logger: silent }).acquire(options);
    expect(permit.tokensLeft).toBe(1);
  });

  describe('ioredis with `enableAutoPipelining`', () => {
    const keys = Array.from({ length: 50 }, (_, index) => `event-${index}`);
    const lease = { token: 'mine', leaseMs: 60_000 };

    test('claims, commits and releases of keys in several slots, and commands of the user in the same tick → all succeed', async () => {
      const redis = await connectIoredis(true);
      const store = new RedisDedupeStore({ redis, keyPrefix: 'events:' });
      for (const run of [
        () => store.claim(keys, lease),
        () => store.claim(keys, lease),
        () => store.release(keys.slice(25), { token: lease.token }),
        () => store.commit(keys, { retainMs: 60_000 }),
      ]) {
        const others = keys.map((key) => redis.set(`user:${key}`, key));
        const [, ...set] = await Promise.all([run(), ...others]);
        expect(set).toEqual(keys.map(() => 'OK'));
      }
      expect(await store.claim(keys, lease)).toEqual(keys.map(() => ({ status: 'done' })));
    });

    test('calls of a RedisLimiter, and commands of the user in the same tick → all succeed', async () => {
      const redis = await connectIoredis(true);
      const limiter = new RedisLimiter({ redis, onUnavailable: 'reject', logger: silent });
      const accounts = keys.map((account) => ({ ...bucket, account }));
      const permits = accounts.map((each) => limiter.acquire({ bucket: each, priority: 'interactive' }));
      const set = await Promise.all(keys.map((key) => redis.set(`user:${key}`, key)));
      expect(set).toEqual(keys.map(() => 'OK'));
      expect(await Promise.all(permits)).toHaveLength(keys.length);
    });

    test('a `keyPrefix` with a hash tag → one script for all keys of a claim', async () => {
      const redis = await connectIoredis(true);
      const store = new RedisDedupeStore({ redis, keyPrefix: '{tracking}:events:' });
      // The first claim loads the script.
      await store.claim(keys, lease);
      const pipeline = vi.spyOn(redis, 'pipeline');
      await store.claim(keys, lease);
      expect(pipeline).toHaveBeenCalledTimes(1);
    });
  });
});
