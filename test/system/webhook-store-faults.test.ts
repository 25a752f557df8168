import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { RedisDedupeStore } from '../../src/redis/index.ts';
import { type DedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';
import { makePool, useSchema } from '../integration/postgres-schema.ts';
import { ownKeys } from '../integration/redis-clients.ts';
import { describeWithPostgres, describeWithRedis } from '../integration/services.ts';
import { openFreezingProxy } from './freezing-proxy.ts';

/**
 * Delivers 200 webhooks of 3 events at once, each again until it is done, while connections of the store are cut five times.
 * Counts how often each event was handled.
 */
async function deliverDuringCuts(store: DedupeStore, cut: () => Promise<unknown>): Promise<number[]> {
  const inbox = new WebhookInbox({ store, onError: () => {} });
  const handled = new Map<string, number>();
  const deliver = async (trackerId: string) => {
    const body = { trackerId, events: ['a', 'b', 'c'].map((eventId) => ({ eventId })) };
    for (let tries = 0; tries < 20; tries += 1) {
      const { outcome } = await inbox.process(body, (_event, { key }) => {
        handled.set(key, (handled.get(key) ?? 0) + 1);
      });
      if (outcome === 'done') return;
    }
    throw new Error('Expected the webhook to be done at last');
  };
  const cutAgainAndAgain = async () => {
    for (let count = 0; count < 5; count += 1) {
      await cut();
      await sleep(10);
    }
  };
  const deliveries = Array.from({ length: 200 }, (_, index) => deliver(`t${index}`));
  await Promise.all([...deliveries, cutAgainAndAgain()]);
  return [...handled.values()];
}

const ALL_ONCE = Array.from({ length: 600 }, () => 1);

await describeWithPostgres('webhooks while PostgreSQL fails', (url) => {
  const { schema, pool: admin } = useSchema(url);

  test('its connections ended again and again in the middle of work → every event handled once', async () => {
    const pool = makePool({ connectionString: url, max: 4, application_name: schema });
    onTestFinished(() => pool.end());
    const store = new PostgresDedupeStore({ pool, table: `${schema}.inbox` });
    await store.createTable();
    const statement = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1';
    expect(await deliverDuringCuts(store, () => admin.query(statement, [schema]))).toEqual(ALL_ONCE);
  });

  test('all connections of its pool freeze, three times → new connections take over, and every event is handled once', async () => {
    const proxy = await openFreezingProxy(url);
    onTestFinished(() => proxy.close());
    const pool = makePool({ connectionString: proxy.url, max: 4, query_timeout: 1_000 });
    onTestFinished(() => pool.end());
    const store = new PostgresDedupeStore({ pool, table: `${schema}.frozen`, commandTimeoutMs: 500 });
    await store.createTable();
    const inbox = new WebhookInbox({ store, onError: () => {} });
    const onEvent = vi.fn();
    for (let incident = 0; incident < 3; incident += 1) {
      // Fill the pool, so that no new connection can be opened beside the frozen ones.
      await vi.waitFor(async () => {
        const sleeping = { text: 'SELECT pg_sleep(0.05)', query_timeout: 1_000 };
        await Promise.allSettled(Array.from({ length: 4 }, () => pool.query(sleeping)));
        expect(pool.idleCount).toBe(4);
      }, 5_000);
      proxy.freeze();
      const body = { trackerId: randomUUID(), events: [{ eventId: 'a' }] };
      await vi.waitFor(async () => expect(await inbox.process(body, onEvent)).toMatchObject({ handled: 1 }), {
        timeout: 8_000,
        interval: 10,
      });
    }
    expect(onEvent).toHaveBeenCalledTimes(3);
  });
});

await describeWithRedis('webhooks while Redis fails', (url) => {
  const { admin, keyPrefix } = ownKeys(url);
  const redis = new Redis(url, { connectionName: keyPrefix, lazyConnect: true });
  // Without a listener this client prints that it lost its connection.
  redis.on('error', () => {});
  afterAll(() => redis.disconnect());

  test('its connection ended again and again in the middle of work → every event handled once', async () => {
    const cut = async () => {
      const clients = String(await admin.client('LIST')).split('\n');
      const ours = clients.find((line) => line.includes(`name=${keyPrefix}`));
      const id = /\bid=(\d+)/.exec(ours ?? '')?.[1];
      if (id !== undefined) await admin.client('KILL', 'ID', id);
    };
    expect(await deliverDuringCuts(new RedisDedupeStore({ redis, keyPrefix }), cut)).toEqual(ALL_ONCE);
  });
});
