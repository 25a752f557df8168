import { MAX_TIMER_MS, onAbort, systemClock } from '../common/timing.ts';
import { isTrackingError, TrackingError } from '../errors.ts';
import type { Caller } from '../http/caller.ts';
import { DueHeap } from './due-heap.ts';
import { PollBudget } from './poll-budget.ts';
import {
  type PollManyOptions,
  type PollManySettings,
  type PollManyUpdate,
  resolvePollManyOptions,
  type TrackerIds,
} from './poll-many-options.ts';
import { contextOf, isLast, pollOnce } from './poll-once.ts';
import { checkTrackerId, type PollUpdate } from './poll-options.ts';
import { nextPollAt, PollClock } from './poll-schedule.ts';
import { PolledTracker } from './polled-tracker.ts';
import { PullStream } from './pull-stream.ts';
import { checkIterable, SourceReader } from './source-reader.ts';

/**
 * Polls any number of trackers as one stream, with one timer: whoever is due first is polled first.
 *
 * At most `concurrency` polls are under way or wait to be read, so a slow reader holds the polls back. A waiting tracker
 * costs its id, a few numbers and 16 bytes for each event that was seen.
 */
export class TrackerPolls extends PullStream<PollManyUpdate> {
  readonly #caller: Caller;
  readonly #settings: PollManySettings;
  readonly #ids: SourceReader<string>;
  readonly #clock = new PollClock();
  readonly #trackers = new Map<string, PolledTracker>();
  readonly #waiting = new DueHeap<PolledTracker>();
  #unread: PollManyUpdate[] = [];
  #underWay = 0;
  #budget: PollBudget | undefined;
  #isReadingIds = true;
  #readingFailure: { readonly error: unknown } | undefined;
  /** Ends the reader's wait; undefined while the reader does not wait. */
  #wake: (() => void) | undefined;

  /** @internal */
  constructor(caller: Caller, ids: TrackerIds, settings: PollManySettings) {
    super(settings.signal);
    this.#caller = caller;
    this.#settings = settings;
    this.#ids = new SourceReader(ids);
  }

  /** How many trackers are polled. */
  get size(): number {
    return this.#trackers.size;
  }

  /**
   * Polls one more tracker, in O(log n); its first poll comes after `initialDelayMs`.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @returns false when it is polled already
   * @throws RequestValidationError for an id that can't be one; TrackingError when the stream has ended
   */
  add(id: string): boolean {
    if (this.hasEnded)
      throw new TrackingError('Expected a stream that goes on to add an id to, got one that has ended');
    if (this.#trackers.has(id)) return false;
    const tracker = new PolledTracker(checkTrackerId(id));
    const { initialDelayMs, intervalMs } = this.#settings;
    tracker.dueAt = this.#clock.now() + (initialDelayMs ?? intervalMs(contextOf(tracker)));
    this.#trackers.set(id, tracker);
    this.#waiting.push(tracker);
    this.#wake?.();
    return true;
  }

  /**
   * Polls a tracker no more, in O(log n); no update of it comes after this, also when its poll is under way.
   *
   * @param id - the id as it was given
   * @returns false when it was not polled
   */
  delete(id: string): boolean {
    const tracker = this.#trackers.get(id);
    if (tracker === undefined) return false;
    this.#forget(tracker);
    this.#unread = this.#unread.filter((update) => update.id !== id);
    this.#wake?.();
    return true;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollManyUpdate, void, undefined> {
    const endsAt = this.#clock.now() + this.#settings.maxDurationMs;
    const { maxPerSecond } = this.#settings;
    if (maxPerSecond !== undefined) this.#budget = new PollBudget(maxPerSecond, signal);
    void this.#readIds(signal);
    try {
      for (;;) {
        signal.throwIfAborted();
        const isOver = this.#readingFailure !== undefined || this.#clock.now() >= endsAt;
        if (!isOver) this.#startDue(signal);
        const update = this.#unread.shift();
        if (update !== undefined) yield update;
        else if (this.#readingFailure !== undefined) throw this.#readingFailure.error;
        else if (isOver || (this.#trackers.size === 0 && !this.#isReadingIds)) return;
        else await this.#untilSomethingHappens(endsAt, signal);
      }
    } finally {
      this.#end();
    }
  }

  async #readIds(signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        const next = this.#ids.next(signal);
        const read = next instanceof Promise ? await next : next;
        if (read === undefined) break;
        this.#join(read.item);
      }
    } catch (error) {
      this.#readingFailure = { error };
    } finally {
      this.#isReadingIds = false;
      this.#ids.close();
      this.#wake?.();
    }
  }

  /** Adds an id of the source; a wrong id, or a failure of the caller's interval function, is that tracker's alone. */
  #join(id: string): void {
    try {
      this.add(id);
    } catch (cause) {
      this.#fail(id, cause);
    }
  }

  #fail(id: string, cause: unknown): void {
    const error = isTrackingError(cause) ? cause : new TrackingError(`Polling \`${id}\` failed`, { cause });
    this.#unread.push({ id, error });
    this.#wake?.();
  }

  /** Starts the polls that are due, as far as room and budget allow. */
  #startDue(signal: AbortSignal): void {
    if (this.#budget === undefined) {
      while (this.#canStart()) this.#startNext(signal);
    } else if (this.#canStart()) {
      const start = () => {
        // Looked at again: this moment can be long after the question.
        if (this.#canStart()) this.#startNext(signal);
      };
      this.#budget.ask(start, () => this.#wake?.());
    }
  }

  #hasRoom(): boolean {
    return this.#underWay + this.#unread.length < this.#settings.concurrency;
  }

  #canStart(): boolean {
    const { first } = this.#waiting;
    return !this.hasEnded && first !== undefined && first.dueAt <= this.#clock.now() && this.#hasRoom();
  }

  #startNext(signal: AbortSignal): void {
    const tracker = this.#waiting.first;
    if (tracker === undefined) return;
    this.#waiting.remove(tracker);
    this.#underWay += 1;
    void this.#poll(tracker, signal);
  }

  async #poll(tracker: PolledTracker, signal: AbortSignal): Promise<void> {
    const startedAt = this.#clock.now();
    try {
      const update = await tracker.run(signal, (own) => pollOnce(this.#caller, tracker, this.#settings, own));
      const nextAt = this.#nextAt(tracker, startedAt, update);
      // Asked last: it may have been deleted meanwhile, even by the caller's own functions just now.
      if (!tracker.hasLeft) this.#take(tracker, update, nextAt);
    } catch (cause) {
      if (tracker.hasLeft) return;
      this.#forget(tracker);
      this.#fail(tracker.id, cause);
    } finally {
      this.#underWay -= 1;
      this.#wake?.();
    }
  }

  /** When a tracker is due again; undefined after its last update. */
  #nextAt(tracker: PolledTracker, startedAt: number, update: PollUpdate | undefined): number | undefined {
    if (update !== undefined && isLast(update, this.#settings)) return undefined;
    const intervalMs = this.#settings.intervalMs(contextOf(tracker, update));
    return nextPollAt({ dueAt: tracker.dueAt, startedAt, endedAt: this.#clock.now() }, intervalMs);
  }

  #take(tracker: PolledTracker, update: PollUpdate | undefined, nextAt: number | undefined): void {
    if (update !== undefined) this.#unread.push({ id: tracker.id, ...update });
    if (nextAt === undefined) {
      this.#forget(tracker);
    } else {
      tracker.dueAt = nextAt;
      this.#waiting.push(tracker);
    }
  }

  #forget(tracker: PolledTracker): void {
    this.#trackers.delete(tracker.id);
    this.#waiting.remove(tracker);
    tracker.leave();
  }

  /** Waits for a poll to fall due or to end, for ids to come or go, or for the end. */
  #untilSomethingHappens(endsAt: number, signal: AbortSignal): Promise<void> {
    const isFree = this.#hasRoom() && this.#budget?.isAsked !== true;
    const dueAt = (isFree ? this.#waiting.first?.dueAt : undefined) ?? Number.POSITIVE_INFINITY;
    const wakeAt = Math.min(dueAt, endsAt);
    return new Promise((resolve, reject) => {
      let timer: unknown;
      let takeBack = () => {};
      const settle = (done: () => void) => {
        this.#wake = undefined;
        systemClock.clearTimeout(timer);
        takeBack();
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
      takeBack = onAbort(signal, () => settle(() => reject(signal.reason)));
    });
  }

  #end(): void {
    this.#trackers.clear();
    this.#waiting.clear();
  }
}

/** What `trackers.pollMany` does; see there. */
export function pollTrackers(caller: Caller, ids: TrackerIds, options: PollManyOptions): TrackerPolls {
  checkIterable('ids', ids);
  return new TrackerPolls(caller, ids, resolvePollManyOptions(caller.config, options));
}
