// Specification: service.md 6
import { onAbort } from '../common/abort.ts';
import {
  CallContext,
  Cancellation,
  callWithTimeout,
  type ItemOutcome,
  type WorkContext,
  type WorkItem,
  type WorkPlan,
  type WorkUnit,
} from './callbacks.ts';
import type { ItemIssues } from './flaws.ts';
import type { InboxSettings } from './options.ts';
import { announce, type ProcessOptions, reportOn, type WebhookReport } from './report.ts';
import { type Failure, isLeased, keysOf, type Undone, type WorkSession, type WorkSource } from './session.ts';

/** Pauses between looks at what another process works on. */
const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 1_000;

/**
 * One webhook on its way through an inbox. Each of its items is taken, so that no other webhook of this process works on it;
 * claimed, so that no other process does; handled, and settled. What others hold is looked at again until the time is up.
 */
export class WebhookRun<Extra extends object> {
  readonly #settings: InboxSettings<Extra>;
  readonly #source: WorkSource<Extra>;
  readonly #plan: WorkPlan<Extra>;
  readonly #signal: AbortSignal | undefined;
  /** When to stop waiting for others, on the clock of `performance.now`. */
  readonly #giveUpAt: number;
  #isStoreDown = false;

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
  async run(duplicates: number, rejected: readonly ItemIssues[]): Promise<WebhookReport> {
    const { units, unhandled } = this.#plan;
    try {
      await this.#workOn(units);
      let pauseMs = FIRST_PAUSE_MS;
      while (await this.#waitForOthers(pauseMs)) {
        await this.#workOn(units);
        pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      }
    } finally {
      this.#settle(units, true);
    }
    // With the store down all of this comes again.
    const callbacks = this.#isStoreDown ? {} : this.#plan.callbacks;
    const announced = await announce(this.#settings, { ...this.#plan, callbacks }, this.#signal);
    return reportOn(units, { ...announced, duplicates, rejected, unhandled: unhandled.length });
  }

  /** Takes what is free here, claims it all at once, and handles what is ours then. */
  async #workOn(units: readonly WorkUnit<Extra>[]): Promise<void> {
    const items: WorkItem[] = [];
    const unitsOfItems: WorkUnit<Extra>[] = [];
    for (const unit of units) {
      const countBefore = items.length;
      for (const item of unit.items) if (this.#take(item)) items.push(item);
      if (items.length > countBefore) unitsOfItems.push(unit);
    }
    if (items.length > 0) await this.#handleAll(unitsOfItems, items);
  }

  #take(item: WorkItem): boolean {
    const { holder } = item;
    if (holder === item) return true;
    // Not before it is settled: what is handled and not committed may have to be handled again.
    if (holder?.holder === undefined && holder?.isDone === true) item.outcome = 'duplicate';
    return item.outcome === undefined && this.#source.inFlight.take(item);
  }

  async #handleAll(units: readonly WorkUnit<Extra>[], items: readonly WorkItem[]): Promise<void> {
    const undone = await this.#session(items, async (session) => {
      for (const unit of units) {
        const pending = this.#handle(session, unit, units.length > 1);
        if (pending !== undefined) await pending;
      }
    });
    // One key that another process holds for too long keeps a whole transaction from its keys.
    const isAllBusy =
      this.#source.isWaiting && units.length > 1 && items.every(({ claim }) => claim?.status === 'busy');
    if (undone !== undefined || isAllBusy) await this.#handleAlone(units, items, undone);
    this.#settle(units, false);
  }

  /** Undefined, too, when the store failed, which leaves the items to a redelivery. */
  async #session(
    items: readonly WorkItem[],
    work: (session: WorkSession<Extra>) => Promise<void>,
  ): Promise<Undone | undefined> {
    try {
      return await this.#source.session(items, Math.max(0, this.#giveUpAt - performance.now()), work);
    } catch (error) {
      this.#notifyUnavailable(items, error);
      return undefined;
    }
  }

  /** Handles what is still ours after all that came before; undefined when that is over at once. */
  #handle(
    session: WorkSession<Extra>,
    unit: WorkUnit<Extra>,
    isOneOfMany: boolean,
  ): Promise<void> | undefined {
    const items = oursOf(unit.items);
    const whyStop = this.#whyStop;
    if (items.length === 0) return undefined;
    if (whyStop !== undefined) return conclude(items, whyStop);
    return (
      session.confirm()?.then(
        () => this.#handleConfirmed(session, oursOf(items), isOneOfMany, unit.run),
        (error) => this.#notifyUnavailable(items, error),
      ) ?? this.#handleConfirmed(session, items, isOneOfMany, unit.run)
    );
  }

  #handleConfirmed(
    session: WorkSession<Extra>,
    items: readonly WorkItem[],
    isOneOfMany: boolean,
    callback: WorkUnit<Extra>['run'],
  ): Promise<void> | undefined {
    if (items.length === 0) return undefined;
    const isUndoable = isOneOfMany || items.some(({ attempt }) => attempt >= this.#settings.maxAttempts);
    const finish = (failure: Failure | undefined) =>
      failure === undefined ? conclude(items, 'handled') : this.#fail(items, failure.error, session);
    const attempted = this.#attempt(session, items, isUndoable, callback);
    return attempted instanceof Promise ? attempted.then(finish) : finish(attempted);
  }

  /** Calls a callback for items that are ours. */
  #attempt(
    session: WorkSession<Extra>,
    items: readonly WorkItem[],
    isUndoable: boolean,
    callback: (items: readonly WorkItem[], context: WorkContext & Extra) => unknown,
  ): Promise<Failure | undefined> | Failure | undefined {
    let attempt = 1;
    for (const item of items) attempt = Math.max(attempt, item.attempt);
    const cancellation = new Cancellation(this.#signal);
    return session.attempt(items, isUndoable, cancellation, (extra) => {
      const context = Object.assign(new CallContext(attempt, cancellation), extra);
      return callWithTimeout(() => callback(items, context), this.#settings.handlerTimeoutMs, cancellation);
    });
  }

  /** Lets others here have what we are through with. What another process works on stays ours to look at again until the end. */
  #settle(units: readonly WorkUnit<Extra>[], isEnd: boolean): void {
    for (const { items } of units)
      for (const item of items)
        if (item.holder === item && (isEnd || !isOpen(item))) this.#source.inFlight.settle(item);
  }

  /** Whether there is something to look at again; resolves when it is time to. */
  async #waitForOthers(pauseMs: number): Promise<boolean> {
    const left = this.#plan.units.flatMap(({ items }) => items.filter(isOpen));
    if (this.#whyStop !== undefined) return false;
    const remainingMs = this.#giveUpAt - performance.now();
    const here = left.findLast((item) => item.holder !== item)?.holder;
    const isAsking = !this.#source.isWaiting && left.some((item) => item.holder === item);
    if (remainingMs <= 0 || (here === undefined && !isAsking)) return false;
    let ms = isAsking ? Math.min(pauseMs, remainingMs) : remainingMs;
    if (isAsking)
      // Not sooner and sooner, though a store may say so.
      for (const { claim } of left)
        if (claim?.status === 'busy') ms = Math.min(ms, Math.max(pauseMs / 10, claim.retryAfterMs));
    await this.#waitFor(here, ms);
    return true;
  }

  /** Ends with the time, an abort, or another webhook of this process that is through with its item. */
  #waitFor(holder: WorkItem | undefined, ms: number): Promise<void> {
    return new Promise((resolve) => {
      let unsubscribe = () => {};
      const end = () => {
        clearTimeout(timer);
        unsubscribe();
        resolve();
      };
      const timer = setTimeout(end, ms);
      if (this.#signal !== undefined) unsubscribe = onAbort(this.#signal, end);
      holder?.whenSettled(end);
    });
  }

  /** Why nothing more is begun; undefined when all is well. */
  get #whyStop(): 'interrupted' | 'unavailable' | undefined {
    if (this.#signal?.aborted === true) return 'interrupted';
    // A store that just failed would be waited for again by every further event.
    return this.#isStoreDown ? 'unavailable' : undefined;
  }

  #notifyUnavailable(items: readonly WorkItem[], error: unknown): void {
    this.#isStoreDown = true;
    conclude(items, 'unavailable');
    this.#settings.onError(error, 'claim', keysOf(items));
  }

  /** A transaction took all of its work back: each unit gets one of its own, but for the one that undid it. */
  async #handleAlone(
    units: readonly WorkUnit<Extra>[],
    items: readonly WorkItem[],
    undone: Undone | undefined,
  ): Promise<void> {
    for (const item of items) item.outcome = undefined;
    for (const unit of units) {
      const ours = unit.items.filter((item) => item.holder === item);
      const isCulprit = units.length === 1 || ours.some((item) => undone?.items?.includes(item));
      if (undone !== undefined && isCulprit) {
        await this.#fail(oursOf(ours), undone.error, undefined);
      } else if (this.#whyStop === undefined) {
        // What was dead-lettered was undone, too.
        for (const item of ours) item.isLettered = false;
        await this.#handleAll([unit], ours);
      } else {
        conclude(ours, this.#whyStop);
      }
    }
  }

  /** Gives items back for another try, or to `onDeadLetter` after their last one. Without `session` theirs was undone. */
  async #fail(
    items: readonly WorkItem[],
    error: unknown,
    session: WorkSession<Extra> | undefined,
  ): Promise<void> {
    const operation = items.some(({ isLettered }) => isLettered) ? 'deadLetter' : 'handler';
    this.#settings.onError(error, operation, keysOf(items));
    const isForLetter = ({ attempt, isLettered }: WorkItem) =>
      attempt >= this.#settings.maxAttempts && !isLettered;
    const last = items.filter(isForLetter);
    const others = items.filter((item) => !isForLetter(item));
    await this.#giveBack(others, error, session);
    for (const item of last) {
      const failure = await this.#deadLetter(item, error, session);
      if (failure === undefined) continue;
      this.#settings.onError(failure.error, 'deadLetter', [item.key]);
      await this.#giveBack([item], failure.error, session);
    }
  }

  async #deadLetter(
    item: WorkItem,
    error: unknown,
    session: WorkSession<Extra> | undefined,
  ): Promise<Failure | undefined> {
    item.isLettered = true;
    const { delivery, key, attempt } = item;
    const letter = { delivery, key, attempt, error };
    let failure: Failure | undefined;
    const bring = async (open: WorkSession<Extra>) => {
      await open.confirm();
      if (oursOf([item]).length === 0) return;
      failure = await this.#attempt(open, [item], true, (_, context) =>
        this.#settings.onDeadLetter?.(item.event, Object.assign(context, letter)),
      );
      if (failure === undefined) item.outcome = 'deadLettered';
    };
    if (session !== undefined) await bring(session);
    else failure = (await this.#session([item], bring)) ?? failure;
    return failure;
  }

  /** A callback failed: these are for a redelivery to try again. */
  async #giveBack(
    items: readonly WorkItem[],
    error: unknown,
    session: WorkSession<Extra> | undefined,
  ): Promise<void> {
    if (items.length === 0) return;
    for (const item of items) item.error = error;
    conclude(items, 'failed');
    try {
      await (session ?? this.#source).giveBack(items);
    } catch (cause) {
      this.#settings.onError(cause, 'release', keysOf(items));
    }
  }
}

/** Whether nothing is known yet of what becomes of an item. */
function isOpen({ outcome }: WorkItem): boolean {
  return outcome === undefined;
}

/** What of items is ours to handle; what was done before is marked so. */
function oursOf(items: readonly WorkItem[]): readonly WorkItem[] {
  const open = items.filter(isOpen);
  for (const item of open) if (item.claim?.status === 'done') item.outcome = 'duplicate';
  return open.filter(isLeased);
}

/** Gives items an outcome that have none yet. */
function conclude(items: readonly WorkItem[], outcome: ItemOutcome): undefined {
  for (const item of items) item.outcome ??= outcome;
}
