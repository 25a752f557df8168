// Specification: service.md 6
import { onAbort } from '../common/timing.ts';
import type { Delivery } from '../schemas/webhook.ts';
import {
  Cancellation,
  callWithTimeout,
  type WorkContext,
  type WorkItem,
  type WorkPlan,
  type WorkUnit,
} from './callbacks.ts';
import type { Claim } from './dedupe-store.ts';
import type { ItemIssues } from './flaws.ts';
import type { DeadLetterContext, InboxSettings } from './options.ts';
import {
  checkpoint,
  outcomeOf,
  type ProcessOptions,
  type ReportDraft,
  type WebhookReport,
} from './report.ts';
import type { Failure, Undone, WorkSession, WorkSource } from './session.ts';

/** Pauses between looks at what another process works on. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 1_000;
/** When to come again for what this process works on, in milliseconds: its end cannot be known. */
const RETRY_AFTER_MS = 1_000;

/** One webhook on its way through an inbox: claimed, handled and reported on. */
export class WebhookRun<Extra extends object> {
  readonly #settings: InboxSettings<Extra>;
  readonly #source: WorkSource<Extra>;
  readonly #plan: WorkPlan<Extra>;
  readonly #report: ReportDraft = {
    outcome: 'done',
    handled: 0,
    duplicates: 0,
    deadLettered: 0,
    snapshots: 0,
    unhandled: 0,
    failures: [],
    busy: [],
    unavailable: [],
    interrupted: [],
    retryAfterMs: undefined,
    rejected: [],
  };
  readonly #signal: AbortSignal | undefined;
  /** When to stop waiting for others, on the clock of `performance.now`. */
  readonly #giveUpAt: number;
  /** The keys that no other webhook of this process is at work on until we are through with them. */
  readonly #owned = new Set<string>();
  /** The keys that are done for good once their session has ended. */
  readonly #done = new Set<string>();
  /** The keys that `onDeadLetter` was called for. */
  readonly #lettered = new Set<string>();
  /** The keys of ours that were done by another webhook of this process. */
  readonly #doneHere = new Set<string>();
  /** Deliveries with events that were not handled before: they are no mere snapshots. */
  readonly #touched = new Set<Delivery>();
  /** Whether a shutdown kept a delivery from its callback: it must come again, or nobody ever sees it. */
  #isCutShort = false;

  constructor(
    settings: InboxSettings<Extra>,
    source: WorkSource<Extra>,
    plan: WorkPlan<Extra>,
    { signal, busyBudgetMs = settings.busyBudgetMs }: ProcessOptions,
  ) {
    this.#settings = settings;
    this.#source = source;
    this.#plan = plan;
    this.#signal = signal;
    this.#giveUpAt = performance.now() + Math.min(settings.busyBudgetMs, busyBudgetMs);
  }

  /** @param rejected - what of the body could not be read */
  async run(duplicates: number, rejected: ItemIssues[]): Promise<WebhookReport> {
    const report = Object.assign(this.#report, { duplicates, rejected });
    report.unhandled = this.#plan.unhandled.length;
    try {
      const left = await this.#waitForOthers(await this.#work(this.#plan.units));
      report.busy = keysOf(left.flatMap(({ items }) => items));
    } finally {
      for (const key of this.#owned) this.#source.inFlight.settle(key, false);
    }
    await this.#notifyOfDeliveries();
    report.outcome = outcomeOf(report, this.#isCutShort);
    return report;
  }

  /** Handles what nobody else works on; returns what others do. */
  async #work(units: readonly WorkUnit<Extra>[]): Promise<readonly WorkUnit<Extra>[]> {
    this.#report.retryAfterMs = undefined;
    const ours: WorkUnit<Extra>[] = [];
    const left: WorkUnit<Extra>[] = [];
    for (const unit of units) {
      const free: WorkItem[] = [];
      const taken: WorkItem[] = [];
      for (const item of unit.items) {
        if (this.#doneHere.has(item.key)) this.#report.duplicates += 1;
        else (this.#own(item.key) ? free : taken).push(item);
      }
      for (const { delivery } of taken) this.#touched.add(delivery);
      if (taken.length > 0) this.#report.retryAfterMs ??= RETRY_AFTER_MS;
      if (free.length > 0) ours.push({ ...unit, items: free });
      if (taken.length > 0) left.push({ ...unit, items: taken });
    }
    return ours.length === 0 ? left : [...(await this.#handleAll(ours)), ...left];
  }

  #own(key: string): boolean {
    if (this.#owned.has(key)) return true;
    const isFree = this.#source.inFlight.take(key);
    if (isFree) this.#owned.add(key);
    return isFree;
  }

  /** Looks again and again at what others work on, until it is done, ours, or the time is up. */
  async #waitForOthers(units: readonly WorkUnit<Extra>[]): Promise<readonly WorkUnit<Extra>[]> {
    let left = units;
    let pauseMs = FIRST_PAUSE_MS;
    while (left.length > 0 && this.#whyStop === undefined) {
      const keys = keysOf(left.flatMap(({ items }) => items));
      const here = keys.filter((key) => !this.#owned.has(key));
      const isAsking = !this.#source.isWaiting && here.length < keys.length;
      const remainingMs = this.#giveUpAt - performance.now();
      if (remainingMs <= 0 || (here.length === 0 && !isAsking)) break;
      const leaseMs = Math.max(this.#report.retryAfterMs ?? pauseMs, 1);
      await this.#waitFor(here, isAsking ? Math.min(pauseMs, remainingMs, leaseMs) : remainingMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      left = await this.#work(left);
    }
    return left;
  }

  /** Ends when another webhook of this process is through with one of the keys, with the time, or with an abort. */
  #waitFor(keys: readonly string[], ms: number): Promise<void> {
    return new Promise((resolve) => {
      const unsubscribers: (() => void)[] = [];
      const end = () => {
        clearTimeout(timer);
        for (const unsubscribe of unsubscribers) unsubscribe();
        resolve();
      };
      const timer = setTimeout(end, ms);
      if (this.#signal !== undefined) unsubscribers.push(onAbort(this.#signal, end));
      for (const key of keys) {
        const listener = (isDone: boolean) => {
          if (isDone) this.#doneHere.add(key);
          end();
        };
        unsubscribers.push(this.#source.inFlight.onSettled(key, listener));
      }
    });
  }

  /** Why nothing more is begun; undefined when all is well. */
  get #whyStop(): 'interrupted' | 'unavailable' | undefined {
    if (this.#signal?.aborted === true) return 'interrupted';
    // A store that just failed would be waited for again by every further event.
    return this.#report.unavailable.length > 0 ? 'unavailable' : undefined;
  }

  /** Claims everything at once, then handles what is ours; returns what other processes work on. */
  async #handleAll(units: readonly WorkUnit<Extra>[]): Promise<readonly WorkUnit<Extra>[]> {
    const items = units.flatMap((unit) => unit.items);
    const left: WorkUnit<Extra>[] = [];
    const undoReport = checkpoint(this.#report);
    let claims: ReadonlyMap<string, Claim> = new Map();
    const undone = await this.#session(items, async (session) => {
      claims = session.claims;
      for (const unit of units) {
        const busy = await this.#handle(session, unit, units.length > 1);
        if (busy.length > 0) left.push({ ...unit, items: busy });
      }
    });
    if (undone !== undefined) {
      undoReport();
      for (const { key } of items) this.#done.delete(key);
      return this.#handleAlone(units, undone, claims);
    }
    // One key that another process holds for too long keeps a whole transaction from its keys.
    const isAllBusy = this.#source.isWaiting && units.length > 1 && left.length === units.length;
    if (isAllBusy) {
      undoReport();
      return this.#handleAlone(units, { error: undefined, keys: undefined }, claims);
    }
    this.#settle(items, left);
    return left;
  }

  /** A transaction took all of its work back: each unit gets one of its own, but for the one that undid it. */
  async #handleAlone(
    units: readonly WorkUnit<Extra>[],
    undone: Undone,
    claims: ReadonlyMap<string, Claim>,
  ): Promise<readonly WorkUnit<Extra>[]> {
    const left: WorkUnit<Extra>[] = [];
    for (const unit of units) {
      const { items } = unit;
      const whyStop = this.#whyStop;
      if (units.length === 1 || items.some(({ key }) => undone.keys?.includes(key))) {
        const { ours, busy } = this.#sort(items, claims);
        const takenOver = await this.#fail(ours, claims, undone.error, undefined);
        const theirs = [...busy, ...takenOver];
        if (theirs.length > 0) left.push({ ...unit, items: theirs });
        this.#settle(items, left);
      } else if (whyStop === undefined) {
        for (const each of await this.#handleAll([unit])) left.push(each);
      } else {
        for (const { key } of items) this.#report[whyStop].push(key);
      }
    }
    return left;
  }

  /** Tells other webhooks of this process what became of keys, but for those that are left. */
  #settle(items: readonly WorkItem[], left: readonly WorkUnit<Extra>[]): void {
    const leftKeys = left.length === 0 ? undefined : new Set(keysOf(left.flatMap((unit) => unit.items)));
    for (const { key } of items) {
      if (leftKeys?.has(key) === true) continue;
      this.#owned.delete(key);
      this.#source.inFlight.settle(key, this.#done.has(key));
    }
  }

  /** Undefined, too, when the store failed, which leaves the keys to a redelivery. */
  async #session(
    items: readonly WorkItem[],
    work: (session: WorkSession<Extra>) => Promise<void>,
  ): Promise<Undone | undefined> {
    const keys = keysOf(items);
    try {
      return await this.#source.session(keys, Math.max(0, this.#giveUpAt - performance.now()), work);
    } catch (error) {
      this.#notifyUnavailable(keys, error);
      return undefined;
    }
  }

  #notifyUnavailable(keys: readonly string[], error: unknown): void {
    this.#settings.onError(error, 'claim', keys);
    for (const key of keys) this.#report.unavailable.push(key);
  }

  /** Handles what is still ours after all that came before; returns what others took over. */
  async #handle(
    session: WorkSession<Extra>,
    unit: WorkUnit<Extra>,
    isOneOfMany: boolean,
  ): Promise<readonly WorkItem[]> {
    const whyStop = this.#whyStop;
    let { ours, busy } = this.#sort(unit.items, session.claims);
    if (ours.length > 0 && whyStop !== undefined) {
      for (const { key } of ours) this.#report[whyStop].push(key);
      return busy;
    }
    const confirmation = ours.length === 0 ? undefined : session.confirm();
    if (confirmation !== undefined)
      ({ ours, busy } = await this.#sortAgain(session, confirmation, ours, busy));
    if (ours.length === 0) return busy;
    const isUndoable = isOneOfMany || ours.some((item) => this.#isLastAttempt(item, session.claims));
    const failure = await this.#attempt(session, ours, isUndoable, unit.run);
    if (failure !== undefined) {
      return [...busy, ...(await this.#fail(ours, session.claims, failure.error, session))];
    }
    this.#report.handled += ours.length;
    for (const { key } of ours) this.#done.add(key);
    return busy;
  }

  async #sortAgain(
    session: WorkSession<Extra>,
    confirmation: Promise<void>,
    items: readonly WorkItem[],
    knownBusy: readonly WorkItem[],
  ): Promise<Sorted> {
    try {
      await confirmation;
    } catch (error) {
      this.#notifyUnavailable(keysOf(items), error);
      return { ours: [], busy: knownBusy };
    }
    const { ours, busy } = this.#sort(items, session.claims);
    return { ours, busy: [...knownBusy, ...busy] };
  }

  #isLastAttempt({ key }: WorkItem, claims: ReadonlyMap<string, Claim>): boolean {
    const { maxAttempts, onDeadLetter } = this.#settings;
    return onDeadLetter !== undefined && attemptOf(claims.get(key)) >= maxAttempts;
  }

  /**
   * Gives items back for another try, or to `onDeadLetter` after their last one; returns what others took over.
   * Without `session` theirs was undone.
   */
  async #fail(
    items: readonly WorkItem[],
    claims: ReadonlyMap<string, Claim>,
    error: unknown,
    session: WorkSession<Extra> | undefined,
  ): Promise<readonly WorkItem[]> {
    const isNotified = items.some(({ key }) => this.#lettered.has(key));
    this.#settings.onError(error, isNotified ? 'deadLetter' : 'handler', keysOf(items));
    const isLast = (item: WorkItem) => this.#isLastAttempt(item, claims) && !this.#lettered.has(item.key);
    await this.#giveBack(
      items.filter((item) => !isLast(item)),
      error,
      session,
    );
    const takenOver: WorkItem[] = [];
    for (const item of items.filter(isLast)) {
      this.#lettered.add(item.key);
      const letter = {
        delivery: item.delivery,
        key: item.key,
        attempt: attemptOf(claims.get(item.key)),
        error,
      };
      const failure = await this.#deadLetter(item, letter, session, takenOver);
      if (failure === undefined) continue;
      this.#settings.onError(failure.error, 'deadLetter', [item.key]);
      await this.#giveBack([item], failure.error, session);
    }
    return takenOver;
  }

  async #deadLetter(
    item: WorkItem,
    letter: DeadLetterContext,
    session: WorkSession<Extra> | undefined,
    takenOver: WorkItem[],
  ): Promise<Failure | undefined> {
    let failure: Failure | undefined;
    const bring = async (open: WorkSession<Extra>) => {
      await open.confirm();
      const { ours, busy } = this.#sort([item], open.claims);
      takenOver.push(...busy);
      if (ours.length === 0) return;
      failure = await this.#attempt(open, ours, true, (_, context) =>
        this.#settings.onDeadLetter?.(item.event, Object.assign(context, letter)),
      );
      if (failure !== undefined) return;
      this.#report.deadLettered += 1;
      this.#done.add(item.key);
    };
    if (session !== undefined) await bring(session);
    else {
      const undone = await this.#session([item], bring);
      failure ??= undone;
    }
    return failure;
  }

  /** Calls a callback for items that are ours. */
  #attempt(
    session: WorkSession<Extra>,
    items: readonly WorkItem[],
    isUndoable: boolean,
    callback: (ours: readonly WorkItem[], context: WorkContext & Extra) => unknown,
  ): Promise<Failure | undefined> {
    let attempt = 1;
    for (const { key } of items) attempt = Math.max(attempt, attemptOf(session.claims.get(key)));
    const cancellation = new Cancellation(this.#signal);
    return session.attempt(keysOf(items), isUndoable, cancellation, (extra) => {
      const context = {
        attempt,
        get signal() {
          return cancellation.signal;
        },
      };
      return this.#call(() => callback(items, Object.assign(context, extra)), cancellation);
    });
  }

  #call(callback: () => unknown, cancellation = new Cancellation(this.#signal)): Promise<void> | undefined {
    return callWithTimeout(callback, this.#settings.handlerTimeoutMs, cancellation);
  }

  /** Counts what was done before, and tells what is ours from what others work on. */
  #sort(items: readonly WorkItem[], claims: ReadonlyMap<string, Claim>): Sorted {
    const report = this.#report;
    const ours: WorkItem[] = [];
    const busy: WorkItem[] = [];
    for (const item of items) {
      const claim = claims.get(item.key);
      if (claim?.status === 'done') {
        report.duplicates += 1;
        this.#done.add(item.key);
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
  async #giveBack(
    items: readonly WorkItem[],
    error: unknown,
    session: WorkSession<Extra> | undefined,
  ): Promise<void> {
    if (items.length === 0) return;
    const keys = keysOf(items);
    this.#report.failures.push({ keys, error });
    try {
      await (session ?? this.#source).giveBack(keys);
    } catch (cause) {
      this.#settings.onError(cause, 'release', keys);
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

interface Sorted {
  readonly ours: readonly WorkItem[];
  /** What other processes work on. */
  readonly busy: readonly WorkItem[];
}

function keysOf(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}

function attemptOf(claim: Claim | undefined): number {
  return claim?.status === 'acquired' ? claim.attempt : 1;
}
