import { MAX_TIMER_MS } from '../common/clock.ts';
import { hasMethods, option } from '../common/validation.ts';
import { TrackingError } from '../errors.ts';
import { callStore } from '../webhooks/dedupe-store.ts';

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

export const queryableOption = option<Queryable>(
  'a pool or client of `pg`, or an object with a method `query(text, values)`',
  (value) => hasMethods(value, 'query'),
);

/** A connection lent by a pool. */
interface PooledConnection extends Queryable {
  release(destroy: boolean): void;
  on?(event: 'error', listener: () => void): unknown;
  off?(event: 'error', listener: () => void): unknown;
}

interface ConnectionPool extends Queryable {
  /** If `pg` gets a callback, it returns no promise; other pools may return a promise and ignore the callback. */
  connect(
    callback: (error: unknown, connection: PooledConnection | undefined) => void,
  ): Promise<PooledConnection> | undefined;
}

/**
 * Runs a statement on a connection that the pool lends. A half-open connection never replies, so it is destroyed after twice
 * `limitMs`, and the pool may open another one. Until then, a late reply to a claim still tells which keys were claimed.
 */
async function withConnection<Result>(
  pool: Queryable,
  limitMs: number,
  run: (connection: Queryable) => Promise<Result>,
): Promise<Result> {
  if (!lendsConnections(pool)) return run(pool);
  const connection = await borrow(pool);
  // An error may be about the connection, so destroy the connection, as `pool.query` does.
  let mustDestroy = true;
  try {
    const result = await callStore(() => run(connection), Math.min(2 * limitMs, MAX_TIMER_MS));
    mustDestroy = false;
    return result;
  } finally {
    connection.off?.('error', ignore);
    connection.release(mustDestroy);
  }
}

/** Without an `error` listener, a lent connection that breaks would end the process. Its statement rejects anyway. */
function borrow(pool: ConnectionPool): Promise<PooledConnection> {
  return new Promise((resolve, reject) => {
    const lend = (connection: PooledConnection) => {
      connection.on?.('error', ignore);
      resolve(connection);
    };
    // Listen in the callback: a new connection can break before the callbacks of a promise run.
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

/**
 * Calls made while a statement is under way share the next statement; if it fails, all of them fail. After `limitMs` a call
 * rejects and the next statement starts. A call that has rejected while it waited is not sent.
 *
 * @param send - sends one statement for all items, and resolves to one result for each
 */
export function batched<Item, Result>(
  pool: Queryable,
  limitMs: number,
  send: (connection: Queryable, items: readonly Item[]) => Promise<readonly Result[]>,
): (items: readonly Item[]) => Promise<readonly Result[]> {
  type Items = readonly Item[];
  /** The items of each call that waits for the next statement. */
  let waiting = new Set<Items>();
  /** The results of each call of the next statement; undefined if no call waits for it. */
  let results: Promise<ReadonlyMap<Items, readonly Result[]>> | undefined;
  let canSend: Promise<unknown> = Promise.resolve();

  function sendWaiting() {
    const batch = waiting;
    waiting = new Set();
    results = undefined;
    const sent = withConnection(pool, limitMs, async (connection) => {
      // Read the batch now, because calls that gave up while they waited for the connection have left it.
      const calls = [...batch];
      const all = calls.length === 0 ? [] : [...(await send(connection, calls.flat()))];
      return new Map(calls.map((items) => [items, all.splice(0, items.length)]));
    });
    // A statement that takes too long goes on, but later calls do not wait for it.
    canSend = callStore(() => sent, limitMs).catch(() => {});
    return sent;
  }

  return async (items) => {
    const batch = waiting.add(items);
    results ??= canSend.then(sendWaiting);
    const own = results.then((all) => all.get(items) ?? Promise.reject(new TrackingError('Not sent')));
    try {
      return await callStore(() => own, limitMs, 'commandTimeoutMs');
    } finally {
      batch.delete(items);
    }
  };
}
