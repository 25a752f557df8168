// Specification: service.md 6
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { checkOptions, type OptionShape } from '../common/option-checks.ts';
import { TrackingError } from '../errors.ts';
import type { Logger } from '../observability/logger.ts';
import type { WebhookEvent } from '../schemas/webhook.ts';
import type { Cancellation, WorkItem } from '../webhooks/callbacks.ts';
import { OUTLASTS_SENDER_MS } from '../webhooks/dedupe-store.ts';
import { InFlight } from '../webhooks/group.ts';
import { processWebhook } from '../webhooks/inbox.ts';
import {
  commonOptions,
  type DeadLetterContext,
  type InboxErrorContext,
  inboxSettings,
} from '../webhooks/options.ts';
import type { WebhookProcessor } from '../webhooks/report.ts';
import { type Failure, keysOf, type Undone, type WorkSession, type WorkSource } from '../webhooks/session.ts';
import { codeOf, InboxTable, type PurgeOptions, type Queryable } from './table.ts';
import {
  inTransaction,
  rethrowEnded,
  type TransactionOf,
  type TransactionSource,
  transactionSourceOption,
} from './transaction.ts';

/** What the transactional inbox adds to the context of a callback. */
export interface TransactionContext<Source extends TransactionSource> {
  /** Write with this, and with nothing else: what it writes lasts exactly when the event counts as handled. */
  readonly transaction: TransactionOf<Source>;
}

/** Options of {@link transactionalInbox}. */
export interface TransactionalInboxOptions<Source extends TransactionSource> {
  /** A `Pool` of `pg`, a PGlite database, or anything with `query` and `transaction`. It stays yours to close. */
  readonly pool: Source;
  /** The table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
  /** How long a handled event is remembered, in milliseconds, at least 7 days. Default: 30 days. */
  readonly retainMs?: number | undefined;
  /** How long to wait for events that another receiver works on (`lock_timeout`), in milliseconds. Default: 8,000. */
  readonly busyBudgetMs?: number | undefined;
  /** When a callback counts as failed though it still runs, in milliseconds; its `signal` aborts. Default: 60,000. */
  readonly handlerTimeoutMs?: number | undefined;
  /** After how many failed tries an event goes to `onDeadLetter`; needs that option. Default: 10 with it, never without. */
  readonly maxAttempts?: number | undefined;
  /** Takes an event that keeps failing, in the transaction that marks it done. When it rejects, a redelivery tries again. */
  readonly onDeadLetter?:
    | ((event: WebhookEvent | undefined, context: DeadLetterContext & TransactionContext<Source>) => unknown)
    | undefined;
  /**
   * Told of every error that does not reach you otherwise, and of what in a webhook is not what it should be: of each rejected
   * item, and once of each field that was kept as it came. Default: tells `logger`.
   */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
  /** Where lines go: the console, or a logger of pino, winston or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
}

/** An inbox that handles an event and remembers it in one transaction; made by {@link transactionalInbox}. */
export interface TransactionalInbox<Source extends TransactionSource>
  extends WebhookProcessor<TransactionContext<Source>> {
  /** Creates the table unless it exists; safe to call from several processes at once. */
  createTable(): Promise<void>;
  /**
   * Deletes the events whose retention has ended. It reads the whole table, so once a day is enough; receivers do not wait for it.
   *
   * @param options - see `PurgeOptions`
   * @returns how many events were deleted
   * @throws ConfigurationError when an option makes no sense; the client's own errors
   */
  purge(options?: PurgeOptions): Promise<number>;
}

/**
 * An inbox whose events take effect exactly once, crashes included: a row that says "handled" and the handler's own writes
 * are committed in one transaction. Each webhook has one transaction, and an event that fails undoes only itself; where it cannot
 * (it took too long, or ended the transaction), the others are handled again, each in a transaction of its own.
 *
 * Only what is written through `transaction` is covered: a mail sent by the handler is sent again after a crash. A receiver that finds
 * an event in the hands of another waits for that transaction to end, at most `busyBudgetMs`. A try that ends with
 * its process is not counted.
 *
 * A table of `PostgresDedupeStore` can be taken over by it, and the other way round. Let not both receive into one table at the same
 * time: a claim of the store would wait for a transaction here to end, whatever `busyBudgetMs` says.
 *
 * @param options - see `TransactionalInboxOptions`
 * @returns an inbox for `createWebhookHandler({ inbox })`
 * @throws ConfigurationError when an option makes no sense; nothing is sent yet
 * @example
 * const inbox = transactionalInbox({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) });
 * await inbox.createTable();
 * const webhooks = createWebhookHandler({
 *   secret: process.env.WEBHOOK_SECRET,
 *   inbox,
 *   handler: async (event, { transaction, delivery }) => {
 *     await transaction.query('INSERT INTO parcel_events VALUES ($1, $2)', [delivery.tracker.trackerId, event.status]);
 *   },
 * });
 */
export function transactionalInbox<Source extends TransactionSource>(
  options: TransactionalInboxOptions<Source>,
): TransactionalInbox<Source> {
  const schema = z.strictObject({
    ...commonOptions<TransactionContext<Source>>(60_000),
    pool: transactionSourceOption<Source>(),
    // Checked by the table.
    table: z.custom<string>().optional(),
  } satisfies OptionShape<TransactionalInboxOptions<Source>>);
  const { pool, table: tableName, ...common } = checkOptions(schema, options);
  const table = new InboxTable(tableName);
  const settings = inboxSettings(common);
  const source = new TransactionalSource(pool, table, settings.retainMs);
  return {
    createTable: () => table.create(pool),
    purge: (purgeOptions) => table.purge(pool, purgeOptions),
    process: (payload, callbacks, processOptions = {}) =>
      processWebhook(settings, source, payload, callbacks, processOptions),
  };
}

/** When to ask again for an event whose holder's transaction may end at any moment, in milliseconds. */
const RETRY_AFTER_MS = 1_000;
/**
 * SQLSTATEs of a wait for another receiver that was given up: `lock_not_available` by `lock_timeout`, `query_canceled` by a
 * `statement_timeout` of the application that is shorter, `deadlock_detected`.
 */
const BUSY_CODES: ReadonlySet<unknown> = new Set(['55P03', '57014', '40P01']);
/** Counting a failure may not hold the response up behind a rival that has taken the event over since. */
const COUNT_LOCK_TIMEOUT_MS = 1_000;

/** The sessions of a transactional inbox: one transaction a webhook, which marks its events as done. */
class TransactionalSource<Source extends TransactionSource>
  implements WorkSource<TransactionContext<Source>>
{
  readonly inFlight = new InFlight();
  readonly isWaiting = true;
  readonly #pool: Source;
  readonly #table: InboxTable;
  readonly #retainMs: number;

  constructor(pool: Source, table: InboxTable, retainMs: number) {
    this.#pool = pool;
    this.#table = table;
    this.#retainMs = retainMs;
  }

  async session(
    items: readonly WorkItem[],
    waitMs: number,
    work: (session: WorkSession<TransactionContext<Source>>) => Promise<void>,
  ): Promise<Undone | undefined> {
    let session: TransactionSession<Source> | undefined;
    // Short, for it stays in the row.
    const token = randomUUID().slice(0, 8);
    try {
      await inTransaction(this.#pool, async (transaction, discard) => {
        const lockTimeout = `${Math.max(1, Math.ceil(waitMs))}ms`;
        const values = [this.#retainMs, lockTimeout, token];
        const claims = await this.#table.take(transaction, 'take', keysOf(items), values, RETRY_AFTER_MS);
        for (const [index, item] of items.entries()) {
          item.claim = claims[index];
          // A runner may do the work again when its commit fails.
          item.outcome = undefined;
        }
        session = new TransactionSession<Source>(transaction, discard);
        await work(session);
        // What was taken and neither handled nor done for good is free again.
        const open = items.filter(({ claim, isDone }) => claim?.status === 'acquired' && !isDone);
        await this.#table.run(transaction, 'untake', keysOf(open), OUTLASTS_SENDER_MS);
      });
    } catch (error) {
      if (session !== undefined) return this.#undo(items, token, session.undoneBy, error);
      if (!BUSY_CODES.has(codeOf(error))) throw error;
      for (const item of items) item.claim = { status: 'busy', retryAfterMs: RETRY_AFTER_MS };
    }
    return undefined;
  }

  /** Rejects when it was the database that undid the work, and nothing that the work did. */
  async #undo(
    items: readonly WorkItem[],
    token: string,
    undoneBy: readonly WorkItem[] | undefined,
    error: unknown,
  ): Promise<Undone> {
    // What was done for good is known by the table alone.
    for (const item of items) item.outcome = undefined;
    if (undoneBy === undefined && !isOfWork(error)) throw error;
    // A `COMMIT` of the handler's own has made all that was taken done, and most of it was not even begun.
    const taken = items.filter((item) => undoneBy?.includes(item) !== true);
    await this.#table.run(this.#pool, 'reopen', keysOf(taken), token);
    return { error, items: undoneBy };
  }

  /** Counts a failed attempt, which the transaction that failed could not. */
  async giveBack(items: readonly WorkItem[]): Promise<void> {
    await inTransaction(this.#pool, async (transaction) => {
      const lockTimeout = `${COUNT_LOCK_TIMEOUT_MS}ms`;
      await transaction.query(`SELECT set_config('lock_timeout', $1::text, true)`, [lockTimeout]);
      await this.#table.run(transaction, 'fail', keysOf(items), OUTLASTS_SENDER_MS);
    });
  }
}

/** Whether a commit failed for what was done before it: a deferred constraint (class 23), or an end of the transaction. */
function isOfWork(error: unknown): boolean {
  return error instanceof TrackingError || /^23/.test(String(codeOf(error)));
}

const EACH = 'tracking_event';

/** One transaction: its items are taken as done, and those that are not done at its end are given back. */
class TransactionSession<Source extends TransactionSource>
  implements WorkSession<TransactionContext<Source>>
{
  /** The items whose work ended the transaction. */
  undoneBy: readonly WorkItem[] | undefined;
  readonly #transaction: Queryable;
  readonly #discard: () => void;

  constructor(transaction: Queryable, discard: () => void) {
    this.#transaction = transaction;
    this.#discard = discard;
  }

  /** A transaction keeps what it took. */
  confirm(): undefined {}

  async attempt(
    items: readonly WorkItem[],
    isUndoable: boolean,
    cancellation: Cancellation,
    work: (extra: TransactionContext<Source>) => Promise<void> | undefined,
  ): Promise<Failure | undefined> {
    const transaction = this.#transaction;
    if (isUndoable) await transaction.query(`SAVEPOINT ${EACH}`);
    this.undoneBy = items;
    try {
      // Sound: `TransactionOf` is by definition the type of what this source's `connect` or `transaction` gives, and it came from there.
      await work({ transaction: transaction as TransactionOf<Source> });
      if (isUndoable) await transaction.query(`RELEASE SAVEPOINT ${EACH}`).catch(rethrowEnded);
    } catch (error) {
      // Whoever was given up on may go on using the connection, which must then not be lent to anyone else.
      if (cancellation.isReason(error)) this.#discard();
      else if (isUndoable && (await this.#rollBack())) {
        this.undoneBy = undefined;
        return { error };
      }
      throw error;
    }
    this.undoneBy = undefined;
    return undefined;
  }

  /** Done at the end, with all others that were not handled. */
  async giveBack(): Promise<void> {}

  #rollBack(): Promise<boolean> {
    return this.#transaction.query(`ROLLBACK TO SAVEPOINT ${EACH}`).then(
      () => true,
      () => false,
    );
  }
}
