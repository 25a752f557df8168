import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import {
  checkOptions,
  hasMethods,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-checks.ts';
import { TrackingError } from '../errors.ts';
import { DEFAULT_COMMAND_TIMEOUT_MS, OUTLASTS_SENDER_MS } from '../webhooks/dedupe-store.ts';
import { isStoreDown, processWebhook } from '../webhooks/inbox.ts';
import {
  buildCommonOptions,
  type DeadLetterCallback,
  type EventCallback,
  type InboxOptions,
  type InboxSettings,
  type ProcessOptions,
  resolveCommonOptions,
  type WebhookCallbacks,
  type WebhookProcessor,
  type WebhookReport,
} from '../webhooks/processor.ts';
import {
  applyClaim,
  CallbackTimeoutError,
  callWithTimeout,
  getItems,
  getKeys,
  isClaimed,
  isOpen,
  type Job,
  StoreTimeoutError,
  setState,
  type WorkItem,
  withTimeLimit,
} from '../webhooks/work.ts';
import { BUSY, getSqlState, InboxTable, type PurgeOptions, type Queryable } from './table.ts';

/** A connection lent by a pool. A query without values may hold several statements, as `pg` allows. */
export interface PooledConnection extends Queryable {
  release(destroy?: boolean): void;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  off?(event: 'error', listener: (error: Error) => void): unknown;
}

export interface ConnectionPool extends Queryable {
  connect(): Promise<PooledConnection>;
}

/** Runs a function in a transaction: a PGlite database, or your own adapter of another driver. */
export interface TransactionRunner extends Queryable {
  /**
   * Commits once the work resolves, and rolls back when the work rejects.
   *
   * @param work - runs in the transaction
   * @returns the result of the work
   */
  transaction<Result>(work: (transaction: Queryable) => Promise<Result>): Promise<Result>;
}

/** A `Pool` of `pg`, an object with the same methods, or a runner of transactions. */
export type TransactionSource = ConnectionPool | TransactionRunner;

/** A `PoolClient` of `pg`, or a `Transaction` of PGlite. */
type TransactionOf<Source extends TransactionSource> = Source extends {
  // `connect` of `pg` also has a callback signature, and TypeScript would infer from the last signature only.
  connect: { (): Promise<infer Connection>; (...rest: never[]): unknown };
}
  ? Connection
  : Source extends { connect(): Promise<infer Connection> }
    ? Connection
    : Source extends {
          transaction<Result>(work: (transaction: infer Transaction) => Promise<Result>): Promise<Result>;
        }
      ? Transaction
      : never;

/** Added to the context of a callback by the transactional inbox. */
export interface TransactionContext<Source extends TransactionSource> {
  /** Write only through this transaction: its writes are kept if and only if the event counts as handled. */
  readonly transaction: TransactionOf<Source>;
}

/** Options of {@link TransactionalInbox}. */
export interface TransactionalInboxOptions<Source extends TransactionSource>
  extends Omit<InboxOptions, 'leaseMs' | 'callbackTimeoutMs' | 'onDeadLetter'> {
  /** A `Pool` of `pg`, a PGlite database, or anything with `query` and `transaction`. You close it yourself. */
  readonly pool: Source;
  /** The table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
  /** How long a callback may run before it counts as failed and its `signal` aborts, in milliseconds. Default: 60,000. */
  readonly callbackTimeoutMs?: number | undefined;
  /** How long each statement of the inbox may take, in milliseconds; those of callbacks are exempt. Default: 2,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** Takes an event that keeps failing, in the transaction that marks it done; called again if it fails. Default: none. */
  readonly onDeadLetter?: DeadLetterCallback<TransactionContext<Source>> | undefined;
}

/** `lock_not_available`, `query_canceled` by a shorter `statement_timeout` of the application, `deadlock_detected`. */
const BUSY_CODES: ReadonlySet<unknown> = new Set(['55P03', '57014', '40P01']);
/** If another receiver has locked the row, counting a failure gives up after this time, because the response waits for it. */
const COUNT_LOCK_TIMEOUT = '1000ms';

/** The error stands in an object, because a callback may throw `undefined`. */
interface Failure {
  readonly error: unknown;
}

interface Limits {
  readonly giveUpAt: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * An inbox whose events take effect exactly once, even after a crash: one transaction marks the new events of a webhook
 * as handled and holds the callbacks' writes. If a callback fails, all callbacks run again, each in its own transaction.
 *
 * Only writes through `transaction` happen once: a mail that a callback sends may be sent again. An attempt that ends
 * with a crash is not counted. The table may be that of a `PostgresDedupeStore`, but not while the store uses it.
 *
 * @example
 * const inbox = new TransactionalInbox({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) });
 * await inbox.createTable();
 * const webhooks = createWebhookHandler({
 *   secret: process.env.WEBHOOK_SECRET,
 *   inbox,
 *   onEvent: async (event, { transaction, message }) => {
 *     await transaction.query('INSERT INTO parcel_events VALUES ($1, $2)', [message.tracker.trackerId, event.status]);
 *   },
 * });
 */
export class TransactionalInbox<Source extends TransactionSource>
  implements WebhookProcessor<TransactionContext<Source>>
{
  readonly #pool: Source;
  readonly #table: InboxTable;
  readonly #commandTimeoutMs: number;
  readonly #settings: InboxSettings<TransactionContext<Source>>;

  /**
   * @param options - see `TransactionalInboxOptions`
   * @throws ConfigurationError when an option makes no sense; nothing is sent yet
   */
  constructor(options: TransactionalInboxOptions<Source>) {
    const schema = z.strictObject({
      ...buildCommonOptions<TransactionContext<Source>>(60_000),
      pool: option<Source>('a pool of `pg`, or anything with `query` and `transaction`', (pool) =>
        ['connect', 'transaction'].some((name) => hasMethods(pool, 'query', name)),
      ),
      // `InboxTable` checks the name.
      table: z.custom<string>().optional(),
      commandTimeoutMs: timeoutOption.default(DEFAULT_COMMAND_TIMEOUT_MS),
    } satisfies OptionShape<TransactionalInboxOptions<Source>>);
    const { pool, table, commandTimeoutMs, ...common } = checkOptions(schema, options);
    this.#pool = pool;
    this.#table = new InboxTable(table);
    this.#commandTimeoutMs = commandTimeoutMs;
    this.#settings = resolveCommonOptions(common);
  }

  /** Creates the table unless it exists; safe to call from several processes at once. */
  async createTable(): Promise<void> {
    await this.#table.create(this.#pool);
  }

  /**
   * Deletes the events whose retention has ended. Once a day is enough; each call reads all rows, but receivers do not wait.
   *
   * @param options - `batchSize`: how many rows one statement deletes, at least 1. Default: 10,000
   * @returns how many events were deleted
   */
  async purge(options: PurgeOptions = {}): Promise<number> {
    return this.#table.purge(this.#pool, options);
  }

  async process(
    payload: unknown,
    callbacks: EventCallback<TransactionContext<Source>> | WebhookCallbacks<TransactionContext<Source>>,
    options: ProcessOptions = {},
  ): Promise<WebhookReport> {
    return processWebhook(this.#settings, payload, callbacks, options, async (jobs, giveUpAt, signal) => {
      const limits = { giveUpAt, signal };
      if (!(await this.#findDuplicates(getItems(jobs)))) return;
      const open = jobs.filter(({ items }) => items.some(isOpen));
      if (open.length > 1 && (await this.#handleTogether(open, limits))) return;
      for (const job of open) {
        await this.#handleAlone(job, limits);
        // If the database is down, stop here, because every further event would wait for a timeout.
        if (isStoreDown(job.items)) return setState(getItems(open).filter(isOpen), 'unavailable');
      }
    });
  }

  /** Finds the items that are done, so that a redelivery needs no transaction; false when the database fails. */
  async #findDuplicates(items: readonly WorkItem[]): Promise<boolean> {
    try {
      const look = () => this.#table.look(this.#pool, getKeys(items));
      const known = await withTimeLimit(look, this.#commandTimeoutMs);
      setState(
        items.filter(({ key }) => known.get(key)?.status === 'done'),
        'duplicate',
      );
      return true;
    } catch (error) {
      this.#reportUnavailable(items, error);
      return false;
    }
  }

  async #handleTogether(jobs: readonly Job<TransactionContext<Source>>[], limits: Limits): Promise<boolean> {
    const items = getItems(jobs).filter(isOpen);
    const failure = await this.#transact(jobs, limits);
    if (failure?.error instanceof TransactionEndedError) {
      this.#settings.onError(failure.error, 'callback', getKeys(items));
    }
    // If the transaction timed out waiting for a locked key, all items are busy, and each job is tried alone.
    return failure === undefined && !items.every(({ state }) => state === 'busy');
  }

  async #handleAlone(job: Job<TransactionContext<Source>>, limits: Limits): Promise<void> {
    const items = job.items.filter(isOpen);
    if (limits.signal?.aborted) return setState(items, 'interrupted');
    const failure = await this.#transact([job], limits);
    if (failure === undefined) return;
    // Items that another receiver holds or has handled were left out, so they did not fail.
    const failed = items.filter(({ state }) => state === 'open');
    this.#settings.onError(failure.error, 'callback', getKeys(failed));
    const { maxAttempts } = this.#settings;
    const repeated = failed.filter(({ attempt }) => attempt < maxAttempts);
    await this.#countFailure(repeated, failure);
    for (const item of failed.filter(({ attempt }) => attempt >= maxAttempts)) {
      await this.#deadLetter(item, failure, limits);
    }
  }

  async #deadLetter(item: WorkItem, { error }: Failure, limits: Limits): Promise<void> {
    const { event, message, key } = item;
    const job: Job<TransactionContext<Source>> = {
      items: [item],
      call: (_, context) => this.#settings.onDeadLetter?.(event, { ...context, message, key, error }),
    };
    const failure = await this.#transact([job], limits);
    if (failure !== undefined) {
      this.#settings.onError(failure.error, 'deadLetter', [key]);
      await this.#countFailure([item], failure);
    } else if (item.state === 'handled') {
      item.state = 'deadLettered';
    }
  }

  /** Handles the open items of jobs in one transaction. If a callback fails, opens the items again and returns the error. */
  async #transact(
    jobs: readonly Job<TransactionContext<Source>>[],
    { giveUpAt, signal }: Limits,
  ): Promise<Failure | undefined> {
    const items = getItems(jobs).filter(isOpen);
    // The token is short, because it stays in the row.
    const token = randomUUID().slice(0, 8);
    let hasMarked = false;
    let hasCallbackFailed = false;
    try {
      await inTransaction(this.#pool, this.#commandTimeoutMs, async (transaction, discard) => {
        // A runner may call this function again when its commit fails, so start anew.
        setState(items, 'open');
        hasMarked = false;
        const lockTimeoutMs = Math.max(1, Math.ceil(giveUpAt - performance.now()));
        const values = [this.#settings.retainMs, `${lockTimeoutMs}ms`, token];
        const claims = await withTimeLimit(
          () => this.#table.claim(transaction, 'markDone', getKeys(items), ...values),
          lockTimeoutMs + this.#commandTimeoutMs,
        );
        hasMarked = true;
        for (const item of items) applyClaim(item, claims.get(item.key) ?? BUSY);
        for (const job of jobs) {
          const claimed = job.items.filter(isClaimed);
          if (claimed.length === 0 || signal?.aborted) continue;
          try {
            await callWithTimeout(
              claimed,
              // Sound: `transaction` came from this source's `connect` or `transaction`, whose type `TransactionOf` names.
              (context) =>
                job.call(claimed, { ...context, transaction: transaction as TransactionOf<Source> }),
              this.#settings.callbackTimeoutMs,
              signal,
            );
          } catch (error) {
            hasCallbackFailed = true;
            // The callback may still be using the connection, so it must not be lent again.
            if (error instanceof CallbackTimeoutError) discard();
            throw error;
          }
          setState(claimed, 'handled');
        }
        const interrupted = items.filter(isClaimed);
        await this.#table.run(transaction, 'unmarkDone', getKeys(interrupted), token);
        setState(interrupted, 'interrupted');
      });
      return undefined;
    } catch (error) {
      if (!hasMarked && BUSY_CODES.has(getSqlState(error))) {
        for (const item of items) applyClaim(item, BUSY);
        return undefined;
      }
      if (!hasCallbackFailed && !isOfCallback(error)) {
        this.#reportUnavailable(items, error);
        return undefined;
      }
      // If a callback sent its own COMMIT, events that were not handled are still marked as done.
      await this.#runOrReport('unmarkDone', items.filter(isClaimed), token);
      setState(
        items.filter(({ state }) => state !== 'busy' && state !== 'duplicate'),
        'open',
      );
      return { error };
    }
  }

  /** Counts a failed attempt in a statement of its own, because the failed transaction was rolled back. */
  async #countFailure(items: readonly WorkItem[], { error }: Failure): Promise<void> {
    for (const item of items) item.error = error;
    setState(items, 'failed');
    await this.#runOrReport('countFailure', items, OUTLASTS_SENDER_MS, COUNT_LOCK_TIMEOUT);
  }

  async #runOrReport(
    statement: 'unmarkDone' | 'countFailure',
    items: readonly WorkItem[],
    ...values: readonly unknown[]
  ): Promise<void> {
    const run = () => this.#table.run(this.#pool, statement, getKeys(items), ...values);
    await withTimeLimit(run, this.#commandTimeoutMs).catch((error) =>
      this.#settings.onError(error, 'release', getKeys(items)),
    );
  }

  #reportUnavailable(items: readonly WorkItem[], error: unknown): void {
    setState(items, 'unavailable');
    this.#settings.onError(error, 'claim', getKeys(items));
  }
}

/** Tells whether a callback made the commit fail: it broke a deferred constraint (class 23), or ended the transaction. */
function isOfCallback(error: unknown): boolean {
  return error instanceof TransactionEndedError || /^23/.test(String(getSqlState(error)));
}

/** Releasing it fails if the work ended the transaction or caught the error of a failed statement; `COMMIT` reports neither. */
const SAVEPOINT = 'tracking_webhook';
/** `no_active_sql_transaction`, `in_failed_sql_transaction`, `invalid_savepoint_specification`. */
const ENDED_CODES: ReadonlySet<unknown> = new Set(['25P01', '25P02', '3B001']);

/**
 * Commits when the work resolves, and rolls back when it rejects or has ended the transaction itself. The work calls `discard`
 * if a callback may still use the connection afterwards; the pool then closes the connection.
 */
export async function inTransaction<Result>(
  source: TransactionSource,
  commandTimeoutMs: number,
  work: (transaction: Queryable, discard: () => void) => Promise<Result>,
): Promise<Result> {
  if (!('connect' in source)) {
    return source.transaction(async (transaction) => {
      const send = (text: string) => withTimeLimit(() => transaction.query(text), commandTimeoutMs);
      await send(`SAVEPOINT ${SAVEPOINT}`);
      const result = await work(transaction, () => {});
      await send(`RELEASE SAVEPOINT ${SAVEPOINT}`).catch(rethrowEnded);
      return result;
    });
  }
  const connection = await connect(source, commandTimeoutMs);
  const send = (text: string) => withTimeLimit(() => connection.query(text), commandTimeoutMs);
  let isClean = true;
  const discard = () => {
    isClean = false;
  };
  // A broken connection emits `error`, which ends a process that has no listener. The statement under way rejects, too.
  connection.on?.('error', discard);
  try {
    await send(`BEGIN; SAVEPOINT ${SAVEPOINT}`);
    const result = await work(connection, discard);
    await send(`RELEASE SAVEPOINT ${SAVEPOINT}; COMMIT`).catch(rethrowEnded);
    return result;
  } catch (error) {
    // The statement that took too long may still run on this connection.
    if (error instanceof StoreTimeoutError) discard();
    if (isClean) await send('ROLLBACK').catch(discard);
    throw error;
  } finally {
    if (isClean) connection.off?.('error', discard);
    connection.release(!isClean);
  }
}

function connect(pool: ConnectionPool, limitMs: number): Promise<PooledConnection> {
  return withTimeLimit(
    () => pool.connect(),
    limitMs,
    (connecting) => {
      // A connection that comes too late must go back to the pool.
      connecting.then((late) => late.release()).catch(() => {});
      return new StoreTimeoutError(limitMs, connecting);
    },
  );
}

function rethrowEnded(error: unknown): never {
  if (!ENDED_CODES.has(getSqlState(error))) throw error;
  throw new TransactionEndedError({ cause: error });
}

class TransactionEndedError extends TrackingError {
  constructor(options: ErrorOptions) {
    super('Expected the callback to leave its transaction open, got a transaction that it ended', options);
  }
}
