import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { PostgresDedupeStore, type Queryable } from '../../src/postgres/index.ts';
import { dedupeStoreContract } from '../../src/testing/dedupe-store-contract.ts';
import { describeWithPostgres } from './services.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}

await describeWithPostgres('PostgresDedupeStore on a real PostgreSQL', (url) => {
  const schema = `test_${randomUUID().replaceAll('-', '')}`;
  const table = `${schema}.inbox`;
  let pool: pg.Pool;
  let client: pg.Client;
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: url, max: 12 });
    client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`CREATE SCHEMA ${schema}`);
    await new PostgresDedupeStore({ pool: client, table }).createTable();
  });
  afterAll(async () => {
    await client.query(`DROP SCHEMA ${schema} CASCADE`);
    await client.end();
    await pool.end();
  });

  describe.each<[string, () => Queryable]>([
    ['a pool', () => pool],
    ['a client', () => client],
  ])('%s', (_, connection) => {
    const createStore = () => new PostgresDedupeStore({ pool: connection(), table });
    describe('contract', () => {
      for (const { name, run } of dedupeStoreContract({ createStore })) test(name, run);
    });
  });

  test('eight processes that create the table at once → one table, no error', async () => {
    const store = new PostgresDedupeStore({ pool: pool, table: `${schema}.created` });
    await Promise.all(Array.from({ length: 8 }, () => store.createTable()));
    await store.commit(['a'], { retainMs: DAY_MS });
    const { rows } = await client.query(`SELECT count(*)::int AS count FROM ${schema}.created`);
    expect(rows).toEqual([{ count: 1 }]);
  });

  test('12 receivers that claim, commit and release 40 keys in random orders → no deadlock', async () => {
    const store = new PostgresDedupeStore({ pool: pool, table });
    const keys = Array.from({ length: 40 }, (_, index) => `deadlock-${index}`);
    const some = () => shuffled(keys).slice(0, 30);
    const receive = async () => {
      for (let round = 0; round < 30; round += 1) {
        const token = randomUUID();
        await store.claim(some(), { token, leaseMs: 1 });
        await store.release(some(), { token });
        await store.commit(some(), { retainMs: 1 });
      }
    };
    const receivers = await Promise.allSettled(Array.from({ length: 12 }, receive));
    expect(receivers.filter(({ status }) => status === 'rejected')).toEqual([]);
  });

  test('a purge while receivers claim what it deletes → no deadlock, and all gone in the end', async () => {
    const store = new PostgresDedupeStore({ pool: pool, table: `${schema}.purged` });
    await store.createTable();
    const keys = Array.from({ length: 200 }, (_, index) => `purge-${index}`);
    const receive = async () => {
      for (let round = 0; round < 15; round += 1) {
        await store.claim(shuffled(keys), { token: randomUUID(), leaseMs: 1 });
        await store.commit(shuffled(keys), { retainMs: 1 });
      }
    };
    const purge = async () => {
      for (let round = 0; round < 40; round += 1) await store.purge({ batchSize: 50 });
    };
    await Promise.all([receive(), receive(), receive(), purge(), purge()]);
    // The last of them expire a millisecond after their commit, which can be after the first look.
    await vi.waitFor(async () => {
      await store.purge();
      const { rows } = await client.query(`SELECT count(*)::int AS count FROM ${schema}.purged`);
      expect(rows).toEqual([{ count: 0 }]);
    });
  });
});
