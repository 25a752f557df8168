import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { checkOptions, type OptionShape, timeoutOption } from '../common/option-checks.ts';
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
  setState,
  type WorkItem,
  withTimeLimit,
} from '../webhooks/work.ts';
import { BUSY, getSqlState, InboxTable, type PurgeOptions } from './table.ts';
import {
  inTransaction,
  TransactionEndedError,
  type TransactionOf,
  type TransactionSource,
  transactionSourceOption,
} from './transaction.ts';

/** What the transactional inbox adds to the context of a callback. */
export interface TransactionContext<Source extends TransactionSource> {
  /** Write with this, and with nothing else: what it writes lasts exactly when the event counts as handled. */
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
/** Counting a failure may not hold the response up behind a receiver that has taken the event over since. */
const COUNT_LOCK_TIMEOUT = '1000ms';

/** The error that a callback failed with. */
interface Failure {
  readonly error: unknown;
  /** The token of the transaction when the callback itself failed; null when only its transaction could not be committed. */
  readonly token: string | null;
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
      pool: transactionSourceOption<Source>(),
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
        // Every further event would wait for a database that is down.
        if (isStoreDown(job.items)) return setState(getItems(open).filter(isOpen), 'unavailable');
      }
    });
  }

  /** Looks at what is done already, so that a repeat needs no transaction; false when the database fails. */
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
    // One key that another receiver holds must not keep the webhook from all others.
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
    await this.#countFailure(
      failed.filter(({ attempt }) => attempt < maxAttempts),
      failure,
    );
    for (const item of failed.filter(({ attempt }) => attempt >= maxAttempts)) {
      await this.#deadLetter(item, failure, limits);
    }
  }

  async #deadLetter(item: WorkItem, { error, token }: Failure, limits: Limits): Promise<void> {
    const { event, message, key } = item;
    const letter: Job<TransactionContext<Source>> = {
      items: [item],
      call: (_, context) => this.#settings.onDeadLetter?.(event, { ...context, message, key, error }),
    };
    const failure = await this.#transact([letter], limits);
    if (failure !== undefined) {
      this.#settings.onError(failure.error, 'deadLetter', [key]);
      await this.#countFailure([item], { error: failure.error, token });
    } else if (item.state === 'handled') {
      item.state = 'deadLettered';
    }
  }

  /**
   * Takes the open items of jobs, calls back for what is new, and commits. Gives the items their states, or resolves to what a
   * callback failed with: what was taken is open again then, for the transaction was rolled back.
   */
  async #transact(
    jobs: readonly Job<TransactionContext<Source>>[],
    { giveUpAt, signal }: Limits,
  ): Promise<Failure | undefined> {
    const items = getItems(jobs).filter(isOpen);
    // Short, for it stays in the row.
    const token = randomUUID().slice(0, 8);
    let hasTaken = false;
    let hasCallbackFailed = false;
    try {
      await inTransaction(this.#pool, this.#commandTimeoutMs, async (transaction, discard) => {
        // A runner may repeat all of this when its commit fails.
        setState(items, 'open');
        hasTaken = false;
        const lockTimeoutMs = Math.max(1, Math.ceil(giveUpAt - performance.now()));
        const values = [this.#settings.retainMs, `${lockTimeoutMs}ms`, token];
        const claims = await withTimeLimit(
          () => this.#table.claim(transaction, 'take', getKeys(items), ...values),
          lockTimeoutMs + this.#commandTimeoutMs,
        );
        hasTaken = true;
        for (const item of items) applyClaim(item, claims.get(item.key) ?? BUSY);
        for (const job of jobs) {
          const claimed = job.items.filter(isClaimed);
          if (claimed.length === 0 || signal?.aborted) continue;
          try {
            await callWithTimeout(
              claimed,
              // Sound: `TransactionOf` is by definition the type of what this source's `connect` or `transaction` gives, and it came from there.
              (context) =>
                job.call(claimed, { ...context, transaction: transaction as TransactionOf<Source> }),
              this.#settings.callbackTimeoutMs,
              signal,
            );
          } catch (error) {
            hasCallbackFailed = true;
            // The callback may go on using the connection, which must then not be lent to anyone else.
            if (error instanceof CallbackTimeoutError) discard();
            throw error;
          }
          setState(claimed, 'handled');
        }
        const interrupted = items.filter(isClaimed);
        await this.#table.run(transaction, 'untake', getKeys(interrupted), token);
        setState(interrupted, 'interrupted');
      });
      return undefined;
    } catch (error) {
      if (!hasTaken && BUSY_CODES.has(getSqlState(error))) {
        for (const item of items) applyClaim(item, BUSY);
        return undefined;
      }
      if (!hasCallbackFailed && !isOfCallback(error)) {
        this.#giveUp(items, error);
        return undefined;
      }
      const unfinished = items.filter(isClaimed);
      setState(
        items.filter(({ state }) => state !== 'busy' && state !== 'duplicate'),
        'open',
      );
      if (jobs.length > 1) await this.#reopen(unfinished, token);
      return { error, token: hasCallbackFailed ? token : null };
    }
  }

  /** A callback that ended its transaction by a `COMMIT` has marked everything as done, and most of it was not even begun. */
  async #reopen(items: readonly WorkItem[], token: string): Promise<void> {
    const untake = () => this.#table.run(this.#pool, 'untake', getKeys(items), token);
    await withTimeLimit(untake, this.#commandTimeoutMs).catch((error) =>
      this.#settings.onError(error, 'release', getKeys(items)),
    );
  }

  /** Counts a failed try, which the transaction that failed could not. */
  async #countFailure(items: readonly WorkItem[], { error, token }: Failure): Promise<void> {
    for (const item of items) item.error = error;
    setState(items, 'failed');
    const values = [OUTLASTS_SENDER_MS, COUNT_LOCK_TIMEOUT, token];
    const count = () => this.#table.run(this.#pool, 'fail', getKeys(items), ...values);
    await withTimeLimit(count, this.#commandTimeoutMs).catch((cause) =>
      this.#settings.onError(cause, 'release', getKeys(items)),
    );
  }

  /** The database failed, and nothing that a callback did. */
  #giveUp(items: readonly WorkItem[], error: unknown): void {
    setState(items, 'unavailable');
    this.#settings.onError(error, 'claim', getKeys(items));
  }
}

/** Whether a commit failed for what a callback did: it broke a deferred constraint (class 23), or ended the transaction. */
function isOfCallback(error: unknown): boolean {
  return error instanceof TransactionEndedError || /^23/.test(String(getSqlState(error)));
}
