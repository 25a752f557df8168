import { expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { type TransactionRunner, transactionalInbox } from '../../src/postgres/index.ts';

const KEYS = ['a', 'b', 'c'].map((id) => `tracking/events:t1:${id}`);
const PUSH = {
  trackerId: 't1',
  events: ['a', 'b', 'c'].map((eventId, order) => ({
    eventId,
    occurrenceDatetime: '2021-03-04',
    order,
  })),
};

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
    if (text.startsWith('WITH setting')) return { rows: [...(answers.take?.(values[0]) ?? [])] };
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
  const report = await transactionalInbox({ pool, onError }).process(PUSH, handler);
  expect(report).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
  expect(handler).not.toHaveBeenCalled();
  expect(onError).toHaveBeenCalledExactlyOnceWith(down, { operation: 'claim', keys: KEYS });
});

test('a database that is down → onSnapshot and onUnhandled wait for the redelivery', async () => {
  const down = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const callbacks = { handler: vi.fn(), onSnapshot: vi.fn(), onUnhandled: vi.fn() };
  const trackings = [PUSH, { trackerId: 't2', events: [] }, { metadata: { topic: 'tracking/weather' } }];
  const pool: TransactionRunner = { query: down, transaction: down };
  await transactionalInbox({ pool, onError: silent }).process({ trackings }, callbacks);
  for (const callback of Object.values(callbacks)) expect(callback).not.toHaveBeenCalled();
});

test('three leases of a store on the same table → retryAfterMs is when the first of them ends', async () => {
  const lefts = [9_000, 5_000, 7_000];
  const pool = answering({
    look: (keys) =>
      KEYS.map((key, index) => ({ key, done: false, retry_after_ms: lefts[index] })).filter(
        ({ key }) => Array.isArray(keys) && keys.includes(key),
      ),
  });
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'busy', retryAfterMs: 5_000 });
});

test('onDeadLetter beyond handlerTimeoutMs → counts as failed, so that a redelivery tries again', async () => {
  vi.useFakeTimers();
  try {
    const pool = answering({
      take: (keys) => (Array.isArray(keys) ? keys.map((key) => ({ key, attempts: 1 })) : []),
    });
    const inbox = transactionalInbox({
      pool,
      onError: silent,
      maxAttempts: 1,
      handlerTimeoutMs: 5_000,
      onDeadLetter: () => new Promise(() => {}),
    });
    const push = { ...PUSH, events: PUSH.events.slice(0, 1) };
    const processing = inbox.process(push, () => Promise.reject(new Error('no such tracker')));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await processing).toMatchObject({
      outcome: 'failed',
      deadLettered: 0,
      failures: [{ keys: [KEYS[0]] }],
    });
  } finally {
    vi.useRealTimers();
  }
});

test('a database that goes down in the middle → all is unavailable, and nothing is tried in vain', async () => {
  const taken: unknown[] = [];
  const pool = answering({
    take: (keys) => {
      taken.push(keys);
      if (taken.length > 1) throw new Error('server closed the connection');
      return KEYS.map((key) => ({ key, attempts: 1 }));
    },
  });
  let isDown = false;
  const { transaction } = pool;
  pool.transaction = (work) =>
    transaction((given) =>
      work({
        query: async (...statement) => {
          if (isDown && statement[0].startsWith('SAVEPOINT')) throw new Error('server closed the connection');
          return given.query(...statement);
        },
      }),
    );
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, () => {
    isDown = true;
  });
  expect(report).toMatchObject({ outcome: 'unavailable', handled: 0, unavailable: KEYS });
  expect(taken).toEqual([KEYS]);
});

test.each([
  ['a lock that is not given in time', '55P03'],
  ['a wait that the statement_timeout of the application ends', '57014'],
  ['a deadlock with another receiver', '40P01'],
])('%s (%s) → busy, to be asked for soon', async (_title, code) => {
  const pool = answering({ take: failing(code) });
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'busy', busy: KEYS, retryAfterMs: 1_000, failures: [] });
});

// PostgreSQL takes a `lock_timeout` of 0 for none.
test.each([
  [2_500, '2500ms'],
  [0, '1ms'],
])('a budget of %d ms → the database waits for a rival at most %s', async (busyBudgetMs, lockTimeout) => {
  vi.useFakeTimers();
  try {
    const pool = answering({});
    const query = vi.fn(pool.query);
    await transactionalInbox({
      pool: { query, transaction: (work) => work({ query }) },
      busyBudgetMs,
      onError: silent,
    }).process(PUSH, silent);
    const taken = query.mock.calls.find(([text]) => text.includes('lock_timeout'));
    expect(taken?.[1]?.at(2)).toBe(lockTimeout);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  [1, 0],
  [3, 3],
])(
  'a webhook of %d events → %d savepoints, for an event alone is undone with its transaction',
  async (events, savepoints) => {
    const pool = answering({
      take: (keys) => (Array.isArray(keys) ? keys.map((key) => ({ key, attempts: 1 })) : []),
    });
    const query = vi.fn(pool.query);
    await transactionalInbox({
      pool: { query, transaction: (work) => work({ query }) },
      onError: silent,
    }).process({ ...PUSH, events: PUSH.events.slice(0, events) }, silent);
    expect(query.mock.calls.filter(([text]) => text === 'SAVEPOINT tracking_event')).toHaveLength(savepoints);
  },
);

test.each([
  ['fails → the connection is lent again', () => Promise.reject(new Error('out of stock')), false],
  [
    'outlives handlerTimeoutMs → the connection is closed, for it may still use it',
    () => new Promise(() => {}),
    true,
  ],
])('a handler that %s', async (_title, handler, isClosed) => {
  vi.useFakeTimers();
  try {
    const { query } = answering({
      take: (keys) => (Array.isArray(keys) ? keys.map((key) => ({ key, attempts: 1 })) : []),
    });
    const release = vi.fn();
    const pool = { query, connect: async () => ({ query, release }) };
    const inbox = transactionalInbox({ pool, onError: silent, handlerTimeoutMs: 5_000 });
    const processing = inbox.process({ ...PUSH, events: PUSH.events.slice(0, 1) }, handler);
    await vi.advanceTimersByTimeAsync(5_000);
    await processing;
    expect(release.mock.calls[0]).toEqual([isClosed]);
  } finally {
    vi.useRealTimers();
  }
});

test('another error while claiming → unavailable', async () => {
  const pool = answering({ take: failing('40001') });
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
});

test('a row that changed between two statements, neither ours nor done → busy, never done', async () => {
  const pool = answering({ look: () => [{ key: KEYS[0], done: false, retry_after_ms: null }] });
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'busy', busy: KEYS, handled: 0 });
});

test('a commit whose answer is lost → unavailable, so that the redelivery finds out', async () => {
  const pool = answering({
    look: (keys) => (Array.isArray(keys) && keys.length === 1 ? [{ key: keys[0], done: true }] : []),
    take: (keys) => (Array.isArray(keys) ? keys.map((key) => ({ key, attempts: 1 })) : []),
  });
  const { transaction } = pool;
  pool.transaction = async (work) => {
    await transaction(work);
    throw new Error('connection lost');
  };
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'unavailable', handled: 0, unavailable: KEYS, failures: [] });
});

test('onDelivery, and a rival that finished one of its events since we looked → called with the other one only', async () => {
  const pool = answering({
    look: (keys) => (Array.isArray(keys) && keys[0] === KEYS[0] && keys.length === 1 ? [done(KEYS[0])] : []),
    take: () => [{ key: KEYS[1], attempts: 1 }],
  });
  // Of the keys that were taken, so that the look after the work finds it done.
  const { query } = pool;
  const onDelivery = vi.fn();
  const push = { ...PUSH, events: PUSH.events.slice(0, 2) };
  pool.transaction = (work) =>
    work({
      query: async (text, values = []) => {
        const isConfirmation = onDelivery.mock.calls.length > 0 && text.startsWith('SELECT key');
        return isConfirmation ? { rows: [done(KEYS[1])] } : query(text, values);
      },
    });
  const report = await transactionalInbox({ pool, onError: silent }).process(push, { onDelivery });
  expect(onDelivery).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ events: [expect.objectContaining({ eventId: 'b' })] }),
    expect.objectContaining({ keys: [KEYS[1]] }),
  );
  expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 1 });
});

test('onDelivery with 200,000 events → all handled in one call', async () => {
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
  const onDelivery = vi.fn();
  const report = await transactionalInbox({ pool, onError: silent }).process(
    { trackerId: 't1', events },
    { onDelivery },
  );
  expect(report).toMatchObject({ outcome: 'done', handled: 200_000, failures: [] });
  expect(onDelivery).toHaveBeenCalledOnce();
}, 20_000);

test('a budget of NaN → ConfigurationError before anything is asked', async () => {
  const query = vi.fn();
  const inbox = transactionalInbox({ pool: { query, transaction: query }, onError: silent });
  await expect(inbox.process(PUSH, silent, { busyBudgetMs: Number.NaN })).rejects.toThrow(ConfigurationError);
  expect(query).not.toHaveBeenCalled();
});
