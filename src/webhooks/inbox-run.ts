import { sleep } from '../abort.ts';
import { TrackingError } from '../errors.ts';
import type { Delivery } from '../schemas/webhook.ts';
import { announce } from './announcements.ts';
import type { WebhookCallbacks, WorkContext } from './callbacks.ts';
import type { Claim } from './dedupe-store.ts';
import { GuardedCall } from './guarded-call.ts';
import type { InboxOperation, InboxSettings } from './inbox-options.ts';
import { KeyLease } from './key-lease.ts';
import type { RejectedItem } from './parse.ts';
import { outcomeOf, type ProcessOptions, type WebhookFailure, type WebhookReport } from './report.ts';
import type { WorkItem, WorkPlan, WorkUnit } from './work-plan.ts';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

interface ClaimedItem {
  readonly item: WorkItem;
  readonly attempt: number;
}

/** One call of `process`: claims what a webhook holds, handles what is new, and reports on all of it. */
export class InboxRun {
  readonly #settings: InboxSettings;
  readonly #signal: AbortSignal | undefined;
  readonly #giveUpAt: number;
  readonly #lease: KeyLease;
  readonly #touched = new Set<Delivery>();
  readonly #failures: WebhookFailure[] = [];
  readonly #unavailable: string[] = [];
  readonly #interrupted: string[] = [];
  /** When the leases of others end, in milliseconds from the last look. */
  #retryAfterMs: number | undefined;
  #running: { readonly keys: readonly string[]; readonly call: GuardedCall } | undefined;
  #handled = 0;
  #duplicates = 0;
  #deadLettered = 0;
  #snapshots = 0;

  constructor(settings: InboxSettings, options: ProcessOptions) {
    this.#settings = settings;
    this.#signal = options.signal;
    this.#giveUpAt =
      performance.now() + Math.min(settings.busyBudgetMs, options.busyBudgetMs ?? Number.POSITIVE_INFINITY);
    this.#lease = new KeyLease({
      ...settings,
      onStoreError: (error, operation, keys) => settings.onError(error, { operation, keys }),
      onLost: (key) => this.#abortLost(key),
    });
  }

  async run(
    plan: WorkPlan,
    callbacks: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
    rejected: readonly RejectedItem[],
  ): Promise<WebhookReport> {
    this.#duplicates = plan.repeated;
    let left: readonly WorkUnit[];
    try {
      left = await this.#waitForOthers(await this.#work(plan.units));
      // With the store down all of this comes again.
      if (this.#unavailable.length === 0) this.#snapshots = await this.#announce(plan, callbacks);
    } finally {
      await this.#lease.end();
    }
    const report = {
      handled: this.#handled,
      duplicates: this.#duplicates,
      deadLettered: this.#deadLettered,
      snapshots: this.#snapshots,
      unhandled: plan.unhandled.length,
      failures: this.#failures,
      busy: keysOf(left.flatMap(({ items }) => items)),
      unavailable: this.#unavailable,
      interrupted: this.#interrupted,
      retryAfterMs: left.length === 0 ? undefined : this.#retryAfterMs,
      rejected,
    };
    return { outcome: outcomeOf(report), ...report };
  }

  /** Claims everything at once, then handles what is ours; returns what others work on. */
  async #work(units: readonly WorkUnit[]): Promise<WorkUnit[]> {
    this.#retryAfterMs = undefined;
    const claims = await this.#claim(units.flatMap(({ items }) => items));
    if (claims === undefined) return [];
    const left: WorkUnit[] = [];
    for (const unit of units) {
      const { ours, busy } = this.#sort(unit.items, claims);
      const items = busy.concat(await this.#handle(unit, ours));
      if (items.length > 0) left.push({ ...unit, items });
    }
    return left;
  }

  /** Looks again and again at what others work on, until it is done, ours, or the time is up. */
  async #waitForOthers(units: readonly WorkUnit[]): Promise<readonly WorkUnit[]> {
    let left = units;
    let pauseMs = FIRST_PAUSE_MS;
    while (left.length > 0 && this.#signal?.aborted !== true) {
      const remainingMs = this.#giveUpAt - performance.now();
      if (remainingMs <= 0) break;
      const leaseMs = Math.max(this.#retryAfterMs ?? pauseMs, 1);
      // An abort ends the pause early; the loop then sees it.
      await sleep(Math.min(pauseMs, remainingMs, leaseMs), this.#signal).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      left = await this.#work(left);
    }
    return left;
  }

  async #claim(items: readonly WorkItem[]): Promise<ReadonlyMap<string, Claim> | undefined> {
    const keys = keysOf(items);
    if (keys.length === 0) return new Map();
    try {
      const claims = await this.#lease.claim(keys);
      return new Map(claims.map((claim, index) => [keys[index] ?? '', claim]));
    } catch (error) {
      this.#observe(error, 'claim', keys);
      for (const key of keys) this.#unavailable.push(key);
      return undefined;
    }
  }

  #sort(items: readonly WorkItem[], claims: ReadonlyMap<string, Claim>) {
    const ours: ClaimedItem[] = [];
    const busy: WorkItem[] = [];
    for (const item of items) {
      const claim = claims.get(item.key);
      if (claim?.status === 'done') {
        this.#duplicates += 1;
        continue;
      }
      this.#touched.add(item.delivery);
      if (claim?.status === 'acquired') {
        ours.push({ item, attempt: claim.attempt });
      } else {
        busy.push(item);
        const leaseMs = claim?.retryAfterMs ?? 0;
        this.#retryAfterMs = Math.min(leaseMs, this.#retryAfterMs ?? leaseMs);
      }
    }
    return { ours, busy };
  }

  /** Handles what is still ours after all that came before; returns what others took over. */
  async #handle(unit: WorkUnit, claimed: readonly ClaimedItem[]): Promise<readonly WorkItem[]> {
    const items = claimed.map(({ item }) => item);
    if (items.length === 0) return [];
    if (this.#signal?.aborted === true) {
      for (const { key } of items) this.#interrupted.push(key);
      return [];
    }
    // Without this a slow batch outlives its lease, and its tail is handled twice with no crash at all.
    const claims = await this.#claim(items);
    if (claims === undefined) return [];
    const { ours, busy } = this.#sort(items, claims);
    if (ours.length > 0) await this.#run(unit, ours);
    return busy;
  }

  async #run(unit: WorkUnit, claimed: readonly ClaimedItem[]): Promise<void> {
    const items = claimed.map(({ item }) => item);
    const keys = keysOf(items);
    const attempt = claimed.reduce((most, next) => Math.max(most, next.attempt), 1);
    const call = new GuardedCall();
    this.#running = { keys, call };
    try {
      const context: WorkContext = {
        attempt,
        get signal() {
          return call.signal;
        },
      };
      await call.run(() => unit.run(items, context), this.#settings.handlerTimeoutMs, this.#signal);
    } catch (error) {
      await this.#fail(claimed, error);
      return;
    } finally {
      this.#running = undefined;
    }
    await this.#lease.commit(keys);
    this.#handled += keys.length;
  }

  async #fail(claimed: readonly ClaimedItem[], error: unknown): Promise<void> {
    this.#observe(error, 'handler', keysOf(claimed.map(({ item }) => item)));
    const { maxAttempts, onDeadLetter } = this.#settings;
    const isExhausted = ({ attempt }: ClaimedItem) => onDeadLetter !== undefined && attempt >= maxAttempts;
    const again = claimed.filter((item) => !isExhausted(item));
    if (again.length > 0) await this.#giveBack(keysOf(again.map(({ item }) => item)), error);
    for (const { item, attempt } of claimed.filter(isExhausted)) {
      const { key, event, delivery } = item;
      try {
        await onDeadLetter?.(event, { delivery, key, attempt, error });
      } catch (deadLetterError) {
        this.#observe(deadLetterError, 'deadLetter', [key]);
        await this.#giveBack([key], deadLetterError);
        continue;
      }
      await this.#lease.commit([key]);
      this.#deadLettered += 1;
    }
  }

  async #giveBack(keys: readonly string[], error: unknown): Promise<void> {
    this.#failures.push({ keys, error });
    await this.#lease.release(keys);
  }

  #announce(
    plan: WorkPlan,
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

  #abortLost(key: string): void {
    if (this.#running?.keys.includes(key) !== true) return;
    this.#running.call.abort(new TrackingError('Another receiver took the work over'));
  }

  #observe(error: unknown, operation: InboxOperation, keys: readonly string[]): void {
    this.#settings.onError(error, { operation, keys });
  }
}

function keysOf(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}
