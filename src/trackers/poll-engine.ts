import pThrottle from 'p-throttle';
import { onAbort } from '../common/abort.ts';
import { MAX_TIMER_MS, systemClock } from '../common/clock.ts';
import type { CallContext } from '../http/execute.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { DueHeap, nextPollAt, PollClock } from './poll-schedule.ts';
import {
  type PollContext,
  PolledTracker,
  type PollOutcome,
  type PollRun,
  type PollUpdate,
  type TrackerPollSettings,
} from './polled-tracker.ts';
import { SourceReader } from './streams.ts';

/** How trackers are polled; the options of polls, checked and completed. */
export interface PollSettings extends TrackerPollSettings {
  readonly intervalMs: (context: PollContext) => number;
  /** Undefined: the interval. */
  readonly initialDelayMs: number | undefined;
  readonly maxDurationMs: number;
  readonly until: (tracking: Tracking) => boolean;
  /** Undefined: as many as there is room for. */
  readonly maxPerSecond?: number | undefined;
  /** Most polls that are under way or wait to be read. */
  readonly concurrency: number;
  /** True where trackers may join until the end, so that having nothing to do is no reason to end before. */
  readonly canGrow: boolean;
}

/** An update of a tracker, or why it is polled no more. */
export type PollResult =
  | ({ readonly id: string; readonly failure?: undefined } & PollOutcome)
  | { readonly id: string; readonly update?: undefined; readonly failure: { readonly error: unknown } };

/**
 * Polls any number of trackers with one timer: whoever is due first is polled first.
 *
 * A poll is started only while somebody reads, and at most `concurrency` polls are under way or wait to be read, so a slow
 * reader holds the polls back. A waiting tracker costs its id, a few numbers and 16 bytes for each event that was seen.
 */
export class PollEngine {
  readonly #settings: PollSettings;
  readonly #run: PollRun;
  readonly #clock = new PollClock();
  readonly #trackers = new Map<string, PolledTracker>();
  readonly #waiting = new DueHeap<PolledTracker>();
  #unread: PollResult[] = [];
  #underWay = 0;
  #endsAt = Number.POSITIVE_INFINITY;
  #isReadingIds = true;
  #readingFailure: { readonly error: unknown } | undefined;
  /** Starts a poll as soon as the budget allows it; undefined without a budget. */
  #throttled: ((start: () => void) => Promise<void>) | undefined;
  #isThrottled = false;
  /** Ends the reader's wait; undefined while the reader does not wait. */
  #wake: (() => void) | undefined;

  constructor(context: CallContext, settings: PollSettings) {
    this.#settings = settings;
    this.#run = { context, settings, turn: async () => await this.#throttled?.(() => {}) };
  }

  get size(): number {
    return this.#trackers.size;
  }

  /** False when it is polled already; throws for an id that can't be one, and what the interval function throws. */
  add(id: string): boolean {
    if (this.#trackers.has(id)) return false;
    const tracker = new PolledTracker(id);
    const { initialDelayMs, intervalMs } = this.#settings;
    const dueAt = this.#clock.now() + (initialDelayMs ?? intervalMs(tracker.context()));
    this.#trackers.set(id, tracker);
    this.#schedule(tracker, dueAt);
    this.#wake?.();
    return true;
  }

  /** Polls a tracker no more, in O(log n); nothing of it comes after this. */
  delete(id: string): boolean {
    const tracker = this.#trackers.get(id);
    if (tracker === undefined) return false;
    this.#forget(tracker);
    this.#unread = this.#unread.filter((result) => result.id !== id);
    this.#wake?.();
    return true;
  }

  /** Polls until no tracker is left or time is over; rejects with what `ids` throws, or the signal's reason. */
  async *run(
    ids: Iterable<string> | AsyncIterable<string>,
    signal: AbortSignal,
  ): AsyncGenerator<PollResult, void, undefined> {
    const { maxDurationMs, maxPerSecond } = this.#settings;
    this.#endsAt = this.#clock.now() + maxDurationMs;
    if (maxPerSecond !== undefined) this.#throttled = throttle(maxPerSecond, signal);
    void this.#readIds(ids, signal);
    try {
      for (;;) {
        signal.throwIfAborted();
        const isOver = this.#readingFailure !== undefined || this.#clock.now() >= this.#endsAt;
        if (!isOver) this.#startDue(signal);
        const result = this.#unread.shift();
        if (result !== undefined) yield result;
        else if (this.#readingFailure !== undefined) throw this.#readingFailure.error;
        else if (isOver || (this.#trackers.size === 0 && !this.#isReadingIds)) return;
        else await this.#untilSomethingHappens(signal);
      }
    } finally {
      this.#trackers.clear();
      this.#waiting.clear();
    }
  }

  async #readIds(ids: Iterable<string> | AsyncIterable<string>, signal: AbortSignal): Promise<void> {
    const source = new SourceReader(ids);
    try {
      for (;;) {
        const next = source.next(signal);
        const read = next instanceof Promise ? await next : next;
        if (read === undefined) break;
        this.#join(read.item);
      }
    } catch (error) {
      this.#readingFailure = { error };
    } finally {
      this.#isReadingIds = false;
      source.close();
      this.#wake?.();
    }
  }

  /** Adds an id of the source; a wrong id, or a failure of the context's interval function, is that tracker's alone. */
  #join(id: string): void {
    try {
      this.add(id);
    } catch (error) {
      this.#unread.push({ id, failure: { error } });
      this.#wake?.();
    }
  }

  /** Starts the polls that are due, as far as room and budget allow. */
  #startDue(signal: AbortSignal): void {
    if (this.#throttled === undefined) {
      while (this.#canStart(signal)) this.#startNext(signal);
      return;
    }
    // One waits for the budget at a time, so that who is polled next is decided when its moment has come.
    if (this.#isThrottled || !this.#canStart(signal)) return;
    this.#isThrottled = true;
    const start = () => {
      if (this.#canStart(signal)) this.#startNext(signal);
    };
    const goOn = () => {
      this.#isThrottled = false;
      this.#wake?.();
    };
    this.#throttled(start).then(goOn, goOn);
  }

  #hasRoom(): boolean {
    return this.#underWay + this.#unread.length < this.#settings.concurrency;
  }

  #canStart(signal: AbortSignal): boolean {
    const { first } = this.#waiting;
    return !signal.aborted && first !== undefined && first.dueAt <= this.#clock.now() && this.#hasRoom();
  }

  #startNext(signal: AbortSignal): void {
    const tracker = this.#waiting.first;
    if (tracker === undefined) return;
    this.#waiting.remove(tracker);
    this.#underWay += 1;
    void this.#poll(tracker, signal);
  }

  async #poll(tracker: PolledTracker, signal: AbortSignal): Promise<void> {
    const { id, dueAt } = tracker;
    const startedAt = this.#clock.now();
    this.#run.context.config.hooks.onPoll?.({ id, lagMs: startedAt - dueAt });
    try {
      const outcome = await tracker.poll(this.#run, signal);
      const update = outcome?.update;
      const isLast = update !== undefined && this.#isLast(update);
      const intervalMs = isLast ? 0 : this.#settings.intervalMs(tracker.context(update));
      // Asked last: it may have been deleted meanwhile, even by the context's own functions just now.
      if (tracker.hasLeft) return;
      if (outcome !== undefined) this.#unread.push({ id, ...outcome });
      if (isLast) this.#forget(tracker);
      else this.#schedule(tracker, nextPollAt({ dueAt, startedAt, endedAt: this.#clock.now() }, intervalMs));
    } catch (error) {
      if (tracker.hasLeft) return;
      this.#forget(tracker);
      this.#unread.push({ id, failure: { error } });
    } finally {
      this.#underWay -= 1;
      this.#wake?.();
    }
  }

  #isLast({ tracking, stopped }: PollUpdate): boolean {
    return stopped || (tracking !== undefined && this.#settings.until(tracking));
  }

  #schedule(tracker: PolledTracker, dueAt: number): void {
    if (dueAt >= this.#endsAt && !this.#settings.canGrow) {
      this.#forget(tracker);
    } else {
      tracker.dueAt = dueAt;
      this.#waiting.push(tracker);
    }
  }

  #forget(tracker: PolledTracker): void {
    this.#trackers.delete(tracker.id);
    this.#waiting.remove(tracker);
    tracker.leave();
  }

  /** Waits for a poll to fall due or to end, for ids to come or go, or for the end. */
  #untilSomethingHappens(signal: AbortSignal): Promise<void> {
    const canStartLater = this.#hasRoom() && !this.#isThrottled;
    const dueAt = (canStartLater ? this.#waiting.first?.dueAt : undefined) ?? Number.POSITIVE_INFINITY;
    const wakeAt = Math.min(dueAt, this.#endsAt);
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      let unsubscribe = () => {};
      const settle = (done: () => void) => {
        this.#wake = undefined;
        systemClock.clearTimeout(timer);
        unsubscribe();
        done();
      };
      this.#wake = () => settle(resolve);
      if (wakeAt !== Number.POSITIVE_INFINITY) {
        const delayMs = Math.min(Math.ceil(wakeAt - this.#clock.now()), MAX_TIMER_MS);
        const firesAt = this.#clock.now() + delayMs;
        timer = systemClock.setTimeout(() => {
          this.#clock.reach(Math.min(wakeAt, firesAt));
          this.#wake?.();
        }, delayMs);
      }
      unsubscribe = onAbort(signal, () => settle(() => reject(signal.reason)));
    });
  }
}

/**
 * Spreads what it starts evenly over each second.
 *
 * p-throttle goes by the wall clock. When that is set back, it would wait until the clock is there again, which can take
 * hours; then a new one takes over.
 */
function throttle(maxPerSecond: number, signal: AbortSignal): (start: () => void) => Promise<void> {
  const interval = 1000 / maxPerSecond;
  let last = { wallMs: 0, ms: Number.NEGATIVE_INFINITY };
  const newThrottle = () =>
    pThrottle({ limit: 1, interval, strict: true, signal })((start: () => void) => {
      last = { wallMs: systemClock.wallNow(), ms: systemClock.now() };
      start();
    });
  let throttled = newThrottle();
  return async (start) => {
    if (systemClock.wallNow() < last.wallMs) {
      const isTooEarly = systemClock.now() - last.ms < interval;
      throttled = newThrottle();
      // Uses up the turn that the new one gives at once.
      if (isTooEarly) void throttled(() => {});
    }
    await throttled(start);
  };
}
