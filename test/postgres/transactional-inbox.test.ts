import type { PGlite } from '@electric-sql/pglite';
import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import {
  PostgresDedupeStore,
  TransactionalInbox,
  type TransactionalInboxOptions,
  type TransactionRunner,
} from '../../src/postgres/index.ts';
import { createWebhookHandler } from '../../src/webhooks/index.ts';
import { push, useInboxDatabase } from './inbox-database.ts';

const database = useInboxDatabase();

const silent = () => {};

function makeInbox(options: Partial<TransactionalInboxOptions<PGlite>> = {}) {
  return new TransactionalInbox({ pool: database(), onError: silent, ...options });
}

async function effects(): Promise<unknown[]> {
  const { rows } = await database().query<{ id: string }>('SELECT id FROM effects ORDER BY id');
  return rows.map(({ id }) => id);
}

interface Writable {
  readonly transaction: { query(text: string, values?: unknown[]): Promise<unknown> };
}

/** Writes the event's id, then does what else is asked. */
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

describe('events', () => {
  test('new events → handled oldest first, in transactions that last', async () => {
    const seen: unknown[] = [];
    const report = await makeInbox().process(
      push('a', 'b'),
      writing((id) => seen.push(id)),
    );
    expect(report).toMatchObject({ outcome: 'done', handled: 2, duplicates: 0 });
    expect(seen).toEqual(['a', 'b']);
    expect(await effects()).toEqual(['a', 'b']);
  });

  test('the same webhook five times at once → each event takes effect once', async () => {
    const inbox = makeInbox();
    const reports = await Promise.all(
      Array.from({ length: 5 }, () => inbox.process(push('a', 'b'), writing())),
    );
    expect(reports.reduce((sum, { handled }) => sum + handled, 0)).toBe(2);
    expect(await effects()).toEqual(['a', 'b']);
  });

  test('context → message, key, attempt and signal beside the transaction', async () => {
    const handler = vi.fn();
    await makeInbox().process(push('a'), handler);
    expect(handler).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ eventId: 'a' }),
      expect.objectContaining({
        message: expect.objectContaining({ kind: 'events' }),
        key: 'tracking/events:t1:a',
        attempt: 1,
        signal: expect.any(AbortSignal),
        transaction: expect.objectContaining({ query: expect.any(Function) }),
      }),
    );
  });

  test('an id that PostgreSQL cannot store → handled once all the same', async () => {
    const inbox = makeInbox();
    const handler = vi.fn();
    await inbox.process(push('a\u0000b'), handler);
    await inbox.process(push('a\u0000b'), handler);
    expect(handler).toHaveBeenCalledOnce();
  });
});

describe('a callback that fails', () => {
  test('one event → its writes are undone, its siblings stay', async () => {
    const report = await makeInbox().process(push('a', 'b', 'c'), writing(failOn('b')));
    expect(report).toMatchObject({
      outcome: 'failed',
      handled: 2,
      failures: [{ keys: ['tracking/events:t1:b'] }],
    });
    expect(await effects()).toEqual(['a', 'c']);
  });

  test('a redelivery → the next attempt, and then done', async () => {
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

  test('a statement that failed and was caught → failed, never reported as handled', async () => {
    const report = await makeInbox().process(push('a'), async (_, { transaction }) => {
      await transaction.query('INSERT INTO effects VALUES ($1)', ['a']);
      await transaction.query('SELECT 1 / 0').catch(silent);
    });
    expect(report).toMatchObject({ outcome: 'failed', handled: 0 });
    expect(await effects()).toEqual([]);
  });

  test('a rollback of its own → failed, never reported as handled', async () => {
    const report = await makeInbox().process(push('a'), async (_, { transaction }) => {
      await transaction.query('ROLLBACK');
    });
    expect(report).toMatchObject({ outcome: 'failed', handled: 0 });
  });

  test('a commit that fails → failed, and the redelivery handles it', async () => {
    await database().exec(`CREATE TABLE parents (id text PRIMARY KEY); CREATE TABLE children (
      id text REFERENCES parents DEFERRABLE INITIALLY DEFERRED)`);
    const inbox = makeInbox();
    const orphan = await inbox.process(push('a'), async (_, { transaction }) => {
      await transaction.query('INSERT INTO children VALUES ($1)', ['nobody']);
    });
    expect(orphan).toMatchObject({ outcome: 'failed', handled: 0 });
    expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome: 'done', handled: 1 });
  });

  // SQLSTATEs: foreign_key_violation; invalid_parameter_value, which ends in 23; connection_failure.
  test.each([
    ['23503', 'failed'],
    ['22023', 'unavailable'],
    ['08006', 'unavailable'],
  ])('a commit that fails with %s → %s', async (code, outcome) => {
    const pool: TransactionRunner = {
      query: (...statement) => database().query(...statement),
      transaction: (work) =>
        database().transaction(async (given) => {
          await work(given);
          throw Object.assign(new Error('commit failed'), { code });
        }),
    };
    const inbox = new TransactionalInbox({ pool, onError: silent });
    expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome, handled: 0 });
  });

  test('a commit whose answer is lost → unavailable, and the redelivery finds it done: one effect', async () => {
    const pool: TransactionRunner = {
      query: (...statement) => database().query(...statement),
      transaction: (work) => database().transaction(work),
    };
    const { transaction } = pool;
    pool.transaction = async (work) => {
      pool.transaction = transaction; // Only this one is lost; the failure is counted on a connection that works.
      await transaction(work);
      throw new Error('connection lost');
    };
    const inbox = new TransactionalInbox({ pool, onError: silent });
    expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome: 'unavailable', handled: 0 });
    expect(await inbox.process(push('a'), writing())).toMatchObject({ outcome: 'done', duplicates: 1 });
    expect(await effects()).toEqual(['a']);
  });

  test('beyond callbackTimeoutMs → failed, signal aborted, writes undone', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const aborted = vi.fn();
      const report = await makeInbox({ callbackTimeoutMs: 1_000 }).process(
        push('a'),
        async (_, { transaction, signal }) => {
          signal.addEventListener('abort', aborted);
          await transaction.query('INSERT INTO effects VALUES ($1)', ['a']);
          vi.advanceTimersByTime(1_000);
          await new Promise(silent);
        },
      );
      expect(report).toMatchObject({ outcome: 'failed', handled: 0 });
      expect(aborted).toHaveBeenCalledOnce();
      expect(await effects()).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a failure that cannot be counted → told to onError, still reported as failed', async () => {
    const onError = vi.fn();
    const inbox = makeInbox({ onError });
    const report = await inbox.process(push('a'), async () => {
      await Promise.resolve();
      database().query('ALTER TABLE tracking_inbox RENAME TO elsewhere').catch(silent);
      throw new Error('handler failed');
    });
    await database().query('ALTER TABLE elsewhere RENAME TO tracking_inbox');
    expect(report.outcome).toBe('failed');
    expect(onError).toHaveBeenCalledWith(expect.anything(), {
      operation: 'release',
      keys: ['tracking/events:t1:a'],
    });
  });

  test('its error → told to onError', async () => {
    const onError = vi.fn();
    const error = new Error('no such tracker');
    await makeInbox({ onError }).process(push('a'), () => Promise.reject(error));
    expect(onError).toHaveBeenCalledExactlyOnceWith(error, {
      operation: 'callback',
      keys: ['tracking/events:t1:a'],
    });
  });
});

describe('dead letters', () => {
  test('the last attempt fails → onDeadLetter once, its writes last, done from then on', async () => {
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

  test('onDeadLetter fails → its writes are undone, and a redelivery tries again', async () => {
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

  test('maxAttempts without onDeadLetter → ConfigurationError', () => {
    expect(() => makeInbox({ maxAttempts: 3 })).toThrow(ConfigurationError);
  });
});

describe('other callbacks', () => {
  test('onEvents → one transaction for all new events of the delivery', async () => {
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

  test('a proof of delivery twice → handled once', async () => {
    const inbox = makeInbox();
    const onProofOfDelivery = vi.fn();
    const proof = {
      trackings: [
        {
          metadata: { topic: 'tracking/pod', messageId: 'm1' },
          tracker: { trackerId: 't1' },
          data: { status: 'unavailable' },
        },
      ],
    };
    await inbox.process(proof, { onProofOfDelivery });
    await inbox.process(proof, { onProofOfDelivery });
    expect(onProofOfDelivery).toHaveBeenCalledOnce();
  });
});

describe('together with a PostgresDedupeStore on the same table', () => {
  const key = 'tracking/events:t1:a';

  test('an event that the store knows as done → a duplicate', async () => {
    const store = new PostgresDedupeStore({ pool: database() });
    await store.commit([key], { retainMs: 60_000 });
    expect(await makeInbox().process(push('a'), writing())).toMatchObject({ outcome: 'done', duplicates: 1 });
  });

  test('an event that the store leased → busy for the rest of the lease, its siblings are handled', async () => {
    const store = new PostgresDedupeStore({ pool: database() });
    await store.claim([key], { token: 'another receiver', leaseMs: 60_000 });
    const report = await makeInbox().process(push('a', 'b'), writing());
    expect(report).toMatchObject({ outcome: 'busy', busy: [key], handled: 1 });
    expect(report.retryAfterMs).toBeGreaterThan(30_000);
    expect(await effects()).toEqual(['b']);
    const [claim] = await store.claim([key], { token: 'a third one', leaseMs: 1_000 });
    expect(claim).toMatchObject({ status: 'busy' });
  });
});

test('purge → deletes what was handled longer ago than it is retained, and counts it', async () => {
  const inbox = makeInbox();
  await inbox.process(push('a', 'b'), writing());
  await database().query(`UPDATE tracking_inbox SET expires_at = clock_timestamp() WHERE key LIKE '%:a'`);
  expect(await inbox.purge()).toBe(1);
  expect(await inbox.process(push('a', 'b'), writing())).toMatchObject({ handled: 1, duplicates: 1 });
});

test('a table that was never made → unavailable, and onError is told how to make it', async () => {
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

test('a signal that aborts → nothing new begins, the rest is interrupted', async () => {
  const controller = new AbortController();
  const stop = () => controller.abort();
  const report = await makeInbox().process(push('a', 'b'), writing(stop), { signal: controller.signal });
  expect(report).toMatchObject({
    outcome: 'interrupted',
    handled: 1,
    interrupted: ['tracking/events:t1:b'],
  });
});

test('a message without events → onOther', async () => {
  const onOther = vi.fn();
  const report = await makeInbox().process(push(), { onEvent: silent, onOther });
  expect(onOther).toHaveBeenCalledOnce();
  expect(report).toMatchObject({ outcome: 'done', others: 1 });
});

test('lock_timeout of the application → as it was once the webhook is over, whether its callback failed or not', async () => {
  await database().query(`SET lock_timeout = '7s'`);
  const inbox = makeInbox();
  const onEvent = vi.fn().mockRejectedValueOnce(new Error('failed')).mockResolvedValue(undefined);
  for (const outcome of ['failed', 'done']) {
    expect((await inbox.process(push('a'), onEvent)).outcome).toBe(outcome);
    expect((await database().query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '7s' }]);
  }
});

test('lock_timeout of the application → as it was, while the callback runs', async () => {
  await database().query(`SET lock_timeout = '7s'`);
  let during: unknown;
  await makeInbox().process(push('a'), async (_, { transaction }) => {
    const { rows } = await transaction.query('SHOW lock_timeout');
    during = rows[0];
  });
  expect(during).toEqual({ lock_timeout: '7s' });
});

test('a webhook handler with this inbox → 500 while the handler fails, then 200', async () => {
  const outcomes: boolean[] = [true, false];
  const receive = createWebhookHandler({
    inbox: makeInbox(),
    secret: false,
    onEvent: async (event, { transaction }) => {
      await transaction.query('INSERT INTO effects VALUES ($1)', [event.eventId]);
      if (outcomes.shift()) throw new Error('not yet');
    },
  });
  const statuses: number[] = [];
  for (let delivery = 1; delivery <= 3; delivery += 1) {
    const body = JSON.stringify(push('a'));
    const headers = { 'content-type': 'application/json' };
    const { status } = await receive(new Request('http://localhost/', { method: 'POST', body, headers }));
    statuses.push(status);
  }
  expect(statuses).toEqual([500, 200, 200]);
  expect(await effects()).toEqual(['a']);
});

test.each([{ retainMs: 1_000 }, { commandTimeoutMs: 0 }, { callbackTimeoutMs: 0 }, { table: 'a b' }])(
  '%j → ConfigurationError',
  (options) => {
    expect(() => makeInbox(options)).toThrow(ConfigurationError);
  },
);

test('a pool without transactions → ConfigurationError', () => {
  const pool = { query: async () => ({ rows: [] }) };
  // @ts-expect-error: what a caller without types may pass
  expect(() => new TransactionalInbox({ pool })).toThrow(ConfigurationError);
});

/** A pool of one connection, as `pg` lends it. */
function lendingPool() {
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
  const inbox = new TransactionalInbox({ pool: lendingPool(), onError: silent });
  const seen: unknown[] = [];
  let isFirst = true;
  const handler = async ({ eventId }: { eventId?: unknown }, { transaction }: Writable) => {
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
  await inbox.process(push('a', 'b'), writing());
  expect(await effects()).toEqual(['a', 'b']);
});

test('a callback that ends its transaction by COMMIT and then fails → its event is tried again, attempt 2', async () => {
  const inbox = new TransactionalInbox({ pool: lendingPool(), onError: silent });
  const attempts: number[] = [];
  const onEvent = async (_event: unknown, { transaction, attempt }: Writable & { attempt: number }) => {
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
  const inbox = new TransactionalInbox({ pool: lendingPool(), onError: silent });
  const handled = new Set<unknown>();
  let isFirst = true;
  const onEvent = async ({ eventId }: { eventId?: unknown }, { transaction }: Writable) => {
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
    pool: lendingPool(),
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
