import { checkKnownOptions } from '../common/option-checks.ts';
import type { WebhookEvent } from '../schemas/webhook.ts';
import { BodyReader } from '../webhooks/body-reader.ts';
import { toCallbacks } from '../webhooks/callbacks.ts';
import type { DeadLetterContext, InboxErrorContext } from '../webhooks/inbox-options.ts';
import type { WebhookProcessor } from '../webhooks/report.ts';
import { resolveRunOptions } from '../webhooks/run-options.ts';
import { planWork } from '../webhooks/work-plan.ts';
import { inboxStatements } from './inbox-statements.ts';
import { createInboxTable, DEFAULT_INBOX_TABLE, type PurgeOptions, purgeInboxTable } from './inbox-table.ts';
import { InboxTransactions } from './inbox-transaction.ts';
import { requireTransactionSource, type TransactionOf, type TransactionSource } from './transaction.ts';
import { TransactionalRun } from './transactional-run.ts';

const OPTION_NAMES = [
  'pool',
  'table',
  'retainMs',
  'busyBudgetMs',
  'handlerTimeoutMs',
  'maxAttempts',
  'onDeadLetter',
  'onError',
] as const satisfies readonly (keyof TransactionalInboxOptions<TransactionSource>)[];

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
  /** Takes an event that keeps failing, in a transaction of its own that marks it done. When it rejects, a redelivery tries again. */
  readonly onDeadLetter?:
    | ((event: WebhookEvent | undefined, context: DeadLetterContext & TransactionContext<Source>) => unknown)
    | undefined;
  /**
   * Told of every error that does not reach you otherwise, and of what in a webhook is not what it should be: of each rejected
   * item, and once of each field that was kept as it came. Default: writes it to `console.error`.
   */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
}

/** An inbox that handles an event and remembers it in one transaction; made by {@link transactionalInbox}. */
export interface TransactionalInbox<Source extends TransactionSource>
  extends WebhookProcessor<TransactionContext<Source>> {
  /** Creates the table and its index unless they exist; safe to call from several processes at once. */
  createTable(): Promise<void>;
  /**
   * Deletes the events whose retention has ended; receivers do not wait for it.
   *
   * @param options - see `PurgeOptions`
   * @returns how many events were deleted
   * @throws ConfigurationError when an option makes no sense; the client's own errors
   */
  purge(options?: PurgeOptions): Promise<number>;
}

/**
 * An inbox whose events take effect exactly once, crashes included: a row that says "handled" and the handler's own writes
 * are committed in one transaction. Each event has a transaction of its own; with `onDelivery` each delivery has.
 *
 * Only what is written through `transaction` is covered: a mail sent by the handler is sent again after a crash. A receiver that finds
 * an event in the hands of another waits for that transaction to end, at most `busyBudgetMs`. A failed try is counted after its
 * rollback, so a try that ends with its process is not.
 *
 * A table of `PostgresDedupeStore` can be taken over by it, and the other way round. Let not both receive into one table at the same
 * time: a claim of the store would wait for a transaction here to end, whatever `busyBudgetMs` says.
 *
 * @param options - see `TransactionalInboxOptions`
 * @returns an inbox for `createWebhookHandler({ inbox })`
 * @throws ConfigurationError when an option makes no sense; nothing is sent yet
 * @specification service.md 6
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
  checkKnownOptions('options', options, OPTION_NAMES);
  const { pool, table = DEFAULT_INBOX_TABLE } = options;
  requireTransactionSource(pool);
  const resolved = resolveRunOptions(options, 60_000);
  const transactions = new InboxTransactions(pool, inboxStatements(table), resolved.retainMs);
  const settings = { ...resolved, transactions };
  const bodies = new BodyReader(resolved);
  return {
    createTable: () => createInboxTable(pool, table),
    purge: async (purgeOptions = {}) => purgeInboxTable(pool, table, purgeOptions),
    process: async (payload, given, processOptions = {}) => {
      const callbacks = toCallbacks(given);
      const { deliveries, rejected } = bodies.read(payload);
      const run = new TransactionalRun<Source>(settings, processOptions);
      return run.run(planWork(deliveries, callbacks), callbacks, rejected);
    },
  };
}
