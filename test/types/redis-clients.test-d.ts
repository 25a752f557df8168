import type { Cluster, Redis } from 'ioredis';
import { createClient, createClientPool, createCluster, createSentinel, RESP_TYPES } from 'redis';
import { expectTypeOf, test } from 'vitest';
import type { RedisClient } from '../../src/redis/index.ts';

test('clients of redis → accepted as they are', () => {
  const client = createClient();
  const pool = createClientPool();
  const cluster = createCluster({ rootNodes: [] });
  const sentinel = createSentinel({ name: 'main', sentinelRootNodes: [] });
  expectTypeOf(client).toExtend<RedisClient>();
  expectTypeOf(pool).toExtend<RedisClient>();
  expectTypeOf(cluster).toExtend<RedisClient>();
  expectTypeOf(sentinel).toExtend<RedisClient>();
});

test('clients of redis with another protocol or type mapping → accepted as they are', () => {
  const second = createClient({ RESP: 2 });
  const buffers = createClient().withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  expectTypeOf(second).toExtend<RedisClient>();
  expectTypeOf(buffers).toExtend<RedisClient>();
});

test('clients of ioredis → accepted as they are', () => {
  expectTypeOf<Redis>().toExtend<RedisClient>();
  expectTypeOf<Cluster>().toExtend<RedisClient>();
});
