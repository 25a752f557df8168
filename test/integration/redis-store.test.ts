import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { createClient, createClientPool, RESP_TYPES } from 'redis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type RedisClient, RedisDedupeStore } from '../../src/redis/index.ts';
import { dedupeStoreContract } from '../../src/testing/dedupe-store-contract.ts';
import { HoldingProxy } from './redis-holding-proxy.ts';
import { describeWithRedis } from './services.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const HUNDRED_KEYS = Array.from({ length: 100 }, (_, index) => `tracking/events:t1:event-${index}`);

interface Connection {
  readonly redis: RedisClient;
  close(): Promise<void>;
}

const connectors: readonly [string, (url: string) => Promise<Connection>][] = [
  [
    'a client of redis',
    async (url) => {
      const redis = await createClient({ url }).connect();
      return { redis, close: () => redis.close() };
    },
  ],
  [
    'a client of redis that gives buffers',
    async (url) => {
      const redis = await createClient({ url }).connect();
      return {
        redis: redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }),
        close: () => redis.close(),
      };
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
      return { redis, close: async () => void (await redis.quit()) };
    },
  ],
];

await describeWithRedis('RedisDedupeStore on a real Redis', (url) => {
  const keyPrefix = `test:${randomUUID()}:`;
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(url);
  });
  afterAll(async () => {
    for await (const keys of admin.scanStream({ match: `${keyPrefix}*`, count: 1_000 })) {
      if (keys.length > 0) await admin.del(...keys);
    }
    admin.disconnect();
  });

  describe.each(connectors)('%s', (_, connectTo) => {
    let connection: Connection;
    let store: RedisDedupeStore;
    beforeAll(async () => {
      connection = await connectTo(url);
      store = new RedisDedupeStore({ redis: connection.redis, keyPrefix });
    });
    afterAll(() => connection.close());

    describe('contract', () => {
      for (const { name, run } of dedupeStoreContract({ createStore: () => store })) test(name, run);
    });

    test('a key claimed by one process → busy for another client', async () => {
      const other = new RedisDedupeStore({ redis: admin, keyPrefix });
      const key = randomUUID();
      await store.claim([key], { token: 'mine', leaseMs: 60_000 });
      const claims = await other.claim([key], { token: 'theirs', leaseMs: 60_000 });
      expect(claims).toMatchObject([{ status: 'busy' }]);
    });

    test('scripts that Redis forgot → loaded again, nothing lost', async () => {
      const key = randomUUID();
      await store.claim([key], { token: 'mine', leaseMs: 60_000 });
      await admin.script('FLUSH');
      const claims = await store.claim([key, `${key}-2`], { token: 'mine', leaseMs: 60_000 });
      expect(claims).toEqual([
        { status: 'acquired', attempt: 1 },
        { status: 'acquired', attempt: 1 },
      ]);
    });

    test('a key that holds something else → rejects with the error of Redis', async () => {
      const key = randomUUID();
      await admin.lpush(keyPrefix + key, 'no text');
      await admin.expire(keyPrefix + key, 60);
      await expect(store.claim([key], { token: 'mine', leaseMs: 60_000 })).rejects.toThrow('WRONGTYPE');
    });
  });

  // A pool spreads the commands over its connections, so no single one of them carries a round trip to count.
  const singleConnections = connectors.filter(([name]) => !name.includes('pool'));
  describe.each(singleConnections)('%s', (_, connectTo) => {
    test('a payload of 100 events → one command to claim, one to release, one to commit', async () => {
      const proxy = await HoldingProxy.open(url, 'EVALSHA');
      onTestFinished(() => proxy.close());
      const { redis, close } = await connectTo(proxy.url);
      onTestFinished(() => close());
      const store = new RedisDedupeStore({ redis, keyPrefix: `${keyPrefix}${randomUUID()}:` });
      const steps = [
        (keys: readonly string[]) => store.claim(keys, { token: 'mine', leaseMs: 60_000 }),
        (keys: readonly string[]) => store.release(keys, { token: 'mine' }),
        (keys: readonly string[]) => store.commit(keys, { retainMs: DAY_MS }),
      ];
      // A new server gets the scripts by a second round trip once; that is not what this test is about.
      for (const step of steps) await step(['warm-up']);
      for (const step of steps) {
        proxy.holdUntil(1);
        await step(HUNDRED_KEYS);
        expect(proxy.sent).toBe(1);
      }
    }, 5_000);
  });

  test('a claimed key → kept for a week, so that attempts outlive the sender', async () => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const key = randomUUID();
    await store.claim([key], { token: 'mine', leaseMs: 50 });
    expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(7 * DAY_MS - 60_000);
  });

  test('a lease longer than a week → the key is kept as long as the lease', async () => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const key = randomUUID();
    await store.claim([key], { token: 'mine', leaseMs: 9 * DAY_MS });
    expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(9 * DAY_MS - 60_000);
  });

  test('a committed key → holds nothing but its state, for there will be many', async () => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const key = randomUUID();
    await store.claim([key], { token: 'mine', leaseMs: 60_000 });
    await store.commit([key], { retainMs: 60_000 });
    expect(await admin.get(keyPrefix + key)).toBe('D');
  });

  test('a committed key → kept for retainMs, then forgotten', async () => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const key = randomUUID();
    await store.commit([key], { retainMs: 30 * DAY_MS });
    expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(30 * DAY_MS - 60_000);
    await store.commit([key], { retainMs: 1 });
    await vi.waitFor(async () => {
      const claims = await store.claim([key], { token: 'mine', leaseMs: 60_000 });
      expect(claims).toEqual([{ status: 'acquired', attempt: 1 }]);
    });
  });

  test('a receiver whose clock is an hour ahead → the lease of another still stands', async () => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const key = randomUUID();
    await store.claim([key], { token: 'mine', leaseMs: 60_000 });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60 * 60 * 1000 });
    try {
      const claims = await store.claim([key], { token: 'theirs', leaseMs: 60_000 });
      expect(claims).toMatchObject([{ status: 'busy' }]);
    } finally {
      vi.useRealTimers();
    }
  });
});
