import { randomUUID } from 'node:crypto';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { TrackingError } from '../../src/errors.ts';
import { PostgresDedupeStore, type Queryable } from '../../src/postgres/index.ts';
import { makePool, useSchema } from '../integration/postgres-schema.ts';
import { describeWithAnyPostgres, describeWithPostgres } from '../integration/services.ts';
import type { TestDatabase } from '../integration/test-database.ts';
import { testDedupeStoreContract } from '../webhooks/dedupe-store-contract.ts';

/** The code of the error with which PostgreSQL ends a deadlock. */
const DEADLOCK = '40P01';
const DAY_MS = 24 * 60 * 60 * 1000;

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/** Adapts postgres.js to the store. */
function adapt(sql: postgres.Sql): Queryable {
  return {
    // Safe cast: postgres.js takes every value that the store sends.
    query: async (text, values) => ({
      rows: await sql.unsafe(text, values as postgres.ParameterOrJSON<never>[]),
    }),
  };
}

await describeWithAnyPostgres('PostgresDedupeStore on a PostgreSQL', (create) => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: PostgresDedupeStore;
  beforeAll(async () => {
    database = await create();
    pool = makePool({ connectionString: database.url, max: database.maxConnections });
    store = new PostgresDedupeStore({ pool });
    await store.createTable();
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  describe('contract', () => {
    testDedupeStoreContract(() => store);
  });

  describe('contract, with an adapter of postgres.js as pool', () => {
    let sql: postgres.Sql;
    let ownStore: PostgresDedupeStore;
    beforeAll(() => {
      sql = postgres(database.url, { max: database.maxConnections, onnotice: () => {} });
      ownStore = new PostgresDedupeStore({ pool: adapt(sql) });
    });
    afterAll(() => sql.end());
    testDedupeStoreContract(() => ownStore);
  });

  test('a client in place of a pool → concurrent calls all succeed', async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    const store = new PostgresDedupeStore({ pool: client });
    const claims = await Promise.all(
      ['x', 'y', 'z'].map((token) => store.claim([token, 'all'], { token, leaseMs: 60_000 })),
    );
    expect(claims.flat().map(({ status }) => status)).toEqual([
      'acquired',
      'acquired',
      'acquired',
      'busy',
      'acquired',
      'busy',
    ]);
  });

  describe('a transaction of the caller', () => {
    test.each<[string, (store: PostgresDedupeStore) => Promise<unknown>]>([
      ['claim', (store) => store.claim([randomUUID()], { token: 'mine', leaseMs: 60_000 })],
      ['commit', (store) => store.commit([randomUUID()], { retainMs: DAY_MS })],
      ['release', (store) => store.release([randomUUID()], { token: 'mine' })],
    ])('%s on its client → the transaction keeps its own lock_timeout', async (_title, call) => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      onTestFinished(() => client.end());
      await client.query('BEGIN');
      // An embedded database has one connection, which an open transaction would keep.
      onTestFinished(async () => void (await client.query('ROLLBACK')));
      await client.query("SET LOCAL lock_timeout = '7s'");
      await call(new PostgresDedupeStore({ pool: client }));
      expect((await client.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '7s' }]);
    });
  });

  test('eight processes that create the table at once → one table, no error', async () => {
    const store = new PostgresDedupeStore({ pool, table: 'created' });
    await Promise.all(Array.from({ length: 8 }, () => store.createTable()));
    await store.commit(['a'], { retainMs: DAY_MS });
    const { rows } = await pool.query('SELECT count(*)::int AS count FROM created');
    expect(rows).toEqual([{ count: 1 }]);
  });
});

await describeWithAnyPostgres('PostgresDedupeStore with serializable as the default level', (create) => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: PostgresDedupeStore;
  beforeAll(async () => {
    database = await create();
    pool = makePool({
      connectionString: database.url,
      max: database.maxConnections,
      onConnect: (client) => client.query("SET default_transaction_isolation = 'serializable'"),
    });
    store = new PostgresDedupeStore({ pool });
    await store.createTable();
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  test('a transaction → serializable', async () => {
    const { rows } = await pool.query('SHOW transaction_isolation');
    expect(rows).toEqual([{ transaction_isolation: 'serializable' }]);
  });

  describe('contract', () => {
    testDedupeStoreContract(() => store);
  });
});

await describeWithPostgres('PostgresDedupeStore on a PostgreSQL with several connections', (url) => {
  const { schema, pool } = useSchema(url);
  const table = `${schema}.inbox`;
  const store = new PostgresDedupeStore({ pool, table });
  beforeAll(() => store.createTable());

  test('a key that another connection has locked, with an adapter of postgres.js → busy, and its purge succeeds', async () => {
    const sql = postgres(url, { max: 4, onnotice: () => {} });
    onTestFinished(() => sql.end());
    const ownStore = new PostgresDedupeStore({ pool: adapt(sql), table });
    await ownStore.claim(['locked-for-postgres.js'], { token: 'first', leaseMs: 1 });
    const client = await pool.connect();
    onTestFinished(() => client.release(true));
    await client.query('BEGIN');
    await client.query(`SELECT FROM ${table} WHERE key = 'locked-for-postgres.js' FOR UPDATE`);
    const claims = await ownStore.claim(['locked-for-postgres.js'], { token: 'mine', leaseMs: 60_000 });
    expect(claims).toMatchObject([{ status: 'busy' }]);
    expect(await ownStore.purge()).toBeTypeOf('number');
  });

  /** Returns a function that makes stores for one table, and a list of the codes of all their errors. */
  function watchErrors(ownTable: string) {
    const codes: unknown[] = [];
    const query = async (text: string, values?: unknown[]) => {
      try {
        return await pool.query(text, values);
      } catch (error) {
        codes.push(error instanceof pg.DatabaseError ? error.code : error);
        throw error;
      }
    };
    const makeStore = () =>
      new PostgresDedupeStore({ pool: { query }, table: ownTable, commandTimeoutMs: 500_000 });
    return { codes, makeStore };
  }

  /** Ignores that rows were locked by another receiver. An inbox would try again. */
  async function exceptLocked(call: Promise<unknown>): Promise<void> {
    await call.catch((error: unknown) => {
      if (!(error instanceof TrackingError) || !error.message.includes('has locked its row')) throw error;
    });
  }

  test('12 receivers that claim, commit and release 40 keys in random orders → no deadlock', async () => {
    const { codes, makeStore } = watchErrors(table);
    const keys = Array.from({ length: 40 }, (_, index) => `deadlock-${index}`);
    const some = () => shuffled(keys).slice(0, 30);
    const receive = async () => {
      const ownStore = makeStore();
      for (let round = 0; round < 12; round += 1) {
        const token = randomUUID();
        await ownStore.claim(some(), { token, leaseMs: 1 });
        await exceptLocked(ownStore.release(some(), { token }));
        await exceptLocked(ownStore.commit(some(), { retainMs: 1 }));
      }
    };
    await Promise.all(Array.from({ length: 12 }, receive));
    expect(codes).not.toContain(DEADLOCK);
  });

  test('a purge while receivers claim what it deletes → no deadlock, and all gone in the end', async () => {
    const { codes, makeStore } = watchErrors(`${schema}.purged`);
    await makeStore().createTable();
    const keys = Array.from({ length: 200 }, (_, index) => `purge-${index}`);
    const receive = async () => {
      const ownStore = makeStore();
      for (let round = 0; round < 15; round += 1) {
        await ownStore.claim(shuffled(keys), { token: randomUUID(), leaseMs: 1 });
        await exceptLocked(ownStore.commit(shuffled(keys), { retainMs: 1 }));
      }
    };
    const purge = async () => {
      const ownStore = makeStore();
      for (let round = 0; round < 40; round += 1) await ownStore.purge();
    };
    await Promise.all([receive(), receive(), receive(), purge(), purge()]);
    expect(codes).not.toContain(DEADLOCK);
    // The last keys expire a millisecond after their commit, which can be after the first purge.
    await vi.waitFor(
      async () => {
        await makeStore().purge();
        const { rows } = await pool.query(`SELECT count(*)::int AS count FROM ${schema}.purged`);
        expect(rows).toEqual([{ count: 0 }]);
      },
      { timeout: 10_000 },
    );
  });
});
