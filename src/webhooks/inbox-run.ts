import { sleep } from '../common/timing.ts';
import { TrackingError } from '../errors.ts';
import { highest } from './attempts.ts';
import type { WebhookCallbacks, WorkContext } from './callbacks.ts';
import type { Claim } from './dedupe-store.ts';
import { GuardedCall } from './guarded-call.ts';
import type { InboxSettings } from './inbox-options.ts';
import type { ItemIssues } from './issue-log.ts';
import { KeyLease } from './key-lease.ts';
import type { ProcessOptions, WebhookReport } from './report.ts';
import { RunRecord } from './run-record.ts';
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
  readonly #record: RunRecord;
  readonly #lease: KeyLease;
  #running: { readonly keys: readonly string[]; readonly call: GuardedCall } | undefined;

  constructor(settings: InboxSettings, options: ProcessOptions) {
    this.#settings = settings;
    this.#record = new RunRecord(settings, options);
    this.#lease = new KeyLease({
      ...settings,
      onStoreError: (error, operation, keys) => this.#record.observe(error, operation, keys),
      onLost: (key) => this.#abortLost(key),
    });
  }

  async run(
    plan: WorkPlan,
    callbacks: Pick<WebhookCallbacks, 'onSnapshot' | 'onUnhandled'>,
    rejected: readonly ItemIssues[],
  ): Promise<WebhookReport> {
    try {
      const left = await this.#waitForOthers(await this.#work(plan.units));
      this.#record.leave('busy', keysOf(left.flatMap(({ items }) => items)));
      return await this.#record.finish(plan, callbacks, rejected);
    } finally {
      await this.#lease.end();
    }
  }

  /** Claims everything at once, then handles what is ours; returns what others work on. */
  async #work(units: readonly WorkUnit[]): Promise<WorkUnit[]> {
    this.#record.lookAgain();
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
    while (left.length > 0 && this.#record.whyStop === undefined) {
      const remainingMs = this.#record.giveUpAt - performance.now();
      if (remainingMs <= 0) break;
      const leaseMs = Math.max(this.#record.retryAfterMs ?? pauseMs, 1);
      // An abort ends the pause early; the loop then sees it.
      await sleep(Math.min(pauseMs, remainingMs, leaseMs), this.#record.signal).catch(() => {});
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
      return new Map(keys.flatMap((key, index) => claimOf(key, claims[index])));
    } catch (error) {
      this.#record.lose(keys, error);
      return undefined;
    }
  }

  #sort(items: readonly WorkItem[], claims: ReadonlyMap<string, Claim>) {
    const ours: ClaimedItem[] = [];
    const busy: WorkItem[] = [];
    for (const item of items) {
      const claim = claims.get(item.key);
      if (claim?.status === 'done') {
        this.#record.count('duplicates');
        continue;
      }
      this.#record.touched.add(item.delivery);
      if (claim?.status === 'acquired') {
        ours.push({ item, attempt: claim.attempt });
      } else {
        busy.push(item);
        this.#record.waitFor(claim?.retryAfterMs ?? 0);
      }
    }
    return { ours, busy };
  }

  /** Handles what is still ours after all that came before; returns what others took over. */
  async #handle(unit: WorkUnit, claimed: readonly ClaimedItem[]): Promise<readonly WorkItem[]> {
    const items = claimed.map(({ item }) => item);
    if (items.length === 0) return [];
    const { whyStop } = this.#record;
    if (whyStop !== undefined) {
      this.#record.leave(whyStop, keysOf(items));
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
    const call = new GuardedCall();
    this.#running = { keys, call };
    try {
      const context: WorkContext = {
        attempt: highest(claimed.map((one) => one.attempt)),
        get signal() {
          return call.signal;
        },
      };
      await call.run(() => unit.run(items, context), this.#settings.handlerTimeoutMs, this.#record.signal);
    } catch (error) {
      await this.#fail(claimed, error);
      return;
    } finally {
      this.#running = undefined;
    }
    await this.#lease.commit(keys);
    this.#record.count('handled', keys.length);
  }

  async #fail(claimed: readonly ClaimedItem[], error: unknown): Promise<void> {
    this.#record.observe(error, 'handler', keysOf(claimed.map(({ item }) => item)));
    const { maxAttempts, onDeadLetter } = this.#settings;
    const isExhausted = ({ attempt }: ClaimedItem) => onDeadLetter !== undefined && attempt >= maxAttempts;
    const again = claimed.filter((item) => !isExhausted(item));
    if (again.length > 0) await this.#giveBack(keysOf(again.map(({ item }) => item)), error);
    for (const { item, attempt } of claimed.filter(isExhausted)) {
      const { key, event, delivery } = item;
      try {
        const bury = () => onDeadLetter?.(event, { delivery, key, attempt, error });
        await new GuardedCall().run(bury, this.#settings.handlerTimeoutMs, this.#record.signal);
      } catch (deadLetterError) {
        this.#record.observe(deadLetterError, 'deadLetter', [key]);
        await this.#giveBack([key], deadLetterError);
        continue;
      }
      await this.#lease.commit([key]);
      this.#record.count('deadLettered');
    }
  }

  async #giveBack(keys: readonly string[], error: unknown): Promise<void> {
    this.#record.fail(keys, error);
    await this.#lease.release(keys);
  }

  #abortLost(key: string): void {
    if (this.#running?.keys.includes(key) !== true) return;
    this.#running.call.abort(new TrackingError('Another receiver took the work over'));
  }
}

/** An entry of a map; a key without a claim gets none, and counts as busy. */
function claimOf(key: string, claim: Claim | undefined): [string, Claim][] {
  return claim === undefined ? [] : [[key, claim]];
}

function keysOf(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}
