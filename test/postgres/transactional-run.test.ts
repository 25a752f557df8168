import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  TransactionalInbox,
  type TransactionalInboxOptions,
  type TransactionRunner,
  type TransactionSource,
} from '../../src/postgres/transactional-inbox.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const KEYS = ['a', 'b', 'c'].map((id) => `tracking/events:t1:${id}`);
const silent = () => {};
const hanging = () => new Promise<never>(() => {});
const outOfStock = () => Promise.reject(new Error('out of stock'));

/** A push of the first of three events. */
function takeFirst(count: number) {
  const occurrenceDatetime = '2021-03-04';
  const events = ['a', 'b', 'c'].map((eventId, order) => ({ eventId, occurrenceDatetime, order }));
  return { trackerId: 't1', events: events.slice(0, count) };
}
const PUSH = takeFirst(3);

type Reply = (keys: readonly string[]) => readonly object[];

function failing(code: string): () => never {
  return () => {
    throw Object.assign(new Error('canceling statement'), { code });
  };
}

/** Gives all keys, each with so many attempts. */
function giving(countAttempts: (key: string) => number = () => 1): Reply {
  return (keys) => keys.map((key) => ({ key, attempts: countAttempts(key) }));
}

/** A database that replies to `look` and `take` with the given functions; `taken` records the keys of each `take`. */
function makeDatabase({ look = () => [], take = giving() }: { look?: Reply; take?: Reply } = {}) {
  const taken: (readonly string[])[] = [];
  const query = vi.fn(async (text: string, values: unknown[] = []) => {
    // Sound: the first value of each statement of the inbox is its list of keys.
    const keys = values[0] as readonly string[];
    if (text.startsWith('SELECT key')) return { rows: [...look(keys)] };
    if (!text.includes('current_setting')) return { rows: [] };
    taken.push(keys);
    return { rows: [...take(keys)] };
  });
  const pool: TransactionRunner = { query, transaction: (work) => work({ query }) };
  return { pool, query, taken };
}

function makeInbox<Source extends TransactionSource>(
  pool: Source,
  options: Partial<TransactionalInboxOptions<Source>> = {},
) {
  return new TransactionalInbox<Source>({ pool, onError: silent, callbackTimeoutMs: 5_000, ...options });
}

describe('a database that fails', () => {
  test('a database that is down → unavailable, no callback called, reported to onError once', async () => {
    const down = new Error('connect ECONNREFUSED');
    const [onEvent, onError] = [vi.fn(), vi.fn()];
    const fail = () => Promise.reject(down);
    const report = await makeInbox({ query: fail, transaction: fail }, { onError }).process(PUSH, onEvent);
    expect(report).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
    expect(onEvent).not.toHaveBeenCalled();
    expect(onError).toHaveBeenCalledExactlyOnceWith(down, { operation: 'claim', keys: KEYS });
  });

  test('a runner that resolves without running the work → unavailable, so that the webhook is redelivered', async () => {
    const { pool } = makeDatabase();
    // A broken adapter of a program without types.
    pool.transaction = async () => undefined as never;
    expect(await makeInbox(pool).process(PUSH, silent)).toMatchObject({
      outcome: 'unavailable',
      unavailable: KEYS,
    });
  });

  test('a database that goes down after the claim → all events are unavailable, and no event is tried alone', async () => {
    const { pool, query, taken } = makeDatabase();
    const report = await makeInbox(pool).process(PUSH, () => {
      query.mockRejectedValue(new Error('server closed the connection'));
    });
    expect(report).toMatchObject({ outcome: 'unavailable', handled: 0, unavailable: KEYS });
    expect(taken).toEqual([KEYS]);
  });

  test('a database that goes down before a failure is counted → reported to onError, outcome failed', async () => {
    const { pool, query } = makeDatabase();
    const down = new Error('server closed the connection');
    const onError = vi.fn();
    const report = await makeInbox(pool, { onError }).process(takeFirst(1), () => {
      query.mockRejectedValue(down);
      return outOfStock();
    });
    expect(report).toMatchObject({ outcome: 'failed', unavailable: [] });
    expect(onError).toHaveBeenLastCalledWith(down, { operation: 'release', keys: KEYS.slice(0, 1) });
  });

  test('a database that goes down while events are tried one by one → the rest are not tried', async () => {
    const { pool, taken } = makeDatabase({
      take: (keys) => (taken.length > 1 ? failing('08006')() : giving()(keys)),
    });
    const report = await makeInbox(pool).process(PUSH, outOfStock);
    expect(report).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
    expect(taken).toEqual([KEYS, KEYS.slice(0, 1)]);
  });

  test('a database that hangs → unavailable after commandTimeoutMs, no callback called', async () => {
    const onEvent = vi.fn();
    const pool: TransactionRunner = { query: hanging, transaction: (work) => work({ query: hanging }) };
    const processing = makeInbox(pool, { commandTimeoutMs: 1_000 }).process(PUSH, onEvent);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await processing).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
    expect(onEvent).not.toHaveBeenCalled();
  });

  test.each(['BEGIN; SAVEPOINT tracking_webhook', 'RELEASE SAVEPOINT tracking_webhook; COMMIT'])(
    'a failure at %s of the last attempt → not dead-lettered, because no callback failed',
    async (breaking) => {
      const { query } = makeDatabase();
      const breakingQuery = (text: string, values?: unknown[]) =>
        text === breaking ? Promise.reject(new Error('connection terminated')) : query(text, values);
      const pool = { query, connect: async () => ({ query: breakingQuery, release: silent }) };
      const onDeadLetter = vi.fn();
      const report = await makeInbox(pool, { maxAttempts: 1, onDeadLetter }).process(takeFirst(1), silent);
      expect(report.outcome).toBe('unavailable');
      expect(onDeadLetter).not.toHaveBeenCalled();
    },
  );
});

describe('keys that another process holds', () => {
  test('a lock held longer than commandTimeoutMs → waited for, up to busyTimeoutMs', async () => {
    const { pool, query } = makeDatabase();
    pool.transaction = (work) =>
      work({
        query: async (text, values) => {
          if (text.includes('current_setting')) await new Promise((resolve) => setTimeout(resolve, 6_000));
          return query(text, values);
        },
      });
    const processing = makeInbox(pool).process(takeFirst(1), silent);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
  });

  test.each([
    ['a lock timeout', '55P03'],
    ['a statement_timeout of the application', '57014'],
    ['a deadlock with another receiver', '40P01'],
  ])('%s (%s) → busy for one second', async (_title, code) => {
    const report = await makeInbox(makeDatabase({ take: failing(code) }).pool).process(PUSH, silent);
    expect(report).toMatchObject({ outcome: 'busy', busy: KEYS, retryAfterMs: 1_000, failures: [] });
  });

  test('one of three keys locked for too long → the other events are handled, each in its own transaction', async () => {
    const { pool, taken } = makeDatabase({
      take: (keys) => (keys.includes(KEYS[0] ?? '') ? failing('55P03')() : giving()(keys)),
    });
    const report = await makeInbox(pool).process(PUSH, silent);
    expect(report).toMatchObject({ outcome: 'busy', handled: 2, busy: KEYS.slice(0, 1) });
    expect(taken).toEqual([KEYS, ...KEYS.map((key) => [key])]);
  });

  // For PostgreSQL, a `lock_timeout` of 0 means no limit.
  test.each([
    [2_500, '2500ms'],
    [0, '1ms'],
  ])('busyTimeoutMs %d → the database waits for a lock at most %s', async (busyTimeoutMs, lockTimeout) => {
    const { pool, query } = makeDatabase();
    // A process that has run for a while.
    vi.advanceTimersByTime(10_000);
    await makeInbox(pool).process(PUSH, silent, { busyTimeoutMs });
    const take = query.mock.calls.find(([text]) => text.includes('current_setting'));
    expect(take?.[1]?.at(2)).toBe(lockTimeout);
  });

  test('onEvents and two events, of which another receiver finishes one → called with the other event only', async () => {
    const { pool } = makeDatabase({
      look: (keys) => (keys.length === 1 ? keys.map((key) => ({ key, done: true })) : []),
      take: () => [{ key: KEYS[1], attempts: 1 }],
    });
    const onEvents = vi.fn();
    const report = await makeInbox(pool).process(takeFirst(2), { onEvents });
    expect(onEvents).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ events: [expect.objectContaining({ eventId: 'b' })] }),
      expect.objectContaining({ keys: [KEYS[1]] }),
    );
    expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 1 });
  });
});

describe('a callback beyond callbackTimeoutMs', () => {
  test('onDeadLetter for one of two events of onEvents → both events failed, with the errors reported to onError', async () => {
    const told: unknown[] = [];
    const { pool } = makeDatabase({ take: giving((key) => (key === KEYS[0] ? 3 : 1)) });
    const inbox = makeInbox(pool, {
      onError: (_error, { operation }) => told.push(operation),
      maxAttempts: 3,
      onDeadLetter: hanging,
    });
    const processing = inbox.process(takeFirst(2), { onEvents: outOfStock });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await processing).toMatchObject({
      outcome: 'failed',
      deadLettered: 0,
      failures: KEYS.slice(0, 2).map((key) => ({ keys: [key] })),
    });
    expect(told).toEqual(['callback', 'deadLetter']);
  });

  test('a shutdown during the callback → all events are interrupted, and none is claimed again', async () => {
    const shutdown = new AbortController();
    const { pool, taken } = makeDatabase();
    const processing = makeInbox(pool).process(PUSH, hanging, { signal: shutdown.signal });
    await vi.advanceTimersByTimeAsync(1_000);
    shutdown.abort();
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await processing).toMatchObject({ outcome: 'interrupted', interrupted: KEYS, handled: 0 });
    expect(taken).toEqual([KEYS]);
  });
});

test.each([
  ['beyond callbackTimeoutMs → the connection is closed, not returned', hanging, true],
  ['that fails → the connection is returned to the pool', outOfStock, false],
])('a callback %s', async (_title, onEvent, isClosed) => {
  const { query } = makeDatabase();
  const release = vi.fn();
  const pool = { query, connect: async () => ({ query, release }) };
  const processing = makeInbox(pool).process(takeFirst(1), onEvent);
  await vi.advanceTimersByTimeAsync(5_000);
  await processing;
  expect(release.mock.calls[0]).toEqual([isClosed]);
});
