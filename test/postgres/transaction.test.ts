import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import {
  type ConnectionPool,
  inTransaction,
  TransactionalInbox,
} from '../../src/postgres/transactional-inbox.ts';

const LIMIT_MS = 2_000;
const BEGIN = 'BEGIN; SAVEPOINT tracking_webhook';
const COMMIT = 'RELEASE SAVEPOINT tracking_webhook; COMMIT';

/** A pool of one connection that records its statements; statements in `failing` reject. */
class RecordingPool extends EventEmitter implements ConnectionPool {
  readonly log: string[] = [];
  readonly #failing: readonly string[];

  constructor(...failing: string[]) {
    super();
    this.#failing = failing;
  }

  async query(text: string): Promise<{ rows: unknown[] }> {
    this.log.push(text);
    if (this.#failing.includes(text)) throw new Error(`${text} failed`);
    return { rows: [] };
  }

  async connect() {
    const release = (destroy?: boolean) => void this.log.push(destroy === true ? 'close' : 'give back');
    const connection = { query: (text: string) => this.query(text), release };
    const listen = { on: this.on.bind(this), off: this.off.bind(this) };
    return { ...connection, ...listen };
  }
}

const work = async (transaction: { query(text: string): Promise<unknown> }) => {
  await transaction.query('INSERT');
  return 'result';
};

describe('inTransaction with a pool', () => {
  test('work that resolves → commit, connection returned, resolves to the result', async () => {
    const pool = new RecordingPool();
    expect(await inTransaction(pool, LIMIT_MS, work)).toBe('result');
    expect(pool.log).toEqual([BEGIN, 'INSERT', COMMIT, 'give back']);
  });

  test.each([
    ['work that rejects → rollback, connection returned', [], 'give back'],
    ['a rollback that rejects, too → connection closed', ['ROLLBACK'], 'close'],
  ])('%s, rejects with the error of the work', async (_title, alsoFailing, end) => {
    const pool = new RecordingPool('INSERT', ...alsoFailing);
    await expect(inTransaction(pool, LIMIT_MS, work)).rejects.toThrow('INSERT failed');
    expect(pool.log).toEqual([BEGIN, 'INSERT', 'ROLLBACK', end]);
  });

  test('a connection that breaks during the work → no uncaught error, connection closed', async () => {
    const pool = new RecordingPool();
    const broken = inTransaction(pool, LIMIT_MS, async () => {
      pool.emit('error', new Error('terminating connection'));
      throw new Error('the statement under way');
    });
    await expect(broken).rejects.toThrow('the statement under way');
    expect(pool.log).toEqual([BEGIN, 'close']);
  });

  test('a connection that breaks after it was closed → no uncaught error', async () => {
    const pool = new RecordingPool();
    await inTransaction(pool, LIMIT_MS, async (_, discard) => discard());
    expect(() => pool.emit('error', new Error('terminating connection'))).not.toThrow();
  });

  describe('a database that hangs', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());
    const hanging = () => new Promise<never>(() => {});

    test.each([BEGIN, COMMIT])(
      'hang at %s → rejects after the limit, connection closed',
      async (statement) => {
        const pool = new RecordingPool();
        const { query } = pool;
        pool.query = (text) => (text === statement ? hanging() : query.call(pool, text));
        const outcome = expect(inTransaction(pool, LIMIT_MS, work)).rejects.toThrow('within 2000 ms');
        await vi.advanceTimersByTimeAsync(LIMIT_MS);
        await outcome;
        expect(pool.log.at(-1)).toBe('close');
      },
    );

    test('a connection that is ready only after the limit → rejects, and the connection is returned', async () => {
      const pool = new RecordingPool();
      const { connect } = pool;
      pool.connect = async () => {
        await new Promise((resolve) => setTimeout(resolve, LIMIT_MS + 1));
        return connect.call(pool);
      };
      const outcome = expect(inTransaction(pool, LIMIT_MS, work)).rejects.toThrow('within 2000 ms');
      await vi.advanceTimersByTimeAsync(LIMIT_MS + 1);
      await outcome;
      expect(pool.log).toEqual(['give back']);
    });

    test('a slow work → not limited', async () => {
      const pool = new RecordingPool();
      const slow = inTransaction(pool, LIMIT_MS, () => new Promise((resolve) => setTimeout(resolve, 9_000)));
      await vi.advanceTimersByTimeAsync(9_000);
      await slow;
      expect(pool.log).toEqual([BEGIN, COMMIT, 'give back']);
    });
  });
});

// SQLSTATEs: no_active_sql_transaction, in_failed_sql_transaction, invalid_savepoint_specification.
test.each(['25P01', '25P02', '3B001'])(
  'a commit that fails with %s because the work ended the transaction → an error with this reason and the cause',
  async (code) => {
    const pool = new RecordingPool();
    const cause = Object.assign(new Error('no such savepoint'), { code });
    const { query } = pool;
    pool.query = (text) => (text === COMMIT ? Promise.reject(cause) : query.call(pool, text));
    await expect(inTransaction(pool, LIMIT_MS, work)).rejects.toThrow(
      expect.objectContaining({
        message: 'Expected the callback to leave its transaction open, got a transaction that it ended',
        cause,
      }),
    );
  },
);

test.each([undefined, null, 'postgres://localhost', {}, { query() {} }])(
  'new TransactionalInbox({ pool: %j }) → ConfigurationError',
  (pool) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    expect(() => new TransactionalInbox({ pool: pool as never })).toThrow(ConfigurationError);
  },
);
