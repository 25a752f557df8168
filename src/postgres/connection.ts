import { MAX_TIMER_MS, sleep, systemClock } from '../common/clock.ts';
import { readError } from '../common/foreign.ts';
import { hasMethods, option } from '../common/validation.ts';
import { callStore } from '../webhooks/dedupe-store.ts';

/** Longest time in which a statement is sent again after conflicts. The rest of the time limit is for `resolveConflict`. */
const MAX_RETRY_MS = 1_000;
const MAX_PAUSE_MS = 200;

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

/** The SQLSTATE of an error of the database. */
export function getSqlState(error: unknown): unknown {
  return readError(error)?.code;
}

/**
 * True if a statement failed because of another transaction: it waited too long for a lock (55P03), it was in a deadlock (40P01),
 * or the transactions could not be serialized (40001). The statement has done nothing then, so it can be sent again.
 */
function isConflict(error: unknown): boolean {
  return ['55P03', '40P01', '40001'].some((state) => state === getSqlState(error));
}

/** Sends a statement again after each conflict, until half of `limitMs` or a second has passed since `startedAt`. */
export async function retryConflicts<Result>(
  send: () => Promise<Result>,
  limitMs: number,
  startedAt: number,
): Promise<Result> {
  const giveUpAt = startedAt + Math.min(limitMs / 2, MAX_RETRY_MS);
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!isConflict(error) || systemClock.now() >= giveUpAt) throw error;
    }
    // The pause is random, because two transactions in conflict must not try again at the same time.
    await sleep(Math.min(limitMs / 10, MAX_PAUSE_MS) * (0.5 + Math.random() / 2));
  }
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
  let mustDestroy = false;
  try {
    return await callStore(() => run(connection), Math.min(2 * limitMs, MAX_TIMER_MS));
  } catch (error) {
    // An error may be about the connection, so destroy the connection, as `pool.query` does. After a conflict, the connection still
    // works.
    mustDestroy = !isConflict(error);
    throw error;
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

/** An item of a call, which waits for its result. */
interface Entry<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** When the call was made, on `systemClock`. */
  readonly startedAt: number;
  /** True once the call has settled. Then the item is not sent any more. */
  isAbandoned: boolean;
}

/**
 * Calls made while a statement is under way share the next statement. If a statement meets a conflict, each of its items is sent
 * alone, and tried again for a while, so that only the items in conflict wait. If a statement fails for another reason, the calls of
 * its items fail. After `limitMs` a call rejects and the next statement starts. A call that has rejected is not sent any more.
 *
 * @param send - sends a statement for all items, and resolves to a list with a result for each item. If it reads first, it asks
 * `hasGivenUp` before it writes
 * @param resolveConflict - finds the result of an item whose last try met a conflict. Default: rejects with the error of that try
 */
export function batched<Item, Result>(
  pool: Queryable,
  limitMs: number,
  send: (
    connection: Queryable,
    items: readonly Item[],
    hasGivenUp: (index: number) => boolean,
  ) => Promise<readonly Result[]>,
  resolveConflict: (connection: Queryable, item: Item, error: unknown) => Promise<Result> = rethrow,
): (items: readonly Item[]) => Promise<readonly Result[]> {
  type Entries = readonly Entry<Item, Result>[];
  /** The items of the next statement. */
  let waiting: Entry<Item, Result>[] = [];
  let canSend: Promise<unknown> = Promise.resolve();

  function sendWaiting() {
    const entries = waiting;
    waiting = [];
    const sent = sendTogether(entries);
    // A statement that takes too long goes on, but later calls do not wait for it.
    canSend = callStore(() => sent, limitMs).catch(() => {});
    sent.catch((error) => recover(entries, error));
  }

  function sendTogether(entries: Entries): Promise<void> {
    return withConnection(pool, limitMs, async (connection) => {
      // Look now, because calls may have given up while they waited for the connection.
      const wanted = entries.filter(({ isAbandoned }) => !isAbandoned);
      if (wanted.length === 0) return;
      const items = wanted.map(({ item }) => item);
      const hasGivenUp = (index: number) => wanted[index]?.isAbandoned === true;
      const results = await send(connection, items, hasGivenUp);
      for (const [index, result] of results.entries()) wanted[index]?.resolve(result);
    });
  }

  function recover(entries: Entries, error: unknown): void {
    for (const entry of entries) {
      if (isConflict(error)) void sendAlone(entry);
      else entry.reject(error);
    }
  }

  async function sendAlone(entry: Entry<Item, Result>): Promise<void> {
    const { item, resolve, reject, startedAt } = entry;
    try {
      await retryConflicts(() => sendTogether([entry]), limitMs, startedAt);
    } catch (error) {
      if (!isConflict(error)) return reject(error);
      withConnection(pool, limitMs, (connection) => resolveConflict(connection, item, error)).then(
        resolve,
        reject,
      );
    }
  }

  return async (items) => {
    if (items.length === 0) return [];
    const startedAt = systemClock.now();
    const entries: Entry<Item, Result>[] = [];
    const results = items.map(
      (item) =>
        new Promise<Result>((resolve, reject) =>
          entries.push({ item, resolve, reject, startedAt, isAbandoned: false }),
        ),
    );
    if (waiting.length === 0) void canSend.then(sendWaiting);
    waiting = waiting.concat(entries);
    const all = async () => {
      // Wait for all items even if one fails, so that a release cannot overtake a claim.
      await Promise.allSettled(results);
      return Promise.all(results);
    };
    try {
      return await callStore(all, limitMs, 'commandTimeoutMs');
    } finally {
      for (const entry of entries) entry.isAbandoned = true;
    }
  };
}

async function rethrow(_connection: Queryable, _item: unknown, error: unknown): Promise<never> {
  throw error;
}
