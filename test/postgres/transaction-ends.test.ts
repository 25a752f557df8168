import { expect, test, vi } from 'vitest';
import { TransactionalInbox, type TransactionRunner } from '../../src/postgres/index.ts';
import { push, useInboxDatabase } from './inbox-database.ts';

const database = useInboxDatabase();
const silent = () => {};

/** A pool of one connection, as `pg` lends it. */
function poolOf() {
  const connection = {
    async query(text: string, values?: unknown[]) {
      if (values === undefined) return (await database().exec(text)).at(-1) ?? { rows: [] };
      return database().query(text, values);
    },
    release() {},
  };
  return { query: connection.query, connect: async () => connection };
}

test('a callback that ends its transaction by COMMIT → the other events are handled, now or on a redelivery', async () => {
  const inbox = new TransactionalInbox({ pool: poolOf(), onError: silent });
  const seen: unknown[] = [];
  let isFirst = true;
  const handler = async (
    { eventId }: { eventId?: unknown },
    { transaction }: { transaction: { query(text: string): Promise<unknown> } },
  ) => {
    seen.push(eventId);
    if (isFirst) {
      isFirst = false;
      await transaction.query('COMMIT');
    }
  };
  const reports = [];
  for (let index = 0; index < 3; index += 1)
    reports.push((await inbox.process(push('a', 'b', 'c'), handler)).outcome);
  expect(seen).toEqual(expect.arrayContaining(['a', 'b', 'c']));
});

test('a runner that does the work again when the commit fails → what it handled the second time lasts', async () => {
  let tries = 0;
  const pool: TransactionRunner = {
    query: (text, values) => database().query(text, values),
    async transaction(work) {
      for (;;) {
        try {
          return await database().transaction(async (given) => {
            const result = await work(given);
            if (tries++ === 0)
              throw Object.assign(new Error('could not serialize access'), { code: '40001' });
            return result;
          });
        } catch (error) {
          if (tries > 1) throw error;
        }
      }
    },
  };
  const inbox = new TransactionalInbox({ pool, onError: silent });
  await inbox.process(push('a', 'b'), async ({ eventId }, { transaction }) => {
    await transaction.query('INSERT INTO effects VALUES ($1)', [eventId]);
  });
  const { rows } = await database().query<{ id: string }>('SELECT id FROM effects ORDER BY id');
  expect(rows.map(({ id }) => id)).toEqual(['a', 'b']);
});

test('a callback that ends its transaction by COMMIT and then fails → its event is tried again, attempt 2', async () => {
  const inbox = new TransactionalInbox({ pool: poolOf(), onError: silent });
  const attempts: number[] = [];
  const onEvent = async (
    _event: unknown,
    { transaction, attempt }: { transaction: { query(text: string): Promise<unknown> }; attempt: number },
  ) => {
    attempts.push(attempt);
    if (attempt > 1) return;
    await transaction.query('COMMIT');
    throw new Error('failed after all');
  };
  expect(await inbox.process(push('a'), onEvent)).toMatchObject({ outcome: 'failed' });
  expect(await inbox.process(push('a'), onEvent)).toMatchObject({ outcome: 'done', handled: 1 });
  expect(attempts).toEqual([1, 2]);
});

test('the second of three events fails after a COMMIT of its own → all three are handled in the end', async () => {
  const inbox = new TransactionalInbox({ pool: poolOf(), onError: silent });
  const handled = new Set<unknown>();
  let isFirst = true;
  const onEvent = async (
    { eventId }: { eventId?: unknown },
    { transaction }: { transaction: { query(text: string): Promise<unknown> } },
  ) => {
    if (eventId === 'b' && isFirst) {
      isFirst = false;
      await transaction.query('COMMIT');
      throw new Error('failed after all');
    }
    handled.add(eventId);
  };
  const report = await inbox.process(push('a', 'b', 'c'), onEvent);
  expect(report.outcome).toBe('done');
  expect([...handled].sort()).toEqual(['a', 'b', 'c']);
});

test('an event that was dead-lettered in a transaction that a later one ends → dead-lettered after all', async () => {
  const letters: unknown[] = [];
  const inbox = new TransactionalInbox({
    pool: poolOf(),
    onError: silent,
    maxAttempts: 1,
    onDeadLetter: (_event, { key }) => void letters.push(key),
  });
  const report = await inbox.process(push('a', 'b'), async ({ eventId }, { transaction }) => {
    if (eventId === 'a') throw new Error('a failed');
    await transaction.query('ROLLBACK');
  });
  expect(report).toMatchObject({ deadLettered: 2 });
});

test.each(['BEGIN; SAVEPOINT tracking_webhook', 'RELEASE SAVEPOINT tracking_webhook; COMMIT'])(
  'last attempt, connection breaks at %s → not dead-lettered: no callback failed',
  async (breaking) => {
    let isBroken = false;
    const connection = {
      query: async (text: string, values: unknown[] = []) => {
        if (text === breaking && !isBroken) {
          isBroken = true;
          throw new Error('Connection terminated unexpectedly');
        }
        if (text.startsWith('WITH setting'))
          return { rows: (values[0] as string[]).map((key) => ({ key, attempts: 1 })) };
        return { rows: [] };
      },
      release() {},
    };
    const onDeadLetter = vi.fn();
    const handler = vi.fn();
    const pool = { query: connection.query, connect: async () => connection };
    const inbox = new TransactionalInbox({ pool, onError: () => {}, maxAttempts: 1, onDeadLetter });
    const report = await inbox.process({ trackerId: 't1', events: [{ eventId: 'a' }] }, handler);
    expect(onDeadLetter).not.toHaveBeenCalled();
    expect(report.outcome).toBe('unavailable');
  },
);
