import type { Delivery } from '../schemas/webhook.ts';
import { announce } from '../webhooks/announcements.ts';
import type { WebhookCallbacks } from '../webhooks/callbacks.ts';
import { GuardedCall } from '../webhooks/guarded-call.ts';
import type { InboxOperation, InboxSettings } from '../webhooks/inbox-options.ts';
import type { RejectedItem } from '../webhooks/parse.ts';
import {
  outcomeOf,
  type ProcessOptions,
  type WebhookFailure,
  type WebhookReport,
} from '../webhooks/report.ts';
import type { WorkPlan, WorkUnit } from '../webhooks/work-plan.ts';
import type { InboxTransactions, KnownKeys, TakenKeys, TakenWork } from './inbox-transaction.ts';
import type { Queryable } from './queryable.ts';
import { keysOf, type StoredItem, storedItem } from './stored-item.ts';
import type { TransactionOf, TransactionSource } from './transaction.ts';
import type { TransactionalInboxOptions, TransactionContext } from './transactional-inbox.ts';

/** When to ask again for an event whose holder's transaction may end at any moment, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** Options of a transactional inbox, checked and filled in. */
export interface TransactionalSettings<Source extends TransactionSource>
  extends Pick<InboxSettings, 'busyBudgetMs' | 'handlerTimeoutMs' | 'maxAttempts' | 'onError'> {
  readonly transactions: InboxTransactions;
  readonly onDeadLetter: TransactionalInboxOptions<Source>['onDeadLetter'];
}

/** One call of `process`: a transaction for every unit that is not known to be done, and a report on all of it. */
export class TransactionalRun<Source extends TransactionSource> {
  readonly #settings: TransactionalSettings<Source>;
  readonly #signal: AbortSignal | undefined;
  readonly #giveUpAt: number;
  readonly #touched = new Set<Delivery>();
  readonly #failures: WebhookFailure[] = [];
  readonly #busy: string[] = [];
  readonly #unavailable: string[] = [];
  readonly #interrupted: string[] = [];
  #retryAfterMs: number | undefined;
  #handled = 0;
  #duplicates = 0;
  #deadLettered = 0;
  #snapshots = 0;

  constructor(settings: TransactionalSettings<Source>, options: ProcessOptions) {
    this.#settings = settings;
    this.#signal = options.signal;
    this.#giveUpAt =
      performance.now() + Math.min(settings.busyBudgetMs, options.busyBudgetMs ?? Number.POSITIVE_INFINITY);
  }

  async run(
    plan: WorkPlan<TransactionContext<Source>>,
    callbacks: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
    rejected: readonly RejectedItem[],
  ): Promise<WebhookReport> {
    this.#duplicates = plan.repeated;
    const known = await this.#look(plan.units);
    if (known !== undefined) {
      for (const unit of plan.units) await this.#handle(unit, known);
    }
    // With the database down all of this comes again.
    if (this.#unavailable.length === 0) this.#snapshots = await this.#announce(plan, callbacks);
    const report = {
      handled: this.#handled,
      duplicates: this.#duplicates,
      deadLettered: this.#deadLettered,
      snapshots: this.#snapshots,
      unhandled: plan.unhandled.length,
      failures: this.#failures,
      busy: this.#busy,
      unavailable: this.#unavailable,
      interrupted: this.#interrupted,
      retryAfterMs: this.#retryAfterMs,
      rejected,
    };
    return { outcome: outcomeOf(report), ...report };
  }

  /** One question for the whole webhook, so that a replay of a long history needs no transaction for each of its events. */
  async #look(units: readonly WorkUnit<TransactionContext<Source>>[]): Promise<KnownKeys | undefined> {
    const items = units.flatMap((unit) => unit.items.map(storedItem));
    try {
      return await this.#settings.transactions.look(items.map(({ stored }) => stored));
    } catch (error) {
      this.#lose(items, error);
      return undefined;
    }
  }

  async #handle(unit: WorkUnit<TransactionContext<Source>>, known: KnownKeys): Promise<void> {
    const items = unit.items.map(storedItem);
    const open = items.filter(({ stored }) => !known.done.has(stored));
    this.#duplicates += items.length - open.length;
    if (open.length === 0) return;
    for (const { item } of open) this.#touched.add(item.delivery);
    const leftUndone = this.#whyStop();
    if (leftUndone !== undefined) {
      for (const key of keysOf(open)) leftUndone.push(key);
      return;
    }
    const work: TakenWork = async (transaction, found, discard) => {
      const ours = open.filter(({ stored }) => found.attempts.has(stored));
      const attempt = Math.max(...found.attempts.values());
      const run = (signal: AbortSignal) =>
        unit.run(
          ours.map(({ item }) => item),
          { attempt, signal, transaction: givenBy<Source>(transaction) },
        );
      await this.#guard(run, discard);
    };
    this.#handled += await this.#transact(open, work, (taken, error) => this.#fail(open, taken, error));
  }

  /** The list that takes what is not begun any more; undefined when all is well. */
  #whyStop(): string[] | undefined {
    if (this.#signal?.aborted === true) return this.#interrupted;
    // A database that just failed would be waited for again by every further event.
    return this.#unavailable.length > 0 ? this.#unavailable : undefined;
  }

  /** Runs work on items in a transaction and sorts out what became of them; resolves to how many were done by it. */
  async #transact(
    items: readonly StoredItem[],
    work: TakenWork,
    onFailed: (taken: TakenKeys, error: unknown) => Promise<void>,
  ): Promise<number> {
    const stored = items.map((item) => item.stored);
    const lockTimeoutMs = Math.max(1, Math.ceil(this.#giveUpAt - performance.now()));
    const result = await this.#settings.transactions.run(stored, lockTimeoutMs, work);
    if (result.status === 'busy') this.#leave(items, RETRY_AFTER_MS);
    if (result.status === 'unavailable') this.#lose(items, result.error);
    if (result.status === 'busy' || result.status === 'unavailable') return 0;
    const { done, leased, attempts } = result.taken;
    for (const item of items) {
      if (done.has(item.stored)) this.#duplicates += 1;
      // Whatever is neither done nor ours must count as busy, or nobody would send it again.
      else if (!attempts.has(item.stored)) this.#leave([item], leased.get(item.stored) ?? RETRY_AFTER_MS);
    }
    if (result.status === 'committed') return attempts.size;
    await onFailed(result.taken, result.error);
    return 0;
  }

  /** A handler that is given up on may go on using its connection, which must then not be lent to anyone else. */
  async #guard(run: (signal: AbortSignal) => unknown, discard: () => void): Promise<void> {
    const call = new GuardedCall();
    let hasEnded = false;
    const tracked = async () => {
      try {
        await run(call.signal);
      } finally {
        hasEnded = true;
      }
    };
    try {
      await call.run(tracked, this.#settings.handlerTimeoutMs, this.#signal);
    } finally {
      if (!hasEnded) discard();
    }
  }

  async #fail(items: readonly StoredItem[], { attempts }: TakenKeys, error: unknown): Promise<void> {
    const failed = items.filter(({ stored }) => attempts.has(stored));
    this.#observe(error, 'handler', failed);
    const { maxAttempts, onDeadLetter } = this.#settings;
    const again: StoredItem[] = [];
    for (const item of failed) {
      const attempt = attempts.get(item.stored) ?? 1;
      if (onDeadLetter === undefined || attempt < maxAttempts) again.push(item);
      else await this.#bury(item, { attempt, error });
    }
    if (again.length > 0) await this.#giveBack(again, error);
  }

  async #bury(
    item: StoredItem,
    failure: { readonly attempt: number; readonly error: unknown },
  ): Promise<void> {
    const { key, event, delivery } = item.item;
    const work: TakenWork = (transaction, _, discard) => {
      const context = { delivery, key, ...failure, transaction: givenBy<Source>(transaction) };
      return this.#guard(() => this.#settings.onDeadLetter?.(event, context), discard);
    };
    this.#deadLettered += await this.#transact([item], work, async (_, error) => {
      this.#observe(error, 'deadLetter', [item]);
      await this.#giveBack([item], error);
    });
  }

  async #giveBack(items: readonly StoredItem[], error: unknown): Promise<void> {
    this.#failures.push({ keys: keysOf(items), error });
    try {
      await this.#settings.transactions.countFailure(items.map(({ stored }) => stored));
    } catch (countError) {
      this.#observe(countError, 'release', items);
    }
  }

  #leave(items: readonly StoredItem[], retryAfterMs: number): void {
    for (const key of keysOf(items)) this.#busy.push(key);
    this.#retryAfterMs = Math.min(retryAfterMs, this.#retryAfterMs ?? retryAfterMs);
  }

  #lose(items: readonly StoredItem[], error: unknown): void {
    this.#observe(error, 'claim', items);
    for (const key of keysOf(items)) this.#unavailable.push(key);
  }

  #announce(
    plan: WorkPlan<TransactionContext<Source>>,
    callbacks: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
  ): Promise<number> {
    return announce(plan, callbacks, {
      touched: this.#touched,
      handlerTimeoutMs: this.#settings.handlerTimeoutMs,
      signal: this.#signal,
      onFailure: (error, operation) => {
        this.#observe(error, operation, []);
        this.#failures.push({ keys: [], error });
      },
    });
  }

  #observe(error: unknown, operation: InboxOperation, items: readonly StoredItem[]): void {
    this.#settings.onError(error, { operation, keys: keysOf(items) });
  }
}

function givenBy<Source extends TransactionSource>(transaction: Queryable): TransactionOf<Source> {
  // `TransactionOf` is by definition the type of what this source's `connect` or `transaction` gives, and it came from there.
  return transaction as TransactionOf<Source>;
}
