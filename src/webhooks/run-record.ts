import { checkDelayMs, checkKnownOptions } from '../common/option-checks.ts';
import type { Delivery } from '../schemas/webhook.ts';
import { type Announced, announce } from './announcements.ts';
import type { WebhookCallbacks } from './callbacks.ts';
import type { InboxOperation } from './inbox-options.ts';
import type { ItemIssues } from './issue-log.ts';
import { outcomeOf, type ProcessOptions, type WebhookFailure, type WebhookReport } from './report.ts';
import type { RunSettings } from './run-options.ts';
import type { WorkPlan } from './work-plan.ts';

/** What a record needs of the options of an inbox. */
export type RecordSettings = Pick<RunSettings<unknown>, 'busyBudgetMs' | 'handlerTimeoutMs' | 'onError'>;

type Counted = 'handled' | 'duplicates' | 'deadLettered';
type Undone = 'busy' | 'unavailable' | 'interrupted';

/** What became of one webhook so far. Every kind of inbox writes into it, and the report is read off it. */
export class RunRecord {
  readonly signal: AbortSignal | undefined;
  /** When to stop waiting for others, on the clock of `performance.now`. */
  readonly giveUpAt: number;
  /** Deliveries with events that were not handled before: they are no mere snapshots. */
  readonly touched = new Set<Delivery>();
  readonly #settings: RecordSettings;
  readonly #counts: Record<Counted, number> = { handled: 0, duplicates: 0, deadLettered: 0 };
  readonly #undone: Record<Undone, string[]> = { busy: [], unavailable: [], interrupted: [] };
  readonly #failures: WebhookFailure[] = [];
  #retryAfterMs: number | undefined;

  constructor(settings: RecordSettings, options: ProcessOptions) {
    checkKnownOptions('options', options, ['busyBudgetMs', 'signal'] satisfies (keyof ProcessOptions)[]);
    const { signal, busyBudgetMs = settings.busyBudgetMs } = options;
    checkDelayMs('busyBudgetMs', busyBudgetMs);
    this.#settings = settings;
    this.signal = signal;
    this.giveUpAt = performance.now() + Math.min(settings.busyBudgetMs, busyBudgetMs);
  }

  /** Why nothing more is begun; undefined when all is well. */
  get whyStop(): 'interrupted' | 'unavailable' | undefined {
    if (this.signal?.aborted === true) return 'interrupted';
    // A store that just failed would be waited for again by every further event.
    return this.#undone.unavailable.length > 0 ? 'unavailable' : undefined;
  }

  get retryAfterMs(): number | undefined {
    return this.#retryAfterMs;
  }

  count(what: Counted, by = 1): void {
    this.#counts[what] += by;
  }

  /** Keys of work that is left to a redelivery. */
  leave(why: Undone, keys: Iterable<string>): void {
    for (const key of keys) this.#undone[why].push(key);
  }

  /** Another receiver's lease ends in so many milliseconds; the first one counts. */
  waitFor(retryAfterMs: number): void {
    this.#retryAfterMs = Math.min(retryAfterMs, this.#retryAfterMs ?? retryAfterMs);
  }

  /** What others worked on at the last look does not count any more. */
  lookAgain(): void {
    this.#retryAfterMs = undefined;
  }

  observe(error: unknown, operation: InboxOperation, keys: readonly string[]): void {
    this.#settings.onError(error, { operation, keys });
  }

  /** The store failed before these keys were claimed. */
  lose(keys: readonly string[], error: unknown): void {
    this.observe(error, 'claim', keys);
    this.leave('unavailable', keys);
  }

  /** A callback failed, and its keys are given back. */
  fail(keys: readonly string[], error: unknown): void {
    this.#failures.push({ keys, error });
  }

  /** Tells of the deliveries as such, and reports on everything. */
  async finish(
    plan: Pick<WorkPlan, 'snapshots' | 'unhandled' | 'repeated'>,
    callbacks: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
    rejected: readonly ItemIssues[],
  ): Promise<WebhookReport> {
    // With the store down all of this comes again.
    const isStoreDown = this.#undone.unavailable.length > 0;
    const { snapshots, isCutShort } = isStoreDown
      ? { snapshots: 0, isCutShort: false }
      : await this.#announce(plan, callbacks);
    const { handled, duplicates, deadLettered } = this.#counts;
    const report = {
      handled,
      duplicates: duplicates + plan.repeated,
      deadLettered,
      snapshots,
      unhandled: plan.unhandled.length,
      failures: this.#failures,
      ...this.#undone,
      retryAfterMs: this.#undone.busy.length === 0 ? undefined : this.#retryAfterMs,
      rejected,
    };
    return { outcome: outcomeOf(report, isCutShort), ...report };
  }

  #announce(
    plan: Pick<WorkPlan, 'snapshots' | 'unhandled'>,
    callbacks: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
  ): Promise<Announced> {
    return announce(plan, callbacks, {
      touched: this.touched,
      handlerTimeoutMs: this.#settings.handlerTimeoutMs,
      signal: this.signal,
      onFailure: (error, operation) => {
        this.observe(error, operation, []);
        this.fail([], error);
      },
    });
  }
}
