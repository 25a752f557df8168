import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/common/clock.ts';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { settleInVirtualTime, useVirtualTime } from '../support/virtual-time.ts';

const LEASE = { token: 'mine', leaseMs: 60_000 };

function buildError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code });
}

/** Finds the error of a statement with `count` keys, which is the `tries`-th statement with this key. */
type GetError = (key: string, tries: number, count: number) => Error | undefined;

/** A pool like that of `pg`. A statement fails if `getError` finds an error for one of its keys. */
class ConflictingDatabase {
  /** The keys of each write. */
  readonly sent: (readonly string[])[] = [];
  /** Whether each connection was destroyed when it came back. */
  readonly destroyed: boolean[] = [];
  readonly #getError: GetError;
  /** What reads find. */
  readonly #row: object | undefined;
  /** What reads find after the last try. Default: the same. */
  readonly #lastRow: object | undefined;
  /** `resolveConflict` runs after a failure that comes later than this. */
  readonly #lastTryAt = systemClock.now() + 1_000;
  #failedAt = 0;
  readonly totalCount = 0;

  constructor(getError: GetError, row?: object, lastRow = row) {
    this.#getError = getError;
    this.#row = row;
    this.#lastRow = lastRow;
  }

  readonly query = async (text: string, [keys]: unknown[] = []) => {
    const sent = keys as string[]; // The store sends its keys as the first value.
    if (text.startsWith('SELECT')) {
      const row = this.#failedAt < this.#lastTryAt ? this.#row : this.#lastRow;
      return { rows: row === undefined ? [] : [row] };
    }
    this.sent.push(sent);
    for (const key of sent) {
      const tries = this.sent.filter((others) => others.includes(key)).length;
      const error = this.#getError(key, tries, sent.length);
      if (error === undefined) continue;
      this.#failedAt = systemClock.now();
      throw error;
    }
    return { rows: sent.map((key) => ({ key, attempts: 1 })) };
  };

  readonly connect = async () => ({
    query: this.query,
    release: (destroy: boolean) => void this.destroyed.push(destroy),
  });
}

function isLocked(key: string): Error | undefined {
  return key === 'locked' ? buildError('55P03') : undefined;
}

describe.each([
  ['a lock timeout', '55P03'],
  ['a deadlock', '40P01'],
  ['a serialization failure', '40001'],
])('a shared statement that fails with %s', (_title, code) => {
  const failThrice = (key: string, tries: number) =>
    key === 'b' && tries <= 3 ? buildError(code) : undefined;

  test.each<[string, (store: PostgresDedupeStore, keys: string[]) => Promise<unknown>]>([
    ['claim', (store, keys) => store.claim(keys, LEASE)],
    ['commit', (store, keys) => store.commit(keys, { retainMs: 1 })],
    ['release', (store, keys) => store.release(keys, { token: 'mine' })],
  ])('%s → each key is sent alone, and the key in conflict until it succeeds', async (_name, call) => {
    const database = new ConflictingDatabase(failThrice);
    const store = new PostgresDedupeStore({ pool: database });
    await settleInVirtualTime(() => Promise.all([call(store, ['a']), call(store, ['b', 'c'])]));
    expect(database.sent).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c'], ['b'], ['b']]);
    expect(database.destroyed).toEqual(Array(6).fill(false));
  });
});

const FAILED = { key: 'locked', token: null, state: 'free', lease: null };

describe('a key that stays locked', () => {
  test.each([
    ['no row yet → busy for one second', undefined, undefined, { status: 'busy', retryAfterMs: 1_000 }],
    [
      'a row of a failed event → busy for one second',
      FAILED,
      FAILED,
      { status: 'busy', retryAfterMs: 1_000 },
    ],
    [
      'a row that another receiver leases during the last try → busy until that lease ends',
      FAILED,
      { key: 'locked', token: 'theirs', state: 'leased', lease: '250' },
      { status: 'busy', retryAfterMs: 250 },
    ],
    [
      'a row that is done during the last try → done',
      FAILED,
      { key: 'locked', token: null, state: 'done', lease: null },
      { status: 'done' },
    ],
  ])('%s', async (_title, row, lastRow, claim) => {
    const clock = useVirtualTime();
    const store = new PostgresDedupeStore({ pool: new ConflictingDatabase(isLocked, row, lastRow) });
    const claims = store.claim(['free', 'locked'], LEASE);
    await clock.advance(1_999);
    expect(await claims).toEqual([{ status: 'acquired', attempt: 1 }, claim]);
  });

  test('a renewal → rejects with the error of the lock, because another receiver has not taken over', async () => {
    const row = { key: 'locked', token: 'mine', state: 'leased', lease: 5_000 };
    const store = new PostgresDedupeStore({ pool: new ConflictingDatabase(isLocked, row) });
    await expect(settleInVirtualTime(() => store.claim(['locked'], LEASE))).rejects.toThrow('SQLSTATE 55P03');
  });

  test.each<[string, (store: PostgresDedupeStore, keys: string[]) => Promise<unknown>]>([
    ['commit', (store, keys) => store.commit(keys, { retainMs: 1 })],
    ['release', (store, keys) => store.release(keys, { token: 'mine' })],
  ])(
    '%s → rejects with the error of the lock; the call that shared the statement succeeds',
    async (_name, call) => {
      const database = new ConflictingDatabase(isLocked);
      const store = new PostgresDedupeStore({ pool: database });
      const outcomes = await settleInVirtualTime(() =>
        Promise.allSettled([call(store, ['free']), call(store, ['locked'])]),
      );
      expect(outcomes).toMatchObject([{ status: 'fulfilled' }, { reason: { code: '55P03' } }]);
      expect(database.sent.filter(([key]) => key === 'locked')).toSatisfy(
        (tries: unknown[]) => tries.length > 4,
      );
    },
  );

  test('a time limit that passes during a try → rejects, and no further try follows', async () => {
    const clock = useVirtualTime();
    let tries = 0;
    const query = async () => {
      tries += 1;
      await new Promise((resolve) => setTimeout(resolve, 60));
      throw buildError('55P03');
    };
    const store = new PostgresDedupeStore({ pool: { query }, commandTimeoutMs: 100 });
    const outcome = Promise.allSettled([store.commit(['locked'], { retainMs: 1 })]);
    await clock.advance(100);
    expect(await outcome).toMatchObject([
      { reason: { message: 'The store did not respond within 100 ms (`commandTimeoutMs`)' } },
    ]);
    const triesInTime = tries;
    await clock.advance(1_000);
    expect(tries).toBe(triesInTime);
    expect(clock.timerCount).toBe(0);
  });
});

test('a key that fails alone for another reason → only its call rejects', async () => {
  const store = new PostgresDedupeStore({
    pool: new ConflictingDatabase((key, _tries, count) => {
      if (key !== 'broken') return undefined;
      return count > 1 ? buildError('40P01') : new Error('connection lost');
    }),
  });
  const outcomes = await settleInVirtualTime(() =>
    Promise.allSettled([store.claim(['a'], LEASE), store.claim(['broken', 'b'], LEASE)]),
  );
  expect(outcomes).toMatchObject([
    { value: [{ status: 'acquired' }] },
    { reason: { message: 'connection lost' } },
  ]);
});

test('a purge that fails with a serialization failure → sent again', async () => {
  let tries = 0;
  const query = async () => {
    tries += 1;
    if (tries === 1) throw buildError('40001');
    return { rows: [{}, {}] };
  };
  const store = new PostgresDedupeStore({ pool: { query } });
  expect(await settleInVirtualTime(() => store.purge())).toBe(2);
});

test('no statement has a list of booleans, which postgres.js sends as one boolean', async () => {
  const values: unknown[] = [];
  const query = async (_text: string, sent: unknown[] = []) => {
    values.push(...sent);
    return { rows: [] };
  };
  const store = new PostgresDedupeStore({ pool: { query } });
  await store.claim(['a'], LEASE);
  await store.commit(['a'], { retainMs: 1 });
  await store.release(['a'], { token: 'mine', uncounted: true });
  await store.release(['a'], { token: 'mine' });
  await store.purge();
  expect(values.flat().map((value) => typeof value)).not.toContain('boolean');
  expect(values.length).toBeGreaterThan(0);
});

test.each([
  [undefined, '20'],
  [10_000, '100'],
  [50, '1'],
])('commandTimeoutMs %s → a statement waits for a lock for %s ms', async (commandTimeoutMs, lockTimeout) => {
  const settings: unknown[] = [];
  const query = async (text: string) => {
    // A read waits for no lock.
    if (!text.startsWith('SELECT'))
      settings.push(/set_config\('lock_timeout', '(\d+)', true\)/.exec(text)?.[1]);
    return { rows: [] };
  };
  const store = new PostgresDedupeStore({ pool: { query }, commandTimeoutMs });
  await store.claim(['a'], LEASE);
  await store.commit(['a'], { retainMs: 1 });
  await store.release(['a'], { token: 'mine' });
  expect(settings).toEqual([lockTimeout, lockTimeout, lockTimeout]);
});
