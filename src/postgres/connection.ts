import { MAX_TIMER_MS, systemClock, unref } from '../common/clock.ts';
import { hasMethods, option } from '../common/validation.ts';
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
 * Runs statements on a connection that the pool lends. A half-open connection never replies, so it is destroyed after twice
 * `limitMs`, and the pool may open another one. Until then, a late reply to a claim still tells which keys were claimed.
 */
async function withConnection<Result>(
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
    // The error may be about the connection, so destroy the connection, as `pool.query` does.
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

interface WaitingCall<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
  /** True when nobody waits for the results any more. */
  hasGivenUp: boolean;
}

/**
 * Calls made while a statement is under way share the next statement; if it fails, all of them fail. After `limitMs` a call
 * rejects and the next statement starts.
 *
 * @param send - sends one statement for all items, and resolves to one result for each
 */
export function batched<Item, Result>(
  pool: Queryable,
  limitMs: number,
  send: (connection: Queryable, items: readonly Item[]) => Promise<readonly Result[]>,
): (items: readonly Item[]) => Promise<readonly Result[]> {
  let waiting: WaitingCall<Item, Result>[] = [];
  let isUnderWay = false;

  async function sendCalls(calls: readonly WaitingCall<Item, Result>[]): Promise<void> {
    let sent: readonly WaitingCall<Item, Result>[] = [];
    try {
      const results = await withConnection(pool, limitMs, async (connection) => {
        // Leave out the calls that gave up while they waited for the connection.
        sent = calls.filter(({ hasGivenUp }) => !hasGivenUp);
        const items = sent.flatMap((call) => call.items);
        return items.length === 0 ? [] : send(connection, items);
      });
      let start = 0;
      for (const { items, resolve } of sent) {
        resolve(results.slice(start, start + items.length));
        start += items.length;
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }

  async function sendWaiting(): Promise<void> {
    if (isUnderWay) return;
    isUnderWay = true;
    while (waiting.length > 0) {
      const calls = waiting;
      waiting = [];
      // A statement that takes too long goes on, but later calls do not wait for it.
      await callStore(() => sendCalls(calls), limitMs).catch(() => {});
    }
    isUnderWay = false;
  }

  return async (items) => {
    const call: WaitingCall<Item, Result> = { items, resolve() {}, reject() {}, hasGivenUp: false };
    const result = new Promise<readonly Result[]>((resolve, reject) => {
      Object.assign(call, { resolve, reject });
    });
    waiting.push(call);
    void sendWaiting();
    try {
      return await callStore(() => result, limitMs, 'commandTimeoutMs');
    } finally {
      call.hasGivenUp = true;
    }
  };
}
