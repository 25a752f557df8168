import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { inboxTableSql, PostgresDedupeStore, type Queryable } from '../../src/postgres/index.ts';
import { dedupeStoreContract } from '../../src/testing/dedupe-store-contract.ts';
import { expectAgreementWithModel } from '../testing/model-agreement.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const MINUTE = { leaseMs: 60_000 };

let database: PGlite;
let store: PostgresDedupeStore;

beforeAll(async () => {
  database = await PGlite.create();
}, 120_000);
afterAll(() => database.close());
beforeEach(async () => {
  // The clock of this database is the one of the process, so a faked one moves both.
  vi.useFakeTimers({ toFake: ['Date'] });
  store = new PostgresDedupeStore({ client: database });
  await store.createTable();
});
afterEach(async () => {
  vi.useRealTimers();
  await database.query('DROP TABLE tracking_inbox');
});

function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

async function stateOf(key: string): Promise<unknown> {
  const { rows } = await database.query('SELECT state, token, attempts FROM tracking_inbox WHERE key = $1', [
    key,
  ]);
  return rows[0];
}

/** Gives the answers one after the other, whatever is asked. */
function scripted(...answers: { rows: unknown[] }[]): Queryable {
  return { query: async () => answers.shift() ?? { rows: [] } };
}

describe('contract', () => {
  const contract = dedupeStoreContract({ createStore: () => store, wait: pass });
  for (const { name, run } of contract) test(name, run);

  test('any sequence of calls → the same answers as the model', () =>
    expectAgreementWithModel(store, { now: Date.now, pass }, 150));
});

describe('claim', () => {
  test('a key twice in one call → both acquired, one attempt', async () => {
    expect(await store.claim(['a', 'a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 1 },
      { status: 'acquired', attempt: 1 },
    ]);
  });

  test('a key released while it was looked at → busy, worth asking again at once', async () => {
    const released = scripted({ rows: [] }, { rows: [{ key: 'a', done: false, retry_after_ms: null }] });
    const racing = new PostgresDedupeStore({ client: released });
    expect(await racing.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'busy', retryAfterMs: 1 },
    ]);
  });

  test('a key purged while it was looked at → busy, worth asking again at once', async () => {
    const racing = new PostgresDedupeStore({ client: scripted({ rows: [] }, { rows: [] }) });
    expect(await racing.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'busy', retryAfterMs: 1 },
    ]);
  });

  test.each([undefined, null, 'gone'])(
    'a driver that rejects with %o → rejects with that very thing',
    (reason) => {
      const odd = new PostgresDedupeStore({ client: { query: () => Promise.reject(reason) } });
      return expect(odd.claim(['a'], { token: 'mine', ...MINUTE })).rejects.toBe(reason);
    },
  );

  test('a driver that gives numbers as texts → numbers', async () => {
    const texts = scripted(
      { rows: [{ key: 'a', attempts: '3' }] },
      { rows: [{ key: 'b', done: false, retry_after_ms: '250' }] },
    );
    const stringly = new PostgresDedupeStore({ client: texts });
    expect(await stringly.claim(['a', 'b'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 3 },
      { status: 'busy', retryAfterMs: 250 },
    ]);
  });

  test('a failing client → rejects with its error', async () => {
    const down = new Error('terminating connection due to administrator command');
    const broken = new PostgresDedupeStore({ client: { query: () => Promise.reject(down) } });
    await expect(broken.claim(['a'], { token: 'mine', ...MINUTE })).rejects.toBe(down);
    await expect(broken.commit(['a'], { retainMs: DAY_MS })).rejects.toBe(down);
    await expect(broken.release(['a'], { token: 'mine' })).rejects.toBe(down);
  });

  test('a released key → the row says failed and keeps the attempts', async () => {
    await store.claim(['a'], { token: 'mine', ...MINUTE });
    await store.release(['a'], { token: 'mine' });
    expect(await stateOf('a')).toEqual({ state: 'failed', token: null, attempts: 1 });
  });
});

describe('forgetting', () => {
  test('a committed key before its retention ends → done', async () => {
    await store.commit(['a'], { retainMs: 30 * DAY_MS });
    pass(30 * DAY_MS - 1_000);
    expect(await store.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([{ status: 'done' }]);
  });

  test('a committed key after its retention ended → acquired, first attempt', async () => {
    await store.claim(['a'], { token: 'mine', leaseMs: 1_000 });
    pass(2_000);
    await store.claim(['a'], { token: 'theirs', ...MINUTE });
    await store.commit(['a'], { retainMs: 30 * DAY_MS });
    pass(30 * DAY_MS + 1_000);
    expect(await store.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 1 },
    ]);
  });

  test('a key that failed six days ago → the next attempt', async () => {
    await store.claim(['a'], { token: 'mine', ...MINUTE });
    await store.release(['a'], { token: 'mine' });
    pass(6 * DAY_MS);
    expect(await store.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 2 },
    ]);
  });

  test('a lease longer than a week → its attempts are kept as long', async () => {
    await store.claim(['a'], { token: 'mine', leaseMs: 9 * DAY_MS });
    pass(8 * DAY_MS);
    await store.release(['a'], { token: 'mine' });
    expect(await store.claim(['a'], { token: 'theirs', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 2 },
    ]);
  });

  test('a key that failed eight days ago → the first attempt again', async () => {
    await store.claim(['a'], { token: 'mine', ...MINUTE });
    await store.release(['a'], { token: 'mine' });
    pass(8 * DAY_MS);
    expect(await store.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 1 },
    ]);
  });
});

describe('purge', () => {
  test('rows whose retention ended → deleted and counted, the others stay', async () => {
    await store.commit(['old-1', 'old-2'], { retainMs: 7 * DAY_MS });
    await store.commit(['kept'], { retainMs: 9 * DAY_MS });
    pass(8 * DAY_MS);
    expect(await store.purge()).toBe(2);
    expect(await store.claim(['kept'], { token: 'mine', ...MINUTE })).toEqual([{ status: 'done' }]);
  });

  test('more rows than fit in a batch → all deleted', async () => {
    await store.commit(['a', 'b', 'c', 'd', 'e'], { retainMs: DAY_MS });
    pass(2 * DAY_MS);
    expect(await store.purge({ batchSize: 2 })).toBe(5);
  });

  test('as many rows as a batch holds → deleted, and it ends', async () => {
    await store.commit(['a', 'b'], { retainMs: DAY_MS });
    pass(2 * DAY_MS);
    expect(await store.purge({ batchSize: 2 })).toBe(2);
  });

  test('a batch of no rows → ConfigurationError, not a loop without end', async () => {
    await expect(store.purge({ batchSize: 0 })).rejects.toThrow(ConfigurationError);
  });

  test('a lease that outlives the retention of its attempts → stays', async () => {
    await store.claim(['a'], { token: 'mine', leaseMs: DAY_MS });
    pass(DAY_MS / 2);
    await store.claim(['a'], { token: 'mine', leaseMs: 20 * DAY_MS });
    pass(8 * DAY_MS);
    expect(await store.purge()).toBe(0);
    expect(await store.claim(['a'], { token: 'theirs', ...MINUTE })).toMatchObject([{ status: 'busy' }]);
  });
});

describe('createTable', () => {
  test('a table that exists → nothing is lost', async () => {
    await store.commit(['a'], { retainMs: DAY_MS });
    await store.createTable();
    expect(await store.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([{ status: 'done' }]);
  });

  test('a schema and capitals in the name → that very table', async () => {
    await database.query('CREATE SCHEMA "Hooks"');
    const other = new PostgresDedupeStore({ client: database, table: 'Hooks.Inbox' });
    await other.createTable();
    await other.commit(['a'], { retainMs: DAY_MS });
    const { rows } = await database.query('SELECT key FROM "Hooks"."Inbox"');
    expect(rows).toEqual([{ key: 'a' }]);
  });

  test('the SQL of the docs → makes the same table', async () => {
    await database.exec(inboxTableSql('by_hand'));
    const other = new PostgresDedupeStore({ client: database, table: 'by_hand' });
    expect(await other.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 1 },
    ]);
  });
});

test.each([undefined, null, 'postgres://localhost', {}])('%j as client → ConfigurationError', (client) => {
  // @ts-expect-error: what a caller without types may pass
  expect(() => new PostgresDedupeStore({ client })).toThrow(ConfigurationError);
});

test('a table name that is more than a name → ConfigurationError', () => {
  expect(() => new PostgresDedupeStore({ client: database, table: 'inbox; DROP TABLE users' })).toThrow(
    ConfigurationError,
  );
});
