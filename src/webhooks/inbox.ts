// Specification: service.md 6; public contract
import { z } from 'zod';
import { checkOptions, delayOption, type OptionShape } from '../common/option-checks.ts';
import { sleep } from '../common/timing.ts';
import type { Delivery } from '../schemas/webhook.ts';
import {
  callWithTimeout,
  type EventHandler,
  planWork,
  toCallbacks,
  type WebhookCallbacks,
  type WorkContext,
  type WorkItem,
  type WorkPlan,
  type WorkUnit,
} from './callbacks.ts';
import type { Claim } from './dedupe-store.ts';
import type { ItemIssues } from './flaws.ts';
import { type ClaimedWork, KeyLease, type WorkClaims, type WorkResult } from './lease.ts';
import {
  type InboxSettings,
  resolveInboxOptions,
  type StoreInboxSettings,
  type WebhookInboxOptions,
} from './options.ts';
import { parseWebhook } from './parse.ts';
import {
  outcomeOf,
  type ProcessOptions,
  type ReportDraft,
  type WebhookProcessor,
  type WebhookReport,
} from './report.ts';

const processOptions = z.strictObject({
  busyBudgetMs: delayOption.optional(),
  signal: z.custom<AbortSignal>().optional(),
} satisfies OptionShape<ProcessOptions>);

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Handles every event of the webhooks once, however often they are delivered and to however many receivers. What fails
 * or is cut off by a crash is left to the sender, which delivers it again.
 *
 * @example
 * const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
 * const report = await inbox.process(body, async (event, { delivery }) => {
 *   await saveEvent(delivery.tracker.trackerId, event);
 * });
 * // report.outcome: 'done'; answer with 200 only then
 */
export class WebhookInbox implements WebhookProcessor {
  readonly #settings: StoreInboxSettings;

  /**
   * @param options - see `WebhookInboxOptions`
   * @throws ConfigurationError when an option is missing or makes no sense
   */
  constructor(options: WebhookInboxOptions) {
    this.#settings = resolveInboxOptions(options);
  }

  /**
   * Handles what is new in a webhook body, oldest first, and reports on all of it.
   * A callback that fails does not stop the others; its events are given back for a redelivery.
   *
   * @param payload - the body: text, UTF-8 bytes, or JSON that is parsed already
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns what became of it; only the outcomes `done` and `rejected` leave nothing to redeliver
   * @throws WebhookParseError when the body is not UTF-8 JSON; ConfigurationError when the callbacks or the options make no sense
   */
  async process(
    payload: unknown,
    callbacks: EventHandler | WebhookCallbacks,
    options: ProcessOptions = {},
  ): Promise<WebhookReport> {
    return processWebhook(this.#settings, new KeyLease(this.#settings), payload, callbacks, options);
  }
}

/** What every kind of inbox does with a webhook; `claims` sees to it that each event is handled once. */
export async function processWebhook<Extra extends object>(
  settings: InboxSettings<Extra>,
  claims: WorkClaims<Extra>,
  payload: unknown,
  callbacks: EventHandler<Extra> | WebhookCallbacks<Extra>,
  options: ProcessOptions,
): Promise<WebhookReport> {
  const checked = toCallbacks(callbacks);
  const { deliveries, duplicates, rejected, mismatched } = parseWebhook(payload);
  settings.flaws.report(rejected, mismatched);
  return new WebhookRun(settings, claims, planWork(deliveries, checked), duplicates, rejected, options).run();
}

/** One webhook on its way through an inbox: claimed, handled and reported on. */
class WebhookRun<Extra extends object> {
  readonly #settings: InboxSettings<Extra>;
  readonly #claims: WorkClaims<Extra>;
  readonly #plan: WorkPlan<Extra>;
  readonly #report: ReportDraft;
  readonly #signal: AbortSignal | undefined;
  /** When to stop waiting for others, on the clock of `performance.now`. */
  readonly #giveUpAt: number;
  /** Deliveries with events that were not handled before: they are no mere snapshots. */
  readonly #touched = new Set<Delivery>();
  /** Whether a shutdown kept a delivery from its callback: it must come again, or nobody ever sees it. */
  #isCutShort = false;

  constructor(
    settings: InboxSettings<Extra>,
    claims: WorkClaims<Extra>,
    plan: WorkPlan<Extra>,
    duplicates: number,
    rejected: ItemIssues[],
    options: ProcessOptions,
  ) {
    const { signal, busyBudgetMs = settings.busyBudgetMs } = checkOptions(processOptions, options);
    this.#settings = settings;
    this.#claims = claims;
    this.#plan = plan;
    this.#signal = signal;
    this.#giveUpAt = performance.now() + Math.min(settings.busyBudgetMs, busyBudgetMs);
    this.#report = {
      outcome: 'done',
      handled: 0,
      duplicates,
      deadLettered: 0,
      snapshots: 0,
      unhandled: plan.unhandled.length,
      failures: [],
      busy: [],
      unavailable: [],
      interrupted: [],
      retryAfterMs: undefined,
      rejected,
    };
  }

  async run(): Promise<WebhookReport> {
    const report = this.#report;
    try {
      let left = await this.#work(this.#plan.units);
      if (!this.#claims.isWaiting) left = await this.#waitForOthers(left);
      report.busy = keysOf(left.flatMap(({ items }) => items));
      await this.#notifyOfDeliveries();
      report.outcome = outcomeOf(report, this.#isCutShort);
      return report;
    } finally {
      const undone = this.#claims.end();
      if (undone.length > 0) await this.#release(undone);
    }
  }

  /** Claims everything at once, then handles what is ours; returns what others work on. */
  async #work(units: readonly WorkUnit<Extra>[]): Promise<readonly WorkUnit<Extra>[]> {
    if (units.length === 0) return [];
    this.#report.retryAfterMs = undefined;
    const keys = keysOf(units.flatMap(({ items }) => items));
    const claims = await this.#orUnavailable(keys, this.#claims.claim(keys));
    if (claims === undefined) return [];
    const left: WorkUnit<Extra>[] = [];
    for (const unit of units) {
      const { ours, busy } = this.#sort(unit.items, claims);
      const items = ours.length === 0 ? busy : [...busy, ...(await this.#handle(unit, ours))];
      if (items.length > 0) left.push({ ...unit, items });
    }
    return left;
  }

  /** Looks again and again at what others work on, until it is done, ours, or the time is up. */
  async #waitForOthers(units: readonly WorkUnit<Extra>[]): Promise<readonly WorkUnit<Extra>[]> {
    let left = units;
    let pauseMs = FIRST_PAUSE_MS;
    while (left.length > 0 && this.#whyStop === undefined) {
      const remainingMs = this.#giveUpAt - performance.now();
      if (remainingMs <= 0) break;
      const leaseMs = Math.max(this.#report.retryAfterMs ?? pauseMs, 1);
      // An abort ends the pause early; the loop then sees it.
      await sleep(Math.min(pauseMs, remainingMs, leaseMs), this.#signal).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      left = await this.#work(left);
    }
    return left;
  }

  /** Why nothing more is begun; undefined when all is well. */
  get #whyStop(): 'interrupted' | 'unavailable' | undefined {
    if (this.#signal?.aborted === true) return 'interrupted';
    // A store that just failed would be waited for again by every further event.
    return this.#report.unavailable.length > 0 ? 'unavailable' : undefined;
  }

  /** Handles what is still ours after all that came before; returns what others took over. */
  async #handle(unit: WorkUnit<Extra>, items: readonly WorkItem[]): Promise<readonly WorkItem[]> {
    const whyStop = this.#whyStop;
    if (whyStop !== undefined) {
      for (const { key } of items) this.#report[whyStop].push(key);
      return [];
    }
    const { ours, busy, claims, failure } = await this.#attempt(items, (mine, extra, context) =>
      unit.run(mine, Object.assign(context, extra)),
    );
    if (failure !== undefined) return [...busy, ...(await this.#fail(ours, claims, failure.error))];
    this.#report.handled += ours.length;
    return busy;
  }

  /** Gives items back for another try, or to `onDeadLetter` after their last one; returns what others took over. */
  async #fail(
    items: readonly WorkItem[],
    claims: ReadonlyMap<string, Claim>,
    error: unknown,
  ): Promise<readonly WorkItem[]> {
    const { maxAttempts, onDeadLetter, onError } = this.#settings;
    onError(error, 'handler', keysOf(items));
    const isLast = ({ key }: WorkItem) =>
      onDeadLetter !== undefined && attemptOf(claims.get(key)) >= maxAttempts;
    await this.#giveBack(
      items.filter((item) => !isLast(item)),
      error,
    );
    const takenOver: WorkItem[] = [];
    for (const item of items.filter(isLast)) {
      const { key, event, delivery } = item;
      const letter = { delivery, key, attempt: attemptOf(claims.get(key)), error };
      const { ours, busy, failure } = await this.#attempt([item], (_, extra) =>
        onDeadLetter?.(event, { ...letter, ...extra }),
      );
      for (const lost of busy) takenOver.push(lost);
      if (failure === undefined) {
        this.#report.deadLettered += ours.length;
      } else {
        onError(failure.error, 'deadLetter', [key]);
        await this.#giveBack([item], failure.error);
      }
    }
    return takenOver;
  }

  /** Calls a callback for those of the items that are ours, under their claims. */
  async #attempt(
    items: readonly WorkItem[],
    callback: (ours: readonly WorkItem[], extra: Extra, context: WorkContext) => unknown,
  ): Promise<WorkResult & { readonly ours: readonly WorkItem[]; readonly busy: readonly WorkItem[] }> {
    const work: ClaimedWork<Extra> = (claims, extra, controller) => {
      const ours = items.filter(({ key }) => claims.get(key)?.status === 'acquired');
      let attempt = 1;
      for (const claim of claims.values()) attempt = Math.max(attempt, attemptOf(claim));
      // The signal is made on first use: most callbacks never look, and it is costly.
      const context = {
        attempt,
        get signal() {
          return controller.signal;
        },
      };
      return this.#call(() => callback(ours, extra, context), controller);
    };
    const keys = keysOf(items);
    const waitMs = this.#giveUpAt - performance.now();
    const result = await this.#orUnavailable(keys, this.#claims.handle(keys, work, waitMs));
    if (result === undefined) return { ours: [], busy: [], claims: new Map() };
    return { ...result, ...this.#sort(items, result.claims) };
  }

  #call(callback: () => unknown, controller = new AbortController()): Promise<void> {
    return callWithTimeout(callback, this.#settings.handlerTimeoutMs, this.#signal, controller);
  }

  /** Counts what was done before, and tells what is ours from what others work on. */
  #sort(items: readonly WorkItem[], claims: ReadonlyMap<string, Claim>) {
    const report = this.#report;
    const ours: WorkItem[] = [];
    const busy: WorkItem[] = [];
    for (const item of items) {
      const claim = claims.get(item.key);
      if (claim?.status === 'done') {
        report.duplicates += 1;
        continue;
      }
      this.#touched.add(item.delivery);
      if (claim?.status === 'busy') {
        busy.push(item);
        report.retryAfterMs = Math.min(claim.retryAfterMs, report.retryAfterMs ?? claim.retryAfterMs);
      } else {
        ours.push(item);
      }
    }
    return { ours, busy };
  }

  /** A callback failed: these are for a redelivery to try again. */
  async #giveBack(items: readonly WorkItem[], error: unknown): Promise<void> {
    if (items.length === 0) return;
    const keys = keysOf(items);
    this.#report.failures.push({ keys, error });
    await this.#release(keys);
  }

  async #release(keys: readonly string[]): Promise<void> {
    try {
      await this.#claims.release(keys);
    } catch (error) {
      this.#settings.onError(error, 'release', keys);
    }
  }

  /** Undefined when the store failed, which leaves the keys to a redelivery. */
  async #orUnavailable<Result>(keys: readonly string[], asked: Promise<Result>): Promise<Result | undefined> {
    try {
      return await asked;
    } catch (error) {
      this.#settings.onError(error, 'claim', keys);
      for (const key of keys) this.#report.unavailable.push(key);
      return undefined;
    }
  }

  /** Calls `onSnapshot` and `onUnhandled`, which are not deduplicated. */
  async #notifyOfDeliveries(): Promise<void> {
    // With the store down all of this comes again.
    if (this.#report.unavailable.length > 0) return;
    const { snapshots, unhandled, callbacks } = this.#plan;
    const { onSnapshot, onUnhandled } = callbacks;
    for (const delivery of onSnapshot === undefined ? [] : snapshots) {
      if (this.#touched.has(delivery)) continue;
      if (await this.#notify(() => onSnapshot?.(delivery), 'snapshot')) this.#report.snapshots += 1;
    }
    for (const delivery of onUnhandled === undefined ? [] : unhandled) {
      await this.#notify(() => onUnhandled?.(delivery), 'unhandled');
    }
  }

  async #notify(callback: () => unknown, operation: 'snapshot' | 'unhandled'): Promise<boolean> {
    if (this.#signal?.aborted === true) {
      this.#isCutShort = true;
      return false;
    }
    try {
      await this.#call(callback);
      return true;
    } catch (error) {
      this.#settings.onError(error, operation, []);
      this.#report.failures.push({ keys: [], error });
      return false;
    }
  }
}

function keysOf(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}

function attemptOf(claim: Claim | undefined): number {
  return claim?.status === 'acquired' ? claim.attempt : 1;
}
