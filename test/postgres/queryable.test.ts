import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';

const LEASE = { token: 'mine', leaseMs: 60_000 };
const ADVICE = 'such as `dataSource.driver.master` of TypeORM';

/** Has the type that a caller without types may pass. */
function makeStore(pool: unknown): PostgresDedupeStore {
  // @ts-expect-error: `unknown` is not a `Queryable`
  return new PostgresDedupeStore({ pool });
}

describe('an object or function without `query(text, values)`', () => {
  test.each<[string, unknown, string]>([
    ['a Prisma client', { $queryRawUnsafe: async () => [], $connect: async () => {} }, 'an object'],
    ['a drizzle database, whose `query` is an object', { query: { users: {} }, $client: {} }, 'an object'],
    ['a Knex instance', Object.assign(() => {}, { raw: async () => ({ rows: [] }) }), 'a function'],
    ['a function of postgres.js', Object.assign(async () => [], { unsafe: async () => [] }), 'a function'],
    ['a Kysely instance', { selectFrom: () => {}, executeQuery: async () => ({ rows: [] }) }, 'an object'],
  ])('%s → refused at construction, with what to pass instead', (_title, pool, got) => {
    expect(() => makeStore(pool)).toThrow(ConfigurationError);
    expect(() => makeStore(pool)).toThrow(
      'Expected `pool` to be a pool or client of `pg`, or an object whose `query(text, values)` resolves to `{ rows }` (',
    );
    expect(() => makeStore(pool)).toThrow(ADVICE);
    expect(() => makeStore(pool)).toThrow(`), got ${got}`);
  });
});

describe('a `query` that returns something else than `{ rows }`', () => {
  test.each<[string, unknown, string]>([
    [
      'a TypeORM data source or pg-promise, which return the rows',
      [],
      'resolve to `{ rows }`, got an empty array',
    ],
    [
      'Sequelize, which returns rows and metadata',
      [[], {}],
      'resolve to `{ rows }`, got an array of 2 items',
    ],
    ['a client with callbacks', undefined, 'resolve to `{ rows }`, got undefined'],
    ['a client with another name for rows', { recordset: [] }, 'resolve to `{ rows }`, got an object'],
    ['rows that are no list', { rows: 3 }, 'resolve to `{ rows }`, got an object'],
    [
      'rows as arrays',
      { rows: [['a', 'mine']] },
      'resolve to rows that are objects, got rows that are arrays',
    ],
  ])('%s → each call rejects with what came, and what to pass instead', async (_title, reply, got) => {
    const store = makeStore({ query: async () => reply });
    for (const call of [
      () => store.createTable(),
      () => store.claim(['a'], LEASE),
      () => store.commit(['a'], { retainMs: 1 }),
      () => store.release(['a'], { token: 'mine' }),
      () => store.purge(),
    ]) {
      const error = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ConfigurationError);
      expect(error).toMatchObject({ option: 'pool', message: expect.stringContaining(ADVICE) });
      expect(error).toMatchObject({
        message: expect.stringContaining(`Expected \`pool.query(text, values)\` to ${got}; `),
      });
    }
  });

  test('rows with data in a wrong form → the message contains no data', async () => {
    const store = makeStore({ query: async () => [{ key: 'tracking/events:t-1:e-1' }] });
    const error = await store.claim(['a'], LEASE).catch((reason: unknown) => reason);
    expect(String(error)).not.toContain('t-1');
  });
});

test.each([
  ['its SQLSTATE', { code: '42P02' }],
  ['its message only', {}],
])(
  'a `query` that sends no values, told by %s → refused, with what to pass instead',
  async (_title, fields) => {
    const cause = Object.assign(new Error('there is no parameter $1'), fields);
    const store = makeStore({ query: () => Promise.reject(cause) });
    await expect(store.claim(['a'], LEASE)).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringContaining(
        'Expected `pool.query(text, values)` to pass on its values, got a statement without values; ',
      ),
      cause,
    });
  },
);
