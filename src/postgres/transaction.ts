import { hasMethods, option } from '../common/option-checks.ts';
import { TrackingError } from '../errors.ts';
import { StoreTimeoutError, withTimeLimit } from '../webhooks/work.ts';
import { getSqlState, type Queryable } from './table.ts';

/** A connection lent by a pool. A text without values may hold several statements, as `pg` allows. */
export interface PooledConnection extends Queryable {
  /** Gives it back; `true` closes it instead. */
  release(destroy?: boolean): void;
  /** Listens for a connection that breaks while it is lent. */
  on?(event: 'error', listener: (error: Error) => void): unknown;
  /** Takes the listener back. */
  off?(event: 'error', listener: (error: Error) => void): unknown;
}

/** Lends connections: a `Pool` of `pg`, or one shaped like it. */
export interface ConnectionPool extends Queryable {
  /** Lends a connection. */
  connect(): Promise<PooledConnection>;
}

/** Runs a function in a transaction: a PGlite database, or your own adapter of another driver. */
export interface TransactionRunner extends Queryable {
  /**
   * Commits once the work resolves; rolls back when it rejects.
   *
   * @param work - what to do in the transaction
   * @returns what the work resolved to
   * @throws what the work rejected with
   */
  transaction<Result>(work: (transaction: Queryable) => Promise<Result>): Promise<Result>;
}

/** Where transactions come from. */
export type TransactionSource = ConnectionPool | TransactionRunner;

/** What a source gives to run statements with: a `PoolClient` of `pg`, a `Transaction` of PGlite. */
export type TransactionOf<Source extends TransactionSource> = Source extends {
  // The pool of `pg` can also call back; of several signatures TypeScript would look at the last one only.
  connect: { (): Promise<infer Connection>; (...rest: never[]): unknown };
}
  ? Connection
  : Source extends { connect(): Promise<infer Connection> }
    ? Connection
    : Source extends { transaction<Result>(work: (given: infer Given) => Promise<Result>): Promise<Result> }
      ? Given
      : never;

/**
 * What to do in a transaction. It may call `discard` when something may still use the connection after it has rejected, so that
 * nobody else gets that connection.
 */
export type TransactionWork<Result> = (transaction: Queryable, discard: () => void) => Promise<Result>;

/**
 * Released at the end, which fails when the work has ended the transaction: by a `ROLLBACK` of its own, or by a statement that
 * failed and was caught. A `COMMIT` after either keeps nothing, and says nothing.
 */
const WHOLE = 'tracking_webhook';
/** `no_active_sql_transaction`, `in_failed_sql_transaction`, `invalid_savepoint_specification`. */
const ENDED_CODES: ReadonlySet<unknown> = new Set(['25P01', '25P02', '3B001']);

/**
 * Runs work in a transaction: commits when it resolves, rolls back when it rejects or has ended the transaction itself.
 *
 * @param commandTimeoutMs - how long each statement of ours may take, the wait for a connection included
 */
export async function inTransaction<Result>(
  source: TransactionSource,
  commandTimeoutMs: number,
  work: TransactionWork<Result>,
): Promise<Result> {
  if (!('connect' in source)) {
    return source.transaction(async (transaction) => {
      const send = (text: string) => withTimeLimit(() => transaction.query(text), commandTimeoutMs);
      await send(`SAVEPOINT ${WHOLE}`);
      // A runner ends the use of its transaction itself, so there is nothing to discard.
      const result = await work(transaction, () => {});
      await send(`RELEASE SAVEPOINT ${WHOLE}`).catch(rethrowEnded);
      return result;
    });
  }
  const connection = await connect(source, commandTimeoutMs);
  const send = (text: string) => withTimeLimit(() => connection.query(text), commandTimeoutMs);
  let isClean = true;
  const discard = () => {
    isClean = false;
  };
  // A lent connection that breaks emits an error that would end the process; the statement under way rejects as well.
  connection.on?.('error', discard);
  try {
    // Two statements in one round trip, here and at the end.
    await send(`BEGIN; SAVEPOINT ${WHOLE}`);
    const result = await work(connection, discard);
    await send(`RELEASE SAVEPOINT ${WHOLE}; COMMIT`).catch(rethrowEnded);
    return result;
  } catch (error) {
    // The statement that took too long is still under way on this connection.
    if (error instanceof StoreTimeoutError) discard();
    if (isClean) await send('ROLLBACK').catch(discard);
    throw error;
  } finally {
    if (isClean) connection.off?.('error', discard);
    connection.release(!isClean);
  }
}

async function connect(pool: ConnectionPool, limitMs: number): Promise<PooledConnection> {
  const connecting = pool.connect();
  try {
    return await withTimeLimit(() => connecting, limitMs);
  } catch (error) {
    // A connection that comes too late must go back to the pool.
    if (error instanceof StoreTimeoutError) connecting.then((late) => late.release()).catch(() => {});
    throw error;
  }
}

/** Rejects with what a statement on a savepoint failed with, or in our words when the work has ended the transaction. */
function rethrowEnded(error: unknown): never {
  if (!ENDED_CODES.has(getSqlState(error))) throw error;
  throw new TransactionEndedError({ cause: error });
}

/** A callback has ended the transaction that it was given. */
export class TransactionEndedError extends TrackingError {
  constructor(options: ErrorOptions) {
    super('Expected the callback to leave its transaction open, got one that it ended', options);
  }
}

/** Where transactions come from. */
export const transactionSourceOption = <Source extends TransactionSource>() =>
  option<Source>('a pool of `pg`, or anything with `query` and `transaction`', (pool) =>
    ['connect', 'transaction'].some((name) => hasMethods(pool, 'query', name)),
  );
