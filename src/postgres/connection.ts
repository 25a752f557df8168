import { MAX_TIMER_MS, systemClock, unref } from '../common/clock.ts';
import { hasMethods, option } from '../common/validation.ts';

/** Anything that runs a statement: a `Pool` or `Client` of `pg`, a PGlite database, or your own adapter. */
export interface Queryable {
  /**
   * Runs one statement.
   *
   * @param text - SQL whose values are numbered `$1`, `$2`, …
   * @param values - the values
   * @returns the rows, each an object by column name
   * @throws an error with the SQLSTATE as `code`
   */
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

export const queryableOption = option<Queryable>('anything with a method `query(text, values)`', (value) =>
  hasMethods(value, 'query'),
);

/** A connection lent by a pool. */
interface PooledConnection extends Queryable {
  release(destroy: boolean): void;
  on?(event: 'error', listener: () => void): unknown;
  off?(event: 'error', listener: () => void): unknown;
}

interface ConnectionPool extends Queryable {
  /** `pg` calls back, and then returns nothing; other pools may return a promise and ignore the callback. */
  connect(
    callback: (error: unknown, connection: PooledConnection | undefined) => void,
  ): Promise<PooledConnection> | undefined;
}

/**
 * Runs statements on a connection that the pool lends. A half-open connection never replies, so it is destroyed after twice
 * `limitMs`, and the pool may open another one. Until then, a late reply still tells what was claimed.
 */
export async function withConnection<Result>(
  pool: Queryable,
  limitMs: number,
  work: (connection: Queryable) => Promise<Result>,
): Promise<Result> {
  if (!lendsConnections(pool)) return work(pool);
  const connection = await borrow(pool);
  let isLent = true;
  const giveBack = (destroy: boolean) => {
    if (!isLent) return;
    isLent = false;
    systemClock.clearTimeout(timer);
    connection.off?.('error', ignore);
    connection.release(destroy);
  };
  const timer = systemClock.setTimeout(() => giveBack(true), Math.min(2 * limitMs, MAX_TIMER_MS));
  // This timer alone must not keep the process alive.
  unref(timer);
  try {
    const result = await work(connection);
    giveBack(false);
    return result;
  } catch (error) {
    // Destroy the connection, as `pool.query` does, because the error may be about the connection.
    giveBack(true);
    throw error;
  }
}

/** Without an `error` listener, a lent connection that breaks would end the process. Its statement rejects anyway. */
function borrow(pool: ConnectionPool): Promise<PooledConnection> {
  return new Promise((resolve, reject) => {
    const lend = (connection: PooledConnection) => {
      connection.on?.('error', ignore);
      resolve(connection);
    };
    // Not a promise, because a new connection can break before the promise's callbacks run.
    const promise = pool.connect((error, connection) =>
      connection === undefined ? reject(error) : lend(connection),
    );
    promise?.then(lend, reject);
  });
}

function ignore(): void {}

/** Recognises a `Pool` of `pg` or of a driver with the same interface; a `Client` has `connect`, but no `totalCount`. */
function lendsConnections(pool: Queryable): pool is ConnectionPool {
  return hasMethods(pool, 'connect') && 'totalCount' in pool && typeof pool.totalCount === 'number';
}
