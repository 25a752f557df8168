import { expect, test, vi } from 'vitest';
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

/** A database that answers the statements of the inbox as told, and all others with nothing. */
function answering(answers: {
  look?: (keys: unknown) => Rows;
  take?: (keys: unknown) => Rows;
}): TransactionRunner {
  const query = async (text: string, values: unknown[] = []) => {
    if (text.startsWith('SELECT key')) return { rows: [...(answers.look?.(values[0]) ?? [])] };
    if (text.includes("'done', 1")) return { rows: [...(answers.take?.(values[0]) ?? [])] };
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

test('a database that goes down in the middle → the rest is unavailable and not tried', async () => {
  const taken: unknown[] = [];
  const pool = answering({
    look: () => (taken.length === 1 ? [{ key: KEYS[0], done: true }] : []),
    take: (keys) => {
      taken.push(keys);
      if (taken.length > 1) throw new Error('server closed the connection');
      return [{ key: KEYS[0], attempts: 1 }];
    },
  });
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'unavailable', handled: 1, unavailable: KEYS.slice(1) });
  expect(taken).toEqual([[KEYS[0]], [KEYS[1]]]);
});

test('a lock that is not given in time (55P03) → busy, to be asked for soon', async () => {
  const pool = answering({ take: failing('55P03') });
  const report = await transactionalInbox({ pool, onError: silent }).process(PUSH, silent);
  expect(report).toMatchObject({ outcome: 'busy', busy: KEYS, retryAfterMs: 1_000, failures: [] });
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

test('a commit whose answer is lost → failed, so that the redelivery finds out', async () => {
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
  expect(report).toMatchObject({ outcome: 'failed', handled: 0, failures: [{}, {}, {}] });
});
