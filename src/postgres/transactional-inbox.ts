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
import type { Logger } from '../observability/logger.ts';
import type { WebhookEvent } from '../schemas/webhook.ts';
import { DEFAULT_COMMAND_TIMEOUT_MS, OUTLASTS_SENDER_MS } from '../webhooks/dedupe-store.ts';
import { isStoreDown, processWebhook } from '../webhooks/inbox.ts';
import {
  buildCommonOptions,
  type DeadLetterContext,
  type EventCallback,
  type InboxErrorContext,
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

/** The type with which a source runs statements in a transaction: a `PoolClient` of `pg`, a `Transaction` of PGlite. */
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

/** Added to the context of a callback by the transactional inbox. */
export interface TransactionContext<Source extends TransactionSource> {
  /** Write with this and nothing else: its writes last exactly when the event counts as handled. */
  readonly transaction: TransactionOf<Source>;
}

/** Options of {@link TransactionalInbox}. */
export interface TransactionalInboxOptions<Source extends TransactionSource> {
  /** A `Pool` of `pg`, a PGlite database, or anything with `query` and `transaction`. It stays yours to close. */
  readonly pool: Source;
  /** The table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
  /** How long a handled event is remembered, in milliseconds, at least 7 days. Default: 30 days. */
  readonly retainMs?: number | undefined;
  /** When a callback counts as failed though it still runs, in milliseconds; its `signal` aborts. Default: 60,000. */
  readonly callbackTimeoutMs?: number | undefined;
  /** How long each statement of the inbox may take, in milliseconds; those of callbacks are exempt. Default: 2,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** After how many failed tries an event goes to `onDeadLetter`; needs that option. Default: 10 with it, without limit otherwise. */
  readonly maxAttempts?: number | undefined;
  /** Takes an event that keeps failing, in the transaction that marks it done. When it rejects, a redelivery tries again. Default: none. */
  readonly onDeadLetter?:
    | ((event: WebhookEvent | undefined, context: DeadLetterContext & TransactionContext<Source>) => unknown)
    | undefined;
  /**
   * Told of every error that does not reach you otherwise, of each rejected item of a webhook, and once of each field that is not
   * what it should be. Default: writes to `logger`.
   */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
  /** Where lines go: the console, or a logger of pino, winston, bunyan or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
}

/**
 * SQLSTATEs of a wait for another receiver that was given up: `lock_not_available` by `lock_timeout`, `query_canceled` by a
 * `statement_timeout` of the application that is shorter, `deadlock_detected`.
 */
const BUSY_CODES: ReadonlySet<unknown> = new Set(['55P03', '57014', '40P01']);
/** Counting a failure must not delay the response when another receiver has taken the event over. */
const COUNT_LOCK_TIMEOUT = '1000ms';

/** The error of a callback; any value can be thrown. */
interface Failure {
  readonly error: unknown;
}

interface Limits {
  /** When to stop waiting for other receivers, on the clock of `performance.now`. */
  readonly giveUpAt: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * An inbox whose events take effect exactly once, crashes included: a row that says "handled" and the callback's own writes
 * are committed in one transaction. All new events of a webhook share one transaction. When that fails, each call of a callback is
 * repeated in a transaction of its own, also where it had succeeded before: its first writes were rolled back.
 *
 * Only what is written through `transaction` happens once: a mail that a callback sends may be sent again. A receiver that finds
 * an event in the hands of another waits for that transaction to end. A try that ends with its process is not counted.
 *
 * A table of `PostgresDedupeStore` can be taken over by it, and the other way round. Do not let both receive into one table at the same
 * time: a claim of the store would wait for a transaction here to end.
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
      // Checked by the table.
      table: z.custom<string>().optional(),
      commandTimeoutMs: timeoutOption.default(DEFAULT_COMMAND_TIMEOUT_MS),
    } satisfies OptionShape<TransactionalInboxOptions<Source>>);
    const { pool, table, commandTimeoutMs, ...common } = checkOptions(schema, options);
    this.#pool = pool;
    this.#table = new InboxTable(table);
    this.#commandTimeoutMs = commandTimeoutMs;
    this.#settings = resolveCommonOptions(common);
  }

  /**
   * Creates the table unless it exists; safe to call from several processes at once.
   *
   * @throws the errors of the pool
   */
  async createTable(): Promise<void> {
    await this.#table.create(this.#pool);
  }

  /**
   * Deletes the events whose retention has ended. It reads the whole table, so once a day is enough; receivers do not wait for it.
   *
   * @param options - see `PurgeOptions`
   * @returns how many events were deleted
   * @throws ConfigurationError when an option makes no sense; the errors of the pool
   */
  async purge(options: PurgeOptions = {}): Promise<number> {
    return this.#table.purge(this.#pool, options);
  }

  /**
   * Handles what is new in a webhook body, oldest first, and reports on all of it.
   *
   * @param payload - the body: text, UTF-8 bytes, or JSON that is parsed already
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns what became of it; only the outcomes `done` and `rejected` leave nothing to redeliver
   * @throws WebhookParseError when the body is not UTF-8 JSON; ConfigurationError when the callbacks or the options make no sense
   */
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
        // If the database is down, every further event would only wait for it.
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
      this.#giveUp(items, error);
      return false;
    }
  }

  /** Handles all jobs in one transaction; false when each of them needs one of its own. */
  async #handleTogether(jobs: readonly Job<TransactionContext<Source>>[], limits: Limits): Promise<boolean> {
    const items = getItems(jobs).filter(isOpen);
    const failure = await this.#transact(jobs, limits);
    if (failure?.error instanceof TransactionEndedError) {
      this.#settings.onError(failure.error, 'callback', getKeys(items));
    }
    // If another receiver holds one key, the others are handled alone.
    return failure === undefined && !items.every(({ state }) => state === 'busy');
  }

  async #handleAlone(job: Job<TransactionContext<Source>>, limits: Limits): Promise<void> {
    const items = job.items.filter(isOpen);
    if (limits.signal?.aborted) return setState(items, 'interrupted');
    const failure = await this.#transact([job], limits);
    if (failure === undefined) return;
    // The transaction left out the keys that another receiver holds or has handled.
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

  /**
   * In one transaction: marks the open items of jobs as done, calls back for what is new, and commits. Sets the states of the
   * items; if a callback fails they are open again, because the transaction was rolled back, and its error is returned.
   */
  async #transact(
    jobs: readonly Job<TransactionContext<Source>>[],
    { giveUpAt, signal }: Limits,
  ): Promise<Failure | undefined> {
    const items = getItems(jobs).filter(isOpen);
    // Short, because it stays in the row.
    const token = randomUUID().slice(0, 8);
    let hasMarked = false;
    let hasCallbackFailed = false;
    try {
      await inTransaction(this.#pool, this.#commandTimeoutMs, async (transaction, discard) => {
        // A runner may repeat this whole function when its commit fails.
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
        this.#giveUp(items, error);
        return undefined;
      }
      // A callback that sent a COMMIT of its own has kept the marks of events that nobody has handled.
      const unfinished = items.filter(isClaimed);
      await this.#runOrReport('unmarkDone', unfinished, token);
      setState(
        items.filter(({ state }) => state !== 'busy' && state !== 'duplicate'),
        'open',
      );
      return { error };
    }
  }

  /** Counts a failed attempt on its own, because the transaction that failed could not. */
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

  /** Reports items as unavailable because the database failed and no callback did. */
  #giveUp(items: readonly WorkItem[], error: unknown): void {
    setState(items, 'unavailable');
    this.#settings.onError(error, 'claim', getKeys(items));
  }
}

/** Tells whether a callback made the commit fail: it broke a deferred constraint (class 23), or ended the transaction. */
function isOfCallback(error: unknown): boolean {
  return error instanceof TransactionEndedError || /^23/.test(String(getSqlState(error)));
}

/** Runs in a transaction. It calls `discard` if a callback may still use the connection afterwards, so that it is not lent again. */
export type TransactionWork<Result> = (transaction: Queryable, discard: () => void) => Promise<Result>;

/**
 * The name of a savepoint around the whole work. Releasing it fails if the work has ended the transaction, by a `ROLLBACK` or by
 * a failed statement whose error was caught; a `COMMIT` alone would then keep nothing and report no error.
 */
const SAVEPOINT = 'tracking_webhook';
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
      await send(`SAVEPOINT ${SAVEPOINT}`);
      // A runner lends no connection, so there is nothing to discard.
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
  // Without a listener the error event of a lent connection that breaks would end the process. Its statement rejects as well.
  connection.on?.('error', discard);
  try {
    // Two statements in one round trip, here and at the end.
    await send(`BEGIN; SAVEPOINT ${SAVEPOINT}`);
    const result = await work(connection, discard);
    await send(`RELEASE SAVEPOINT ${SAVEPOINT}; COMMIT`).catch(rethrowEnded);
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

/** Rethrows the error of a statement, as a `TransactionEndedError` if the work has ended the transaction. */
function rethrowEnded(error: unknown): never {
  if (!ENDED_CODES.has(getSqlState(error))) throw error;
  throw new TransactionEndedError({ cause: error });
}

/** A callback has ended the transaction that it was given. */
class TransactionEndedError extends TrackingError {
  constructor(options: ErrorOptions) {
    super('Expected the callback to leave its transaction open, got one that it ended', options);
  }
}
