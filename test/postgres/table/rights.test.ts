import { randomUUID } from 'node:crypto';
import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { inboxTableSql, PostgresDedupeStore } from '../../../src/postgres/index.ts';

const LEASE = { token: 'mine', leaseMs: 60_000 };

let database: PGlite;
let schema: string;

beforeAll(async () => {
  database = await PGlite.create();
  await database.exec('CREATE ROLE app');
});
afterAll(() => database.close());
beforeEach(async () => {
  schema = `s${randomUUID().replaceAll('-', '')}`;
  await database.exec(`RESET ROLE; RESET search_path; CREATE SCHEMA ${schema}`);
});

/** Makes a store whose role has only these rights; each begins with a statement such as `GRANT`. */
async function makeStore(name: string, ...grants: string[]): Promise<PostgresDedupeStore> {
  await database.exec([...grants, 'SET ROLE app'].join(';'));
  return new PostgresDedupeStore({ pool: database, table: name });
}

const ALL = 'SELECT, INSERT, UPDATE, DELETE';

describe('createTable', () => {
  test('the table exists, and the role may not create tables → nothing to do', async () => {
    const table = `${schema}.inbox`;
    const grants = [`GRANT USAGE ON SCHEMA ${schema} TO app`, `GRANT ${ALL} ON ${table} TO app`];
    const store = await makeStore(table, inboxTableSql(table), ...grants);
    await store.createTable();
    expect(await store.claim(['a'], LEASE)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });

  test('the table exists on the search path → nothing to do', async () => {
    const table = `${schema}.on_path`;
    const grants = [`GRANT USAGE ON SCHEMA ${schema} TO app`, `GRANT ${ALL} ON ${table} TO app`];
    const store = await makeStore(
      'on_path',
      inboxTableSql(table),
      ...grants,
      `SET search_path = "$user", ${schema}`,
    );
    await store.createTable();
    expect(await store.claim(['a'], LEASE)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });

  test('the table exists in a schema that is not on the search path → created', async () => {
    const store = await makeStore(
      'elsewhere',
      inboxTableSql(`${schema}.elsewhere`),
      `CREATE SCHEMA own_${schema} AUTHORIZATION app`,
      `SET search_path = own_${schema}`,
    );
    await store.createTable();
    expect(await store.claim(['a'], LEASE)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });

  test('a role that may create tables → created', async () => {
    const store = await makeStore(`${schema}.inbox`, `GRANT USAGE, CREATE ON SCHEMA ${schema} TO app`);
    await store.createTable();
    expect(await store.claim(['a'], LEASE)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });

  test('a schema that does not exist → rejects with the error of the server', async () => {
    const store = await makeStore('missing_schema.inbox');
    await expect(store.createTable()).rejects.toThrow('schema "missing_schema" does not exist');
  });
});

describe('a missing right', () => {
  const use = (store: PostgresDedupeStore) => store.claim(['a'], LEASE);
  const create = (store: PostgresDedupeStore) => store.createTable();

  test.each<[string, (table: string) => string[], (store: PostgresDedupeStore) => Promise<unknown>, string]>([
    [
      'CREATE on the schema, createTable',
      () => [`GRANT USAGE ON SCHEMA $s TO app`],
      create,
      'CREATE ON SCHEMA $s',
    ],
    [
      'USAGE on the schema of the table, createTable',
      (table) => [inboxTableSql(table)],
      create,
      'USAGE ON SCHEMA $s, SELECT ON $s.inbox',
    ],
    [
      'USAGE on the schema of the table, claim',
      (table) => [inboxTableSql(table), `GRANT ${ALL} ON ${table} TO app`],
      use,
      'USAGE ON SCHEMA $s',
    ],
    [
      'INSERT and UPDATE on the table, claim',
      (table) => [
        inboxTableSql(table),
        'GRANT USAGE ON SCHEMA $s TO app',
        `GRANT SELECT, DELETE ON ${table} TO app`,
      ],
      use,
      'INSERT ON $s.inbox, UPDATE ON $s.inbox',
    ],
    [
      'DELETE on the table, purge',
      (table) => [
        inboxTableSql(table),
        'GRANT USAGE ON SCHEMA $s TO app',
        `GRANT SELECT, INSERT, UPDATE ON ${table} TO app`,
      ],
      (store) => store.purge(),
      'DELETE ON $s.inbox',
    ],
  ])('%s → ConfigurationError that names it', async (_title, grant, call, lacking) => {
    const named = (text: string) => text.replaceAll('$s', schema);
    const store = await makeStore(`${schema}.inbox`, ...grant(`${schema}.inbox`).map(named));
    const outcome = call(store);
    await expect(outcome).rejects.toThrow(ConfigurationError);
    await expect(outcome).rejects.toThrow(`The role of \`pool\` lacks these rights: ${named(lacking)}`);
  });

  test.each([
    ['claim', use],
    ['createTable', create],
  ])(
    'USAGE on the schema of the search path, %s → named, not told to create the table',
    async (_title, call) => {
      const table = `${schema}.inbox`;
      const grants = [inboxTableSql(table), `GRANT ${ALL} ON ${table} TO app`, `SET search_path = ${schema}`];
      const store = await makeStore('inbox', ...grants);
      await expect(call(store)).rejects.toThrow(`lacks these rights: USAGE ON SCHEMA ${schema}`);
    },
  );
});

test('an error about rights, and a look-up that fails → the first error', async () => {
  const denied = Object.assign(new Error('permission denied for table inbox'), { code: '42501' });
  const store = new PostgresDedupeStore({ pool: { query: () => Promise.reject(denied) } });
  await expect(store.claim(['a'], LEASE)).rejects.toBe(denied);
});
