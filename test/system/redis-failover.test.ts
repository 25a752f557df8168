import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { expect, onTestFinished, test } from 'vitest';
import { RedisDedupeStore, RedisLimiter } from '../../src/redis/index.ts';
import { silent } from '../integration/redis-limiter/fleets.ts';
import { startOwnRedis } from '../integration/redis-limiter/own-redis.ts';
import { describeWithProgram } from '../integration/services.ts';

const LEASE = { token: 'mine', leaseMs: 60_000 };
const ACQUIRE = {
  bucket: { baseUrl: 'https://api.example.test/v1', account: 'account-1', endpoint: 'couriers.list' },
  priority: 'interactive',
} as const;

/** Two servers behind one address. At a failover, the first becomes a replica and keeps its connections; new ones go to the second. */
async function startPair() {
  const servers = await Promise.all([startOwnRedis(), startOwnRedis()]);
  const [first = 0, second = 0] = servers.map(({ port }) => port);
  let primary = first;
  const proxy = createServer((client) => {
    const upstream = connect(primary, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.pipe(upstream).pipe(client);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(async () => {
    proxy.close();
    await Promise.all(servers.map((server) => server.stop()));
  });
  return {
    port: (proxy.address() as AddressInfo).port, // A server that listens on TCP has such an address.
    failOver: async () => {
      const admin = new Redis(first);
      await admin.replicaof('127.0.0.1', second);
      admin.disconnect();
      primary = second;
    },
  };
}

describeWithProgram('redis-server', 'a failover that leaves the connection to the old primary open', () => {
  test('ioredis → the claim, the call and the commands of the app succeed', async () => {
    const { port, failOver } = await startPair();
    const redis = new Redis(port);
    onTestFinished(() => redis.disconnect());
    const store = new RedisDedupeStore({ redis, commandTimeoutMs: 30_000 });
    const limiter = new RedisLimiter({
      ...{ redis, logger: silent },
      ...{ onUnavailable: 'reject', commandTimeoutMs: 30_000, limits: { 'couriers.list': 100 } },
    });
    await store.claim(['before'], LEASE);
    await limiter.acquire(ACQUIRE);
    await failOver();
    const [claims, permit, pong] = await Promise.all([
      store.claim(['after'], LEASE),
      limiter.acquire(ACQUIRE),
      redis.ping(),
    ]);
    expect(claims).toEqual([{ status: 'acquired', attempt: 1 }]);
    expect(permit).toBeDefined();
    expect(pong).toBe('PONG');
    expect(await redis.set('own', 'value')).toBe('OK');
  });

  test('redis → the claim rejects and says what to do, and succeeds on a new connection', async () => {
    const { port, failOver } = await startPair();
    const redis = createClient({ url: `redis://127.0.0.1:${port}` });
    await redis.connect();
    onTestFinished(() => redis.destroy());
    const store = new RedisDedupeStore({ redis, commandTimeoutMs: 30_000 });
    await store.claim(['before'], LEASE);
    await failOver();
    await expect(store.claim(['after'], LEASE)).rejects.toThrow(/READONLY.*connect it to the primary/);
    redis.destroy();
    await redis.connect();
    expect(await store.claim(['after'], LEASE)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });
});
