import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { PostgresDedupeStore, TransactionalInbox } from '../../src/postgres/index.ts';
import { RedisDedupeStore } from '../../src/redis/index.ts';
import { type DedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';
import { ownKeys } from './redis-clients.ts';
import { describeWithPostgres, describeWithRedis } from './services.ts';

const silent = () => {};

function push(trackerId: string, ...ids: string[]) {
  return { trackerId, events: ids.map((eventId) => ({ eventId })) };
}

/** Many webhooks at once, each delivered again as the sender does until it is done; how often each event was handled. */
async function deliver(
  process: (
    body: object,
    onEvent: (event: unknown, context: { key: string }) => void,
  ) => Promise<{ outcome: string }>,
  bodies: readonly object[],
): Promise<number[]> {
  const handled = new Map<string, number>();
  const count = (_: unknown, { key }: { key: string }) => void handled.set(key, (handled.get(key) ?? 0) + 1);
  await Promise.all(
    bodies.map(async (body) => {
      for (let tries = 0; tries < 20; tries += 1) if ((await process(body, count)).outcome === 'done') return;
      throw new Error('Expected the webhook to be done at last');
    }),
  );
  return [...handled.values()];
}

const inboxOn = (store: DedupeStore, leaseMs = 60_000) =>
  new WebhookInbox({ store, leaseMs, onError: silent });

await describeWithPostgres('webhooks while PostgreSQL fails', (url) => {
  const schema = `test_${randomUUID().replaceAll('-', '')}`;
  const table = `${schema}.inbox`;
  const name = `app_${schema.slice(5, 13)}`;
  const open = (max: number) => {
    const opened = new pg.Pool({ connectionString: url, max, application_name: name });
    // An idle connection that the server ends tells the pool; without a listener that ends the process.
    opened.on('error', silent);
    return opened;
  };
  let pool: pg.Pool;
  let admin: pg.Pool;
  beforeAll(async () => {
    pool = open(4);
    admin = new pg.Pool({ connectionString: url, max: 1 });
    await admin.query(`CREATE SCHEMA ${schema}`);
    await new PostgresDedupeStore({ pool, table }).createTable();
    await admin.query(`CREATE TABLE ${schema}.effects (key text)`);
  });
  afterAll(async () => {
    await admin.query(`DROP SCHEMA ${schema} CASCADE`);
    await Promise.all([pool.end(), admin.end()]);
  });
  const endConnections = () =>
    admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [name]);

  test('its connections ended again and again in the middle of runs → every event handled once', async () => {
    const inbox = inboxOn(new PostgresDedupeStore({ pool, table }));
    const bodies = Array.from({ length: 200 }, (_, index) => push(`cut-${index}`, 'a', 'b', 'c'));
    let isOver = false;
    const cuts = (async () => {
      for (let cut = 0; cut < 5 && !isOver; cut += 1) {
        await endConnections();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const handled = await deliver((body, handler) => inbox.process(body, handler), bodies);
    isOver = true;
    await cuts;
    expect(handled).toEqual(Array.from({ length: 600 }, () => 1));
  });

  test('200 webhooks at once on a pool of 2, in transactions → each event has one effect', async () => {
    const small = open(2);
    const inbox = new TransactionalInbox({ pool: small, table, onError: silent });
    const write = async (
      _event: unknown,
      { transaction, key }: { transaction: pg.PoolClient; key: string },
    ) => {
      await transaction.query(`INSERT INTO ${schema}.effects VALUES ($1)`, [key]);
    };
    // A webhook that waits for a connection for too long is unavailable, and is delivered again.
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const body = push(`atomic-${index % 100}`, 'a', 'b');
        await vi.waitFor(async () => expect((await inbox.process(body, write)).outcome).toBe('done'), 20_000);
      }),
    );
    await small.end();
    const { rows } = await admin.query(
      `SELECT count(*)::int AS all, count(DISTINCT key)::int AS keys FROM ${schema}.effects`,
    );
    expect(rows).toEqual([{ all: 200, keys: 200 }]);
  });

  test('keys with a NUL byte or of 10 kB in a group → handled once, and so are their neighbours', async () => {
    const inbox = inboxOn(new PostgresDedupeStore({ pool, table }));
    const ids = ['plain', 'a\u0000b', 'x'.repeat(10_000), '\ud800', 'other'];
    const bodies = ids.map((id) => push('poison', id));
    expect(await deliver((body, handler) => inbox.process(body, handler), bodies)).toEqual(ids.map(() => 1));
    expect(await deliver((body, handler) => inbox.process(body, handler), bodies)).toEqual([]);
  });
});

await describeWithRedis('webhooks while Redis fails', (url) => {
  const { admin, keyPrefix } = ownKeys(url);
  const redis = new Redis(url, { connectionName: keyPrefix, lazyConnect: true });
  afterAll(() => redis.disconnect());

  test('its connection ended again and again in the middle of runs → every event handled once', async () => {
    const inbox = inboxOn(new RedisDedupeStore({ redis, keyPrefix }));
    const bodies = Array.from({ length: 200 }, (_, index) => push(`cut-${index}`, 'a', 'b', 'c'));
    const cuts = (async () => {
      for (let cut = 0; cut < 5; cut += 1) {
        const clients = String(await admin.client('LIST')).split('\n');
        const ours = clients.find((line) => line.includes(`name=${keyPrefix}`));
        const id = /\bid=(\d+)/.exec(ours ?? '')?.[1];
        if (id !== undefined) await admin.client('KILL', 'ID', id);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    const handled = await deliver((body, handler) => inbox.process(body, handler), bodies);
    await cuts;
    expect(handled).toEqual(Array.from({ length: 600 }, () => 1));
  });
});
