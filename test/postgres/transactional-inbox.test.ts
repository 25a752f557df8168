import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import {
  PostgresDedupeStore,
  type Queryable,
  TransactionalInbox,
  type TransactionalInboxOptions,
  type TransactionRunner,
} from '../../src/postgres/index.ts';

const silent = () => {};

let database: PGlite;
beforeAll(async () => {
  database = await PGlite.create();
}, 120_000);
afterAll(() => database.close());
beforeEach(async () => {
  await makeInbox().createTable();
  await database.query('CREATE TABLE effects (id text)');
});
afterEach(async () => {
  await database.exec('DROP TABLE tracking_inbox; DROP TABLE effects; RESET lock_timeout');
});

/** A push of events of one tracker; the first is the oldest. */
function push(...ids: string[]) {
  const events = ids.map((eventId, order) => ({ eventId, occurrenceDatetime: '2021-03-04', order }));
  return { trackerId: 't1', events };
}

function makeInbox(options: Partial<TransactionalInboxOptions<PGlite>> = {}) {
  return new TransactionalInbox({ pool: database, onError: silent, ...options });
}

/** Creates an inbox on the database with a replaceable transaction runner. */
function inboxOn(transaction: TransactionRunner['transaction']) {
  const pool: TransactionRunner = { query: (...statement) => database.query(...statement), transaction };
  return new TransactionalInbox({ pool, onError: silent });
}

async function effects(): Promise<unknown[]> {
  const { rows } = await database.query<{ id: string }>('SELECT id FROM effects ORDER BY id');
  return rows.map(({ id }) => id);
}

interface Writable {
  readonly transaction: { query(text: string, values?: unknown[]): Promise<unknown> };
}

/** Returns a callback that writes the event's id, then runs the given function. */
function writing(then: (id: string) => unknown = silent) {
  return async ({ eventId }: { readonly eventId?: string | null | undefined }, { transaction }: Writable) => {
    await transaction.query('INSERT INTO effects VALUES ($1)', [eventId]);
    await then(String(eventId));
  };
}

function failOn(failing: string) {
  return (id: string) => {
    if (id === failing) throw new Error(`${id} failed`);
  };
}

test('new events → handled oldest first, in committed transactions, with the whole context', async () => {
  const onEvent = vi.fn(writing());
  const report = await makeInbox().process(push('a', 'b'), onEvent);
  expect(report).toMatchObject({ outcome: 'done', handled: 2, duplicates: 0 });
  expect(onEvent.mock.calls).toMatchObject([
    [
      { eventId: 'a' },
      { key: 'tracking/events:t1:a', attempt: 1, message: { kind: 'events' }, signal: { aborted: false } },
    ],
    [{ eventId: 'b' }, { key: 'tracking/events:t1:b' }],
  ]);
  expect(await effects()).toEqual(['a', 'b']);
});

describe('a callback that fails', () => {
  test('a callback that fails for one event → its writes are rolled back, those of the other events stay', async () => {
    const report = await makeInbox().process(push('a', 'b', 'c'), writing(failOn('b')));
    expect(report).toMatchObject({
      outcome: 'failed',
      handled: 2,
      failures: [{ keys: ['tracking/events:t1:b'] }],
    });
    expect(await effects()).toEqual(['a', 'c']);
  });

  test('redeliveries of a failed event → attempts 2 and 3, and then a duplicate', async () => {
    const inbox = makeInbox();
    const attempts: number[] = [];
    for (const fails of [true, true, false]) {
      await inbox.process(push('a'), (_, { attempt }) => {
        attempts.push(attempt);
        if (fails) throw new Error('not yet');
      });
    }
    expect(attempts).toEqual([1, 2, 3]);
    expect(await inbox.process(push('a'), silent)).toMatchObject({ duplicates: 1 });
  });

  test('a statement error that the callback catches → failed, not reported as handled', async () => {
    const report = await makeInbox().process(push('a'), async (_, { transaction }) => {
      await transaction.query('INSERT INTO effects VALUES ($1)', ['a']);
      await transaction.query('SELECT 1 / 0').catch(silent);
    });
    expect(report).toMatchObject({ outcome: 'failed', handled: 0 });
    expect(await effects()).toEqual([]);
  });

  // SQLSTATEs: foreign_key_violation; invalid_parameter_value, which ends in 23; connection_failure.
  test.each([
    ['23503', 'failed'],
    ['22023', 'unavailable'],
    ['08006', 'unavailable'],
  ])('a commit that fails with %s → %s', async (code, outcome) => {
    const inbox = inboxOn((work) =>
      database.transaction(async (transaction) => {
        await work(transaction);
        throw Object.assign(new Error('commit failed'), { code });
      }),
    );
    expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome, handled: 0 });
  });

  test('a commit whose reply is lost → unavailable; the redelivery is a duplicate, one effect', async () => {
    let count = 0;
    const inbox = inboxOn(async (work) => {
      const result = await database.transaction(work);
      if (count++ === 0) throw new Error('connection lost');
      return result;
    });
    expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome: 'unavailable', handled: 0 });
    expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome: 'done', duplicates: 1 });
    expect(await effects()).toEqual(['a']);
  });
});

describe('dead letters', () => {
  test('the last attempt fails → onDeadLetter is called once, its writes are committed, the event is done', async () => {
    const inbox = makeInbox({
      maxAttempts: 2,
      onDeadLetter: async (event, { transaction, attempt }) => {
        await transaction.query('INSERT INTO effects VALUES ($1)', [`dead ${event?.eventId} ${attempt}`]);
      },
    });
    const outcomes: string[] = [];
    for (let delivery = 1; delivery <= 3; delivery += 1) {
      const { outcome } = await inbox.process(push('a'), writing(failOn('a')));
      outcomes.push(outcome);
    }
    expect(outcomes).toEqual(['failed', 'done', 'done']);
    expect(await effects()).toEqual(['dead a 2']);
  });

  test('onDeadLetter fails → its writes are rolled back, and a redelivery tries again', async () => {
    const inbox = makeInbox({
      maxAttempts: 1,
      onDeadLetter: async (_, { transaction, attempt }) => {
        await transaction.query('INSERT INTO effects VALUES ($1)', [`dead ${attempt}`]);
        if (attempt === 1) throw new Error('no room');
      },
    });
    const first = await inbox.process(push('a'), writing(failOn('a')));
    expect(first).toMatchObject({ outcome: 'failed', deadLettered: 0, failures: [{}] });
    expect(await effects()).toEqual([]);
    const second = await inbox.process(push('a'), writing(failOn('a')));
    expect(second).toMatchObject({ outcome: 'done', deadLettered: 1 });
    expect(await effects()).toEqual(['dead 2']);
  });
});

test('onEvents → one transaction for all new events of the message', async () => {
  const inbox = makeInbox();
  await inbox.process(push('a'), writing());
  const report = await inbox.process(push('a', 'b', 'c'), {
    onEvents: async ({ events }, { transaction }) => {
      for (const event of events) await writing()(event, { transaction });
      throw new Error('after the last write');
    },
  });
  expect(report).toMatchObject({ outcome: 'failed', handled: 0, duplicates: 1 });
  expect(await effects()).toEqual(['a']);
});

describe('together with a PostgresDedupeStore on the same table', () => {
  const key = 'tracking/events:t1:a';

  test('an event that the store committed → a duplicate', async () => {
    const store = new PostgresDedupeStore({ pool: database });
    await store.commit([key], { retainMs: 60_000 });
    expect(await makeInbox().process(push('a'), writing())).toMatchObject({ outcome: 'done', duplicates: 1 });
  });

  test('an event that the store leased → busy for the rest of the lease, the other events are handled', async () => {
    const store = new PostgresDedupeStore({ pool: database });
    await store.claim([key], { token: 'another receiver', leaseMs: 60_000 });
    const report = await makeInbox().process(push('a', 'b'), writing());
    expect(report).toMatchObject({ outcome: 'busy', busy: [key], handled: 1 });
    expect(report.retryAfterMs).toBeGreaterThan(30_000);
    expect(await effects()).toEqual(['b']);
    const [claim] = await store.claim([key], { token: 'a third one', leaseMs: 1_000 });
    expect(claim).toMatchObject({ status: 'busy' });
  });
});

test('purge → deletes and counts the events whose retention has ended', async () => {
  const inbox = makeInbox();
  await inbox.process(push('a', 'b'), writing());
  await database.query(`UPDATE tracking_inbox SET expires_at = clock_timestamp() WHERE key LIKE '%:a'`);
  expect(await inbox.purge()).toBe(1);
  expect(await inbox.process(push('a', 'b'), writing())).toMatchObject({ handled: 1, duplicates: 1 });
});

test('a missing table → unavailable, and onError gets a message how to create it', async () => {
  const onError = vi.fn();
  const inbox = makeInbox({ onError, table: 'nowhere' });
  expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome: 'unavailable', handled: 0 });
  const [error] = onError.mock.lastCall ?? [];
  expect(error).toBeInstanceOf(ConfigurationError);
  expect(error).toMatchObject({
    message: expect.stringContaining('Expected the table "nowhere" to exist, got none; call `createTable()`'),
    cause: expect.objectContaining({ code: '42P01' }),
  });
});

test('a signal that aborts → no further event is begun, the rest is interrupted', async () => {
  const controller = new AbortController();
  const stop = () => controller.abort();
  const report = await makeInbox().process(push('a', 'b'), writing(stop), { signal: controller.signal });
  expect(report).toMatchObject({
    outcome: 'interrupted',
    handled: 1,
    interrupted: ['tracking/events:t1:b'],
  });
});

test('lock_timeout of the application → unchanged during the callback and after the webhook', async () => {
  await database.query(`SET lock_timeout = '7s'`);
  const seen: unknown[] = [];
  const look = async (client: Queryable) => seen.push(...(await client.query('SHOW lock_timeout')).rows);
  for (const fails of [true, false]) {
    await makeInbox().process(push('a'), async (_, { transaction }) => {
      await look(transaction);
      if (fails) throw new Error('failed');
    });
    await look(database);
  }
  expect(seen).toEqual(Array(4).fill({ lock_timeout: '7s' }));
});

test.each([{ retainMs: 1_000 }, { commandTimeoutMs: 0 }, { callbackTimeoutMs: 0 }, { table: 'a b' }])(
  '%j → ConfigurationError',
  (options) => {
    expect(() => makeInbox(options)).toThrow(ConfigurationError);
  },
);

/** A pool of one connection, as `pg` lends it. */
function makeLendingPool() {
  const connection = {
    async query(text: string, values?: unknown[]) {
      if (values === undefined) return (await database.exec(text)).at(-1) ?? { rows: [] };
      return database.query(text, values);
    },
    release() {},
  };
  return { query: connection.query, connect: async () => connection };
}

test('a runner that repeats the work when the commit fails → the writes of the second run are committed', async () => {
  const inbox = inboxOn(async (work) => {
    const conflict = Object.assign(new Error('could not serialize access'), { code: '40001' });
    const first = database.transaction(async (transaction) => {
      await work(transaction);
      throw conflict;
    });
    await expect(first).rejects.toBe(conflict);
    return database.transaction(work);
  });
  await inbox.process(push('a', 'b'), writing());
  expect(await effects()).toEqual(['a', 'b']);
});

test('a callback that commits by itself and then fails, twice, for one of three events → all are handled, that event at attempt 2', async () => {
  const inbox = new TransactionalInbox({ pool: makeLendingPool(), onError: silent });
  const handled = new Map<unknown, number>();
  let failures = 0;
  const onEvent = async (
    { eventId }: { eventId?: unknown },
    { transaction, attempt }: Writable & { attempt: number },
  ) => {
    if (eventId === 'b' && failures < 2) {
      failures += 1;
      await transaction.query('COMMIT');
      throw new Error('failed after all');
    }
    handled.set(eventId, attempt);
  };
  expect(await inbox.process(push('a', 'b', 'c'), onEvent)).toMatchObject({ outcome: 'failed' });
  expect(await inbox.process(push('a', 'b', 'c'), onEvent)).toMatchObject({ outcome: 'done' });
  expect([...handled]).toEqual([
    ['a', 1],
    ['c', 1],
    ['b', 2],
  ]);
});
