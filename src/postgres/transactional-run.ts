import { highest } from '../webhooks/attempts.ts';
import type { WebhookCallbacks } from '../webhooks/callbacks.ts';
import { GuardedCall } from '../webhooks/guarded-call.ts';
import type { ItemIssues } from '../webhooks/issue-log.ts';
import type { ProcessOptions, WebhookReport } from '../webhooks/report.ts';
import type { RunSettings } from '../webhooks/run-options.ts';
import { RunRecord } from '../webhooks/run-record.ts';
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
  extends RunSettings<NonNullable<TransactionalInboxOptions<Source>['onDeadLetter']>> {
  readonly transactions: InboxTransactions;
}

/** One call of `process`: a transaction for every unit that is not known to be done, and a report on all of it. */
export class TransactionalRun<Source extends TransactionSource> {
  readonly #settings: TransactionalSettings<Source>;
  readonly #record: RunRecord;

  constructor(settings: TransactionalSettings<Source>, options: ProcessOptions) {
    this.#settings = settings;
    this.#record = new RunRecord(settings, options);
  }

  async run(
    plan: WorkPlan<TransactionContext<Source>>,
    callbacks: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
    rejected: readonly ItemIssues[],
  ): Promise<WebhookReport> {
    const known = await this.#look(plan.units);
    if (known !== undefined) {
      for (const unit of plan.units) await this.#handle(unit, known);
    }
    return this.#record.finish(plan, callbacks, rejected);
  }

  /** One question for the whole webhook, so that a replay of a long history needs no transaction for each of its events. */
  async #look(units: readonly WorkUnit<TransactionContext<Source>>[]): Promise<KnownKeys | undefined> {
    const items = units.flatMap((unit) => unit.items.map(storedItem));
    try {
      return await this.#settings.transactions.look(items.map(({ stored }) => stored));
    } catch (error) {
      this.#record.lose(keysOf(items), error);
      return undefined;
    }
  }

  async #handle(unit: WorkUnit<TransactionContext<Source>>, known: KnownKeys): Promise<void> {
    const items = unit.items.map(storedItem);
    const open = items.filter(({ stored }) => !known.done.has(stored));
    this.#record.count('duplicates', items.length - open.length);
    if (open.length === 0) return;
    for (const { item } of open) this.#record.touched.add(item.delivery);
    const { whyStop } = this.#record;
    if (whyStop !== undefined) {
      this.#record.leave(whyStop, keysOf(open));
      return;
    }
    const work: TakenWork = async (transaction, found, discard) => {
      const ours = open.filter(({ stored }) => found.attempts.has(stored));
      const attempt = highest(found.attempts.values());
      const run = (signal: AbortSignal) =>
        unit.run(
          ours.map(({ item }) => item),
          { attempt, signal, transaction: givenBy<Source>(transaction) },
        );
      await this.#guard(run, discard);
    };
    this.#record.count(
      'handled',
      await this.#transact(open, work, (taken, error) => this.#fail(open, taken, error)),
    );
  }

  /** Runs work on items in a transaction and sorts out what became of them; resolves to how many were done by it. */
  async #transact(
    items: readonly StoredItem[],
    work: TakenWork,
    onFailed: (taken: TakenKeys, error: unknown) => Promise<void>,
  ): Promise<number> {
    const stored = items.map((item) => item.stored);
    const lockTimeoutMs = Math.max(1, Math.ceil(this.#record.giveUpAt - performance.now()));
    const result = await this.#settings.transactions.run(stored, lockTimeoutMs, work);
    if (result.status === 'busy') this.#leave(items, RETRY_AFTER_MS);
    if (result.status === 'unavailable') this.#record.lose(keysOf(items), result.error);
    if (result.status === 'busy' || result.status === 'unavailable') return 0;
    const { done, leased, attempts } = result.taken;
    for (const item of items) {
      if (done.has(item.stored)) this.#record.count('duplicates');
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
      await call.run(tracked, this.#settings.handlerTimeoutMs, this.#record.signal);
    } finally {
      if (!hasEnded) discard();
    }
  }

  async #fail(items: readonly StoredItem[], { attempts }: TakenKeys, error: unknown): Promise<void> {
    const failed = items.filter(({ stored }) => attempts.has(stored));
    this.#record.observe(error, 'handler', keysOf(failed));
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
    const buried = await this.#transact([item], work, async (_, error) => {
      this.#record.observe(error, 'deadLetter', [key]);
      await this.#giveBack([item], error);
    });
    this.#record.count('deadLettered', buried);
  }

  async #giveBack(items: readonly StoredItem[], error: unknown): Promise<void> {
    this.#record.fail(keysOf(items), error);
    try {
      await this.#settings.transactions.countFailure(items.map(({ stored }) => stored));
    } catch (countError) {
      this.#record.observe(countError, 'release', keysOf(items));
    }
  }

  #leave(items: readonly StoredItem[], retryAfterMs: number): void {
    this.#record.leave('busy', keysOf(items));
    this.#record.waitFor(retryAfterMs);
  }
}

function givenBy<Source extends TransactionSource>(transaction: Queryable): TransactionOf<Source> {
  // `TransactionOf` is by definition the type of what this source's `connect` or `transaction` gives, and it came from there.
  return transaction as TransactionOf<Source>;
}
