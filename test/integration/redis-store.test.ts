import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { TrackingClient } from '../../src/index.ts';
import { RedisDedupeStore, RedisLimiter } from '../../src/redis/index.ts';
import { createFakeTrackingService } from '../../src/testing/index.ts';
import { RedisEmulator } from '../support/redis-emulator.ts';
import { testDedupeStoreContract } from '../webhooks/dedupe-store-contract.ts';
import { connectNodeRedis, ownKeys, REDIS_CLIENTS, type RedisConnection } from './redis-clients.ts';
import { startOwnRedis } from './redis-limiter/own-redis.ts';
import { describeWithAnyRedis, describeWithProgram, describeWithRedis } from './services.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const LEASE = { token: 'mine', leaseMs: 60_000 };

await describeWithAnyRedis('RedisDedupeStore with a client of redis, or with the emulator', (url) => {
  const keyPrefix = url === undefined ? undefined : ownKeys(url).keyPrefix;
  let connection: RedisConnection | undefined;
  let store: RedisDedupeStore;
  beforeAll(async () => {
    connection = url === undefined ? undefined : await connectNodeRedis(url);
    store = new RedisDedupeStore({ redis: connection?.redis ?? new RedisEmulator(), keyPrefix });
  });
  afterAll(async () => void (await connection?.close()));

  describe('contract', () => {
    testDedupeStoreContract(() => store);
  });
});

await describeWithRedis('RedisDedupeStore on a real Redis', (url) => {
  const { admin, keyPrefix } = ownKeys(url);

  describe.each(REDIS_CLIENTS)('%s', (_title, connect) => {
    let connection: RedisConnection;
    let store: RedisDedupeStore;
    beforeAll(async () => {
      connection = await connect(url);
      store = new RedisDedupeStore({ redis: connection.redis, keyPrefix });
    });
    afterAll(async () => void (await connection.close()));

    // The suite above has the contract for a client of redis.
    if (connect !== connectNodeRedis) {
      describe('contract', () => {
        testDedupeStoreContract(() => store);
      });
    }

    describeWithProgram('redis-server', 'a Redis of the test', () => {
      test('scripts that Redis has dropped → loaded again, no call fails', async () => {
        // A Redis of its own, because a script that is dropped delays the commands of other suites.
        const own = await startOwnRedis();
        onTestFinished(() => own.stop());
        const { redis, close } = await connect(`redis://127.0.0.1:${own.port}`);
        onTestFinished(async () => void (await close()));
        const ownStore = new RedisDedupeStore({ redis });
        await ownStore.claim(['a'], LEASE);
        const ownAdmin = new Redis(own.port);
        await ownAdmin.script('FLUSH');
        ownAdmin.disconnect();
        const claims = await ownStore.claim(['a', 'b'], LEASE);
        expect(claims).toEqual([
          { status: 'acquired', attempt: 1 },
          { status: 'acquired', attempt: 1 },
        ]);
      });
    });

    describeWithProgram('redis-server', 'a user with the rights that docs/webhooks.md names', () => {
      test('claim, commit, release, and calls with a RedisLimiter → all succeed', async () => {
        const own = await startOwnRedis();
        onTestFinished(() => own.stop());
        const page = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
        const [, rights = ''] = /^ACL (SETUSER .*)$/m.exec(page) ?? [];
        const ownAdmin = new Redis(own.port);
        onTestFinished(() => ownAdmin.disconnect());
        await ownAdmin.call('ACL', ...rights.split(' '));
        const { redis, close } = await connect(`redis://tracking:password@127.0.0.1:${own.port}`);
        onTestFinished(async () => void (await close()));

        const ownStore = new RedisDedupeStore({ redis });
        await ownStore.claim(['a', 'b'], LEASE);
        await ownStore.commit(['a'], { retainMs: DAY_MS });
        await ownStore.release(['b'], { token: 'mine' });
        expect(await ownStore.claim(['a', 'b'], { ...LEASE, retainMs: 2 * DAY_MS })).toEqual([
          { status: 'done' },
          { status: 'acquired', attempt: 2 },
        ]);

        const fake = createFakeTrackingService();
        const limiter = new RedisLimiter({ redis, onUnavailable: 'reject', commandTimeoutMs: 5_000 });
        const { baseUrl, apiKey, fetch } = fake;
        const client = new TrackingClient({ baseUrl, apiKey, fetch, limiter });
        const pages = Array.from({ length: 15 }, () => client.trackers.list({ page: 1, limit: 1 }));
        expect(await Promise.all(pages)).toHaveLength(15);
      });
    });

    test('a key with a value of another type → rejects with the error of Redis', async () => {
      const key = randomUUID();
      await admin.lpush(keyPrefix + key, 'no text');
      await expect(store.claim([key], LEASE)).rejects.toThrow('WRONGTYPE');
    });
  });

  test.each([
    ['1 ms before a lease ends → busy', 4, { status: 'busy', retryAfterMs: 1 }],
    ['at the very millisecond in which a lease ends → acquired', 5, { status: 'acquired', attempt: 2 }],
  ])('a claim %s', async (_title, passedMs, expected) => {
    let nowMs = 0;
    const setTime = (script: string) =>
      script.replace("redis.call('TIME')", `{ '1700000000', '${nowMs}000' }`);
    const redis = {
      evalsha: async () => Promise.reject(new Error('NOSCRIPT')),
      eval: (script: string, count: number, ...rest: string[]) => admin.eval(setTime(script), count, ...rest),
    };
    const store = new RedisDedupeStore({ redis, keyPrefix });
    const key = randomUUID();
    await store.claim([key], { token: 'theirs', leaseMs: 5 });
    nowMs = passedMs;
    expect(await store.claim([key], LEASE)).toEqual([expected]);
  });

  test.each([
    ['a claimed key → kept for a week, so that attempts are counted over all redeliveries', 50, 7],
    ['a lease longer than a week → the key is kept as long as the lease', 9 * DAY_MS, 9],
  ])('%s', async (_title, leaseMs, days) => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const key = randomUUID();
    await store.claim([key], { ...LEASE, leaseMs });
    expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(days * DAY_MS - 60_000);
  });

  test.each([undefined, true])(
    'a key released with uncounted %s → kept for a week, so that attempts are counted over all redeliveries',
    async (uncounted) => {
      const store = new RedisDedupeStore({ redis: admin, keyPrefix });
      const key = randomUUID();
      await store.claim([key], LEASE);
      await store.release([key], { token: LEASE.token, uncounted });
      expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(7 * DAY_MS - 60_000);
    },
  );

  test('a claim with retainMs of a done key → Redis keeps it for that long; a key without expiry stays so', async () => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const [key, endless] = [randomUUID(), randomUUID()];
    await store.commit([key, endless], { retainMs: 7 * DAY_MS });
    await admin.persist(keyPrefix + endless);
    await store.claim([key, endless], { ...LEASE, retainMs: 30 * DAY_MS });
    expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(30 * DAY_MS - 60_000);
    await store.claim([key, endless], { ...LEASE, retainMs: 7 * DAY_MS });
    expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(30 * DAY_MS - 60_000);
    await store.claim([key, endless], LEASE);
    expect(await admin.pttl(keyPrefix + endless)).toBe(-1);
  });

  test('a committed key → keeps only its state, for retainMs', async () => {
    const store = new RedisDedupeStore({ redis: admin, keyPrefix });
    const key = randomUUID();
    await store.claim([key], LEASE);
    await store.commit([key], { retainMs: 30 * DAY_MS });
    expect(await admin.get(keyPrefix + key)).toBe('D');
    expect(await admin.pttl(keyPrefix + key)).toBeGreaterThan(30 * DAY_MS - 60_000);
    await store.commit([key], { retainMs: 1 });
    await expect.poll(() => store.claim([key], LEASE)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });
});
