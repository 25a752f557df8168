import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { TransactionalInbox, type TransactionRunner } from '../../src/postgres/index.ts';

const KEYS = ['a', 'b', 'c'].map((id) => `tracking/events:t1:${id}`);
const PUSH = {
  trackerId: 't1',
  events: ['a', 'b', 'c'].map((eventId, order) => ({
    eventId,
    occurrenceDatetime: '2021-03-04',
    order,
  })),
};

/** The push with its first events only. */
function firstOf(count: number) {
  return { ...PUSH, events: PUSH.events.slice(0, count) };
}

type Rows = readonly unknown[];

function done(key: unknown) {
  return { key, done: true };
}

/** A database that answers the statements of the inbox as told, and all others with nothing. */
function answering(answers: {
  look?: (keys: unknown) => Rows;
  take?: (keys: unknown) => Rows;
}): TransactionRunner {
  const query = async (text: string, values: unknown[] = []) => {
    if (text.startsWith('SELECT key')) return { rows: [...(answers.look?.(values[0]) ?? [])] };
    if (text.includes('current_setting')) return { rows: [...(answers.take?.(values[0]) ?? [])] };
    return { rows: [] };
  };
  return { query, transaction: (work) => work({ query }) };
}

function failing(code: string): () => Rows {
  return () => {
    throw Object.assign(new Error('canceling statement'), { code });
  };
}

const silent = () => {};

test('a database that is down → unavailable, no handler called, told to onError once', async () => {
  const down = new Error('connect ECONNREFUSED');
  const handler = vi.fn();
  const onError = vi.fn();
  const pool: TransactionRunner = {
    query: () => Promise.reject(down),
    transaction: () => Promise.reject(down),
  };
  const report = await new TransactionalInbox({ pool, onError }).process(PUSH, handler);
  expect(report).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
  expect(handler).not.toHaveBeenCalled();
  expect(onError).toHaveBeenCalledExactlyOnceWith(down, { operation: 'claim', keys: KEYS });
});

test('three leases of a store on the same table → retryAfterMs is when the first of them ends', async () => {
  const lefts = [9_000, 5_000, 7_000];
  const pool = answering({
    look: (keys) =>
      KEYS.map((key, index) => ({ key, done: false, retry_after_ms: lefts[index] })).filter(
        ({ key }) => Array.isArray(keys) && keys.includes(key),
      ),
  });
  const report = await new TransactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'busy', retryAfterMs: 5_000 });
});

test.each([
  ['an event alone', 1],
  ['two events of onEvents, of which one is on its last attempt', 2],
])(
  '%s, and onDeadLetter beyond callbackTimeoutMs → failed, told to onError as such',
  async (_title, count) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const told: unknown[] = [];
    const inbox = new TransactionalInbox({
      pool: giving((key) => (key === KEYS[0] ? 3 : 1)).pool,
      onError: (_error, { operation }) => told.push(operation),
      maxAttempts: 3,
      callbackTimeoutMs: 5_000,
      onDeadLetter: () => new Promise(() => {}),
    });
    const processing = inbox.process(firstOf(count), {
      onEvents: () => Promise.reject(new Error('no such tracker')),
    });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await processing).toMatchObject({
      outcome: 'failed',
      deadLettered: 0,
      failures: KEYS.slice(0, count).map((key) => ({ keys: [key] })),
    });
    expect(told).toEqual(['callback', 'deadLetter']);
  },
);

test('a database that goes down after the events were taken together → all is unavailable, and nothing is tried in vain', async () => {
  const taken: unknown[] = [];
  const pool = answering({
    take: (keys) => {
      taken.push(keys);
      return KEYS.map((key) => ({ key, attempts: 1 }));
    },
  });
  let isDown = false;
  const { transaction } = pool;
  pool.transaction = (work) =>
    transaction((given) =>
      work({
        query: async (...statement) => {
          if (isDown) throw new Error('server closed the connection');
          return given.query(...statement);
        },
      }),
    );
  const report = await new TransactionalInbox({ pool, onError: silent }).process(PUSH, () => {
    isDown = true;
  });
  expect(report).toMatchObject({ outcome: 'unavailable', handled: 0, unavailable: KEYS });
  expect(taken).toEqual([KEYS]);
});

test('a database that goes down while the events are taken one by one → the others are not tried in vain', async () => {
  const taken: unknown[] = [];
  const pool = answering({
    take: (keys) => {
      taken.push(keys);
      if (taken.length > 1) throw new Error('server closed the connection');
      return KEYS.map((key) => ({ key, attempts: 1 }));
    },
  });
  const report = await new TransactionalInbox({ pool, onError: silent }).process(PUSH, () => {
    throw new Error('out of stock');
  });
  expect(report).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
  expect(taken).toEqual([KEYS, KEYS.slice(0, 1)]);
});

test('a database that hangs → unavailable after commandTimeoutMs, no callback called', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const onEvent = vi.fn();
  const query = () => new Promise<never>(() => {});
  const pool: TransactionRunner = { query, transaction: (work) => work({ query }) };
  const inbox = new TransactionalInbox({ pool, onError: silent, commandTimeoutMs: 1_000 });
  const processing = inbox.process(PUSH, onEvent);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await processing).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
  expect(onEvent).not.toHaveBeenCalled();
});

test('a rival that holds a key for longer than commandTimeoutMs → waited for, up to busyTimeoutMs', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { pool } = giving();
  const { query } = pool;
  const slow: TransactionRunner['query'] = async (text, values) => {
    if (text.includes('current_setting')) await new Promise((resolve) => setTimeout(resolve, 6_000));
    return query(text, values);
  };
  const processing = new TransactionalInbox({
    pool: { query, transaction: (work) => work({ query: slow }) },
    onError: silent,
  }).process(firstOf(1), silent);
  await vi.advanceTimersByTimeAsync(6_000);
  expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
});

test.each([
  ['a lock that is not given in time', '55P03'],
  ['a wait that the statement_timeout of the application ends', '57014'],
  ['a deadlock with another receiver', '40P01'],
])('%s (%s) → busy, to be asked for soon', async (_title, code) => {
  const pool = answering({ take: failing(code) });
  const report = await new TransactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'busy', busy: KEYS, retryAfterMs: 1_000, failures: [] });
});

// PostgreSQL takes a `lock_timeout` of 0 for none.
test.each([
  [2_500, '2500ms'],
  [0, '1ms'],
])('a budget of %d ms → the database waits for a rival at most %s', async (busyTimeoutMs, lockTimeout) => {
  vi.useFakeTimers();
  try {
    const pool = answering({});
    const query = vi.fn(pool.query);
    // A process that has run for a while.
    vi.advanceTimersByTime(10_000);
    await new TransactionalInbox({
      pool: { query, transaction: (work) => work({ query }) },
      onError: silent,
    }).process(PUSH, silent, { busyTimeoutMs });
    const taken = query.mock.calls.find(([text]) => text.includes('current_setting'));
    expect(taken?.[1]?.at(2)).toBe(lockTimeout);
  } finally {
    vi.useRealTimers();
  }
});

/** A database that gives all that is asked for, each with so many attempts, or is done with it, and writes down what it is told. */
function giving(attemptsOf: (key: unknown) => number | 'done' = () => 1) {
  const each = (keys: unknown): readonly unknown[] => (Array.isArray(keys) ? keys : []);
  const pool = answering({
    look: (keys) =>
      each(keys)
        .filter((key) => attemptsOf(key) === 'done')
        .map(done),
    take: (keys) =>
      each(keys)
        .filter((key) => attemptsOf(key) !== 'done')
        .map((key) => ({ key, attempts: attemptsOf(key) })),
  });
  const query = vi.fn(pool.query);
  const countOf = (start: string) => query.mock.calls.filter(([text]) => text.startsWith(start)).length;
  /** The keys that each transaction asked for. */
  const taken = () =>
    query.mock.calls.filter(([text]) => text.includes('current_setting')).map(([, values]) => values?.[0]);
  const transaction: TransactionRunner['transaction'] = (work) => work({ query });
  return { pool: { query, transaction }, countOf, taken };
}

test('a key that another process holds for too long → the other events are handled, each in a transaction of its own', async () => {
  const pool = answering({
    take: (keys) => {
      if (!Array.isArray(keys) || keys.includes(KEYS[0])) return failing('55P03')();
      return keys.map((key: unknown) => ({ key, attempts: 1 }));
    },
  });
  const handler = vi.fn();
  const report = await new TransactionalInbox({ pool, onError: silent }).process(PUSH, handler);
  expect(report).toMatchObject({ outcome: 'busy', handled: 2, busy: KEYS.slice(0, 1) });
  expect(handler).toHaveBeenCalledTimes(2);
});

describe('a commit that fails for a deferred constraint', () => {
  /** A database that refuses to commit the event b. */
  function refusing() {
    const { pool, taken } = giving();
    const transaction: TransactionRunner['transaction'] = async (work) => {
      const countBefore = taken().length;
      const result = await pool.transaction(work);
      if (taken().slice(countBefore).flat().includes(KEYS[1])) failing('23503')();
      return result;
    };
    return { pool: { ...pool, transaction }, taken };
  }

  test('two events → handled again, each in a transaction of its own, and one is failed', async () => {
    const { pool, taken } = refusing();
    const report = await new TransactionalInbox({ pool, onError: silent }).process(firstOf(2), silent);
    expect(report).toMatchObject({ outcome: 'failed', handled: 1, failures: [{ keys: [KEYS[1]] }] });
    expect(taken()).toEqual([KEYS.slice(0, 2), [KEYS[0]], [KEYS[1]]]);
  });
});

describe('a callback that outlives callbackTimeoutMs, which ends the transaction', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const hanging = () => new Promise(() => {});

  test('a shutdown meanwhile → all events are interrupted, and none is taken again', async () => {
    const shutdown = new AbortController();
    const { pool, taken } = giving();
    const inbox = new TransactionalInbox({ pool, onError: silent, callbackTimeoutMs: 5_000 });
    const processing = inbox.process(PUSH, hanging, { signal: shutdown.signal });
    await vi.advanceTimersByTimeAsync(1_000);
    shutdown.abort();
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await processing).toMatchObject({ outcome: 'interrupted', interrupted: KEYS, handled: 0 });
    expect(taken()).toEqual([KEYS]);
  });

  test('onEvents, one of whose events was done before → failed, and the other message is handled', async () => {
    const { pool } = giving((key) => (key === KEYS[0] ? 'done' : 1));
    const inbox = new TransactionalInbox({ pool, onError: silent, callbackTimeoutMs: 5_000 });
    const other = { trackerId: 't2', events: [{ eventId: 'd' }] };
    const processing = inbox.process(
      { trackings: [firstOf(2), other] },
      { onEvents: ({ tracker }) => (tracker.trackerId === 't1' ? hanging() : undefined) },
    );
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await processing).toMatchObject({
      outcome: 'failed',
      handled: 1,
      duplicates: 1,
      failures: [{ keys: [KEYS[1]] }],
    });
  });

  test('an event that was dead-lettered before it → dead-lettered after all', async () => {
    const { pool } = giving((key) => (key === KEYS[0] ? 3 : 1));
    const inbox = new TransactionalInbox({
      pool,
      onError: silent,
      callbackTimeoutMs: 5_000,
      maxAttempts: 3,
      onDeadLetter: silent,
    });
    const processing = inbox.process(firstOf(2), ({ eventId }) =>
      eventId === 'a' ? Promise.reject(new Error('out of stock')) : hanging(),
    );
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await processing).toMatchObject({
      outcome: 'failed',
      deadLettered: 1,
      failures: [{ keys: [KEYS[1]] }],
    });
  });

  /** The last attempt at one event; resolves to what became of it, and to the keys that each transaction took. */
  async function lastAttempt(onDeadLetter: () => unknown) {
    const { pool, taken } = giving();
    const inbox = new TransactionalInbox({
      pool,
      onError: silent,
      callbackTimeoutMs: 5_000,
      maxAttempts: 1,
      onDeadLetter,
    });
    const processing = inbox.process(firstOf(1), hanging);
    await vi.advanceTimersByTimeAsync(5_000);
    return { report: await processing, taken: taken() };
  }

  test('on the last attempt, and onDeadLetter fails → failed with that error', async () => {
    const error = new Error('no queue');
    const { report } = await lastAttempt(() => Promise.reject(error));
    expect(report).toMatchObject({
      outcome: 'failed',
      deadLettered: 0,
      failures: [{ keys: KEYS.slice(0, 1), error }],
    });
  });
});

test.each([
  ['fails → the connection is lent again', () => Promise.reject(new Error('out of stock')), false],
  [
    'outlives callbackTimeoutMs → the connection is closed, for it may still use it',
    () => new Promise(() => {}),
    true,
  ],
])('a callback that %s', async (_title, handler, isClosed) => {
  vi.useFakeTimers();
  try {
    const { query } = giving().pool;
    const release = vi.fn();
    const pool = { query, connect: async () => ({ query, release }) };
    const inbox = new TransactionalInbox({ pool, onError: silent, callbackTimeoutMs: 5_000 });
    const processing = inbox.process(firstOf(1), handler);
    await vi.advanceTimersByTimeAsync(5_000);
    await processing;
    expect(release.mock.calls[0]).toEqual([isClosed]);
  } finally {
    vi.useRealTimers();
  }
});

test('onEvents, and a rival that finished one of its events since we looked → called with the other one only', async () => {
  const pool = answering({
    look: (keys) => (Array.isArray(keys) && keys[0] === KEYS[0] && keys.length === 1 ? [done(KEYS[0])] : []),
    take: () => [{ key: KEYS[1], attempts: 1 }],
  });
  // Of the keys that were taken, so that the look after the work finds it done.
  const { query } = pool;
  const onEvents = vi.fn();
  const push = firstOf(2);
  pool.transaction = (work) =>
    work({
      query: async (text, values = []) => {
        const isConfirmation = onEvents.mock.calls.length > 0 && text.startsWith('SELECT key');
        return isConfirmation ? { rows: [done(KEYS[1])] } : query(text, values);
      },
    });
  const report = await new TransactionalInbox({ pool, onError: silent }).process(push, { onEvents });
  expect(onEvents).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ events: [expect.objectContaining({ eventId: 'b' })] }),
    expect.objectContaining({ keys: [KEYS[1]] }),
  );
  expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 1 });
});

test('onEvents with 200,000 events → all handled in one call', async () => {
  const events = Array.from({ length: 200_000 }, (_, index) => ({ eventId: `e${index}` }));
  const isCommitted = new Set<unknown>();
  const all = (keys: unknown) => (Array.isArray(keys) ? keys : []);
  const pool = answering({
    look: (keys) =>
      all(keys)
        .filter((key) => isCommitted.has(key))
        .map(done),
    take: (keys) =>
      all(keys).map((key) => {
        isCommitted.add(key);
        return { key, attempts: 1 };
      }),
  });
  const onEvents = vi.fn();
  const report = await new TransactionalInbox({ pool, onError: silent }).process(
    { trackerId: 't1', events },
    { onEvents },
  );
  expect(report).toMatchObject({ outcome: 'done', handled: 200_000, failures: [] });
  expect(onEvents).toHaveBeenCalledOnce();
}, 60_000);

test('a budget of NaN → ConfigurationError before anything is asked', async () => {
  const query = vi.fn();
  const inbox = new TransactionalInbox({ pool: { query, transaction: query }, onError: silent });
  await expect(inbox.process(PUSH, silent, { busyTimeoutMs: Number.NaN })).rejects.toThrow(
    ConfigurationError,
  );
  expect(query).not.toHaveBeenCalled();
});
