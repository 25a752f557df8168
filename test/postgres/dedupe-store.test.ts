import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { PostgresDedupeStore, type Queryable } from '../../src/postgres/index.ts';
import { testDedupeStoreContract } from '../webhooks/dedupe-store-contract.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const MINUTE = { leaseMs: 60_000 };

let database: PGlite;
let store: PostgresDedupeStore;

beforeAll(async () => {
  database = await PGlite.create();
});
afterAll(() => database.close());
beforeEach(async () => {
  // The clock of this database is the one of the process, so a faked one moves both.
  vi.useFakeTimers({ toFake: ['Date'] });
  store = new PostgresDedupeStore({ pool: database });
  await store.createTable();
});
afterEach(async () => {
  await database.query('DROP TABLE tracking_inbox');
});

function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

/** A database that replies to a claim. */
function scripted(...rows: unknown[]): Queryable {
  return { query: async () => ({ rows }) };
}

describe('contract', () => {
  testDedupeStoreContract(() => store, pass);
});

describe('claim', () => {
  test('a key that another receiver inserts during the claim → busy for one second', async () => {
    const racing = new PostgresDedupeStore({ pool: scripted() });
    expect(await racing.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'busy', retryAfterMs: 1_000 },
    ]);
  });

  test('a free key that another receiver claims during the claim → busy for one second', async () => {
    const row = { key: 'a', claimant: null, attempts: null, holder: 'former', state: 'free', lease: -5 };
    const racing = new PostgresDedupeStore({ pool: scripted(row) });
    expect(await racing.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([
      { status: 'busy', retryAfterMs: 1_000 },
    ]);
  });

  test('keys that are done → one statement', async () => {
    await store.commit(['a', 'b'], { retainMs: DAY_MS });
    const query = vi.spyOn(database, 'query');
    const found = await store.claim(['a', 'b'], { token: 'mine', ...MINUTE });
    expect([found, query.mock.calls.length]).toEqual([Array(2).fill({ status: 'done' }), 1]);
  });

  test.each([undefined, 'gone', new Error('terminating connection')])(
    'a driver that rejects with %o → each call rejects with the same value',
    async (reason) => {
      const broken = new PostgresDedupeStore({ pool: { query: () => Promise.reject(reason) } });
      await expect(broken.claim(['a'], { token: 'mine', ...MINUTE })).rejects.toBe(reason);
      await expect(broken.commit(['a'], { retainMs: DAY_MS })).rejects.toBe(reason);
      await expect(broken.release(['a'], { token: 'mine' })).rejects.toBe(reason);
    },
  );

  test('a driver that returns numbers as strings → numbers', async () => {
    const busy = { key: 'b', holder: 'theirs', state: 'leased', lease: '250' };
    const texts = scripted(busy, { key: 'a', claimant: 'mine', attempts: '3' });
    expect(
      await new PostgresDedupeStore({ pool: texts }).claim(['a', 'b'], { token: 'mine', ...MINUTE }),
    ).toEqual([
      { status: 'acquired', attempt: 3 },
      { status: 'busy', retryAfterMs: 250 },
    ]);
  });
});

describe('forgetting', () => {
  test.each([
    [6, 2],
    [8, 1],
  ])('a key that failed %i days ago → attempt %i', async (days, attempt) => {
    await store.claim(['a'], { token: 'mine', ...MINUTE });
    await store.release(['a'], { token: 'mine' });
    pass(days * DAY_MS);
    expect(await store.claim(['a'], { token: 'mine', ...MINUTE })).toEqual([{ status: 'acquired', attempt }]);
  });

  test('a lease longer than a week → its attempts are kept as long as the lease', async () => {
    await store.claim(['a'], { token: 'mine', leaseMs: 9 * DAY_MS });
    pass(8 * DAY_MS);
    await store.release(['a'], { token: 'mine' });
    expect(await store.claim(['a'], { token: 'theirs', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 2 },
    ]);
  });
});

test('a new event → two statements, a claim and a commit', async () => {
  const query = vi.spyOn(database, 'query');
  await store.claim(['a'], { token: 'mine', ...MINUTE, retainMs: DAY_MS });
  await store.commit(['a'], { retainMs: DAY_MS });
  expect(query).toHaveBeenCalledTimes(2);
});

describe('a claim with retainMs of a done key', () => {
  const month = { token: 'mine', ...MINUTE, retainMs: 30 * DAY_MS };
  const readExpiry = async () =>
    (await database.query<{ expires_at: Date }>('SELECT expires_at FROM tracking_inbox')).rows[0]?.expires_at;

  test.each([
    ['nine tenths of the time are left → no write', 2, false],
    ['less is left → remembered for the whole time again', 4, true],
  ])('%s', async (_title, days, isExtended) => {
    await store.commit(['a'], { retainMs: 30 * DAY_MS });
    const before = await readExpiry();
    pass(days * DAY_MS);
    expect(await store.claim(['a'], month)).toEqual([{ status: 'done' }]);
    const expected = isExtended ? new Date(Date.now() + 30 * DAY_MS) : before;
    expect(await readExpiry()).toEqual(expected);
  });

  test('several claims in one statement → each key for its own time', async () => {
    await store.commit(['a', 'b'], { retainMs: DAY_MS });
    await Promise.all([store.claim(['a'], month), store.claim(['b'], { token: 'other', ...MINUTE })]);
    pass(2 * DAY_MS);
    expect(await store.claim(['a', 'b'], { token: 'late', ...MINUTE })).toEqual([
      { status: 'done' },
      { status: 'acquired', attempt: 1 },
    ]);
  });
});

describe('claims that extend the retention of one key', () => {
  const claimFor = (days: number) => store.claim(['a'], { token: 'x', ...MINUTE, retainMs: days * DAY_MS });

  test.each([
    [7, 30],
    [30, 7],
  ])('for %i and for %i days in one statement → for the longer time', async (...days) => {
    await store.commit(['a'], { retainMs: DAY_MS });
    await Promise.all(days.map(claimFor));
    pass(20 * DAY_MS);
    expect(await claimFor(1)).toEqual([{ status: 'done' }]);
  });

  test('another receiver extends it further between the read and the write → not shortened', async () => {
    await store.commit(['a'], { retainMs: DAY_MS });
    const query = async (text: string, values?: unknown[]) => {
      if (text.startsWith('UPDATE')) await claimFor(30);
      return database.query(text, values);
    };
    const slow = new PostgresDedupeStore({ pool: { query } });
    await slow.claim(['a'], { token: 'x', ...MINUTE, retainMs: 7 * DAY_MS });
    pass(20 * DAY_MS);
    expect(await claimFor(1)).toEqual([{ status: 'done' }]);
  });
});

describe('purge', () => {
  test('rows whose retention ended → deleted and counted, the other rows stay', async () => {
    await store.commit(['old-1', 'old-2'], { retainMs: 7 * DAY_MS });
    await store.commit(['kept'], { retainMs: 9 * DAY_MS });
    pass(8 * DAY_MS);
    expect(await store.purge()).toBe(2);
    expect(await store.claim(['kept'], { token: 'mine', ...MINUTE })).toEqual([{ status: 'done' }]);
  });

  test('more rows than one statement deletes → all deleted and counted', async () => {
    const counts = [10_000, 10_000, 3];
    const query = async () => ({ rows: Array.from({ length: counts.shift() ?? 0 }) });
    expect(await new PostgresDedupeStore({ pool: { query } }).purge()).toBe(20_003);
  });

  test('a lease renewed for longer than a week after its first claim → not purged', async () => {
    await store.claim(['a'], { token: 'mine', leaseMs: 6 * DAY_MS });
    pass(5 * DAY_MS);
    await store.claim(['a'], { token: 'mine', leaseMs: 6 * DAY_MS });
    pass(5 * DAY_MS);
    expect(await store.purge()).toBe(0);
    expect(await store.claim(['a'], { token: 'theirs', ...MINUTE })).toMatchObject([{ status: 'busy' }]);
  });
});

test('a table that does not exist → ConfigurationError, which names it and the way to create it', async () => {
  const claim = new PostgresDedupeStore({ pool: database, table: 'missing' }).claim(['a'], {
    token: 'mine',
    ...MINUTE,
  });
  await expect(claim).rejects.toThrow(ConfigurationError);
  await expect(claim).rejects.toThrow('The table "missing" does not exist; call `createTable()`');
});

test.each([undefined, null, 'postgres://localhost', {}])('%j as pool → ConfigurationError', (pool) => {
  // @ts-expect-error: what a caller without types may pass
  expect(() => new PostgresDedupeStore({ pool })).toThrow(ConfigurationError);
});

describe('calls that share a statement', () => {
  test('several claims of different keys → one statement, each key with its own token', async () => {
    const query = vi.spyOn(database, 'query');
    const found = await Promise.all(
      ['a', 'b', 'c', 'd'].map((key) => store.claim([key], { token: `token-${key}`, ...MINUTE })),
    );
    expect(query).toHaveBeenCalledTimes(1);
    expect(found.flat()).toEqual(Array(4).fill({ status: 'acquired', attempt: 1 }));
    await store.release(['c'], { token: 'token-b' });
    expect(await store.claim(['c'], { token: 'other', ...MINUTE })).toMatchObject([{ status: 'busy' }]);
    await store.release(['c'], { token: 'token-c' });
    expect(await store.claim(['c'], { token: 'other', ...MINUTE })).toEqual([
      { status: 'acquired', attempt: 2 },
    ]);
  });

  test('a shared statement that fails → all its calls reject, and the next statement is sent', async () => {
    const lost = new Error('connection lost');
    vi.spyOn(database, 'query').mockRejectedValueOnce(lost);
    const claim = (key: string) => store.claim([key], { token: 'mine', ...MINUTE });
    const outcomes = await Promise.allSettled([claim('a'), claim('b')]);
    expect(outcomes).toEqual(Array(2).fill({ status: 'rejected', reason: lost }));
    expect(await claim('b')).toEqual([{ status: 'acquired', attempt: 1 }]);
  });

  test('a claim before the renewal of a lease that has ended → the renewal keeps the lease', async () => {
    await store.claim(['a'], { token: 'holder', leaseMs: 1_000 });
    pass(2_000);
    const [theirs, renewal] = await Promise.all([
      store.claim(['a'], { token: 'theirs', ...MINUTE }),
      store.claim(['a'], { token: 'holder', ...MINUTE }),
    ]);
    expect(renewal).toEqual([{ status: 'acquired', attempt: 1 }]);
    expect(theirs).toMatchObject([{ status: 'busy' }]);
  });

  test('leases of several lengths → each lasts as long as its claim requested', async () => {
    await Promise.all([
      store.claim(['short'], { token: 'mine', leaseMs: 1_000 }),
      store.claim(['long'], { token: 'mine', leaseMs: 90_000 }),
    ]);
    pass(2_000);
    expect(await store.claim(['short', 'long'], { token: 'other', ...MINUTE })).toMatchObject([
      { status: 'acquired', attempt: 2 },
      { status: 'busy', retryAfterMs: 88_000 },
    ]);
  });

  test('several releases, also of one key by a stale token → each gives back its own lease only', async () => {
    await store.claim(['a', 'b', 'c'], { token: 'mine', ...MINUTE });
    await Promise.all([
      store.release(['a'], { token: 'mine' }),
      store.release(['c', 'b'], { token: 'stale' }),
      store.release(['b'], { token: 'mine', uncounted: true }),
    ]);
    expect(await store.claim(['a', 'b', 'c'], { token: 'other', ...MINUTE })).toMatchObject([
      { status: 'acquired', attempt: 2 },
      { status: 'acquired', attempt: 1 },
      { status: 'busy' },
    ]);
  });
});
