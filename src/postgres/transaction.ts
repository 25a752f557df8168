import { option } from '../common/option-checks.ts';
import { hasMethods } from '../webhooks/options.ts';
import type { Queryable } from './table.ts';

/** A connection lent by a pool. */
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

/** Runs work in a transaction: commits when it resolves, rolls back when it rejects. */
export async function inTransaction<Result>(
  source: TransactionSource,
  work: TransactionWork<Result>,
): Promise<Result> {
  // A runner ends the use of its transaction itself, so there is nothing to discard.
  if (!('connect' in source)) return source.transaction((transaction) => work(transaction, () => {}));
  const connection = await source.connect();
  let isClean = true;
  const discard = () => {
    isClean = false;
  };
  // A lent connection that breaks emits an error that would end the process; the statement under way rejects as well.
  connection.on?.('error', discard);
  try {
    await connection.query('BEGIN');
    const result = await work(connection, discard);
    await connection.query('COMMIT');
    return result;
  } catch (error) {
    if (isClean) await connection.query('ROLLBACK').catch(discard);
    throw error;
  } finally {
    if (isClean) connection.off?.('error', discard);
    connection.release(!isClean);
  }
}

/** Where transactions come from. */
export const transactionSourceOption = <Source extends TransactionSource>() =>
  option<Source>('a pool of `pg`, or anything with `query` and `transaction`', (pool) =>
    ['connect', 'transaction'].some((name) => hasMethods(pool, 'query', name)),
  );
