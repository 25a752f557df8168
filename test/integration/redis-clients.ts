import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { createClient, createClientPool, RESP_TYPES } from 'redis';
import { afterAll } from 'vitest';
import type { RedisClient } from '../../src/redis/index.ts';

/** A connected client, and what closes its connections. */
export interface RedisConnection {
  readonly redis: RedisClient;
  close(): Promise<unknown>;
}

export async function connectNodeRedis(url: string): Promise<RedisConnection> {
  const redis = await createClient({ url }).connect();
  return { redis, close: () => redis.close() };
}

/** The clients with which stores and limiters are tested. */
export const REDIS_CLIENTS: readonly [title: string, connect: (url: string) => Promise<RedisConnection>][] = [
  ['a client of redis', connectNodeRedis],
  [
    'a client of redis that gives buffers',
    async (url) => {
      const redis = await createClient({ url }).connect();
      const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String };
      return { redis: redis.withTypeMapping(typeMapping), close: () => redis.close() };
    },
  ],
  [
    'a pool of redis',
    async (url) => {
      const redis = createClientPool({ url }, { maximum: 4 });
      await redis.connect();
      return { redis, close: () => redis.close() };
    },
  ],
  [
    'a client of ioredis',
    async (url) => {
      const redis = new Redis(url);
      return { redis, close: () => redis.quit() };
    },
  ],
];

/** A client of a suite, and a prefix for its keys, which go when the suite is over. */
export function ownKeys(url: string): { admin: Redis; keyPrefix: string } {
  const keyPrefix = `test:${randomUUID()}:`;
  const admin = new Redis(url, { lazyConnect: true });
  afterAll(async () => {
    for await (const keys of admin.scanStream({ match: `${keyPrefix}*`, count: 1_000 })) {
      if (keys.length > 0) await admin.del(...keys);
    }
    admin.disconnect();
  });
  return { admin, keyPrefix };
}
