import { onAbort } from '../common/abort.ts';
import { ReschedulableTimer, sleep, systemClock } from '../common/clock.ts';
import { checkOptions } from '../common/option-checks.ts';
import { checkIterable, PullStream, SourceReader } from '../common/streams.ts';
import { completeRetry, PATIENT_RETRY } from '../config/call-options.ts';
import { isTrackingError, ResultsNotReadyError, TimeoutError, TrackingError } from '../errors.ts';
import { type CallSite, pointToCallSite } from '../http/api-promise.ts';
import type { CallContext } from '../http/execute.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { MinHeap } from './min-heap.ts';
import {
  askInterval,
  askUntil,
  type PollManyOptions,
  type PollOptions,
  type PollSettings,
  pollManyOptions,
  pollOptions,
} from './options.ts';
import { checkTrackerId, PolledTracker, type PollRequests, type PollUpdate } from './tracker.ts';
import { createTurns } from './turns.ts';

type NoUpdate = Readonly<Partial<Record<keyof PollUpdate, undefined>>>;

/** An update of the tracker with this `id`, or the `error` that ended its polling, as `trackers.poll` would throw it. */
export type PollManyUpdate = { readonly id: string } & (
  | (PollUpdate & { readonly error?: undefined })
  | (NoUpdate & { readonly error: TrackingError })
);

/** The ids, from a list or an asynchronous source. */
export type TrackerIds = Iterable<string> | AsyncIterable<string>;

/** What a poll came to, for the reader of the stream. */
interface PollOutcome {
  readonly id: string;
  readonly update?: PollUpdate;
  readonly notReady?: ResultsNotReadyError | undefined;
  readonly error?: unknown;
  readonly isLast: boolean;
}

/** Ids are read in batches, because reading a long list at once would block the event loop. */
const ID_BATCH_SIZE = 500;

/**
 * The stream of `trackers.pollMany`, and of `trackers.poll` for one tracker. A poll starts only while somebody reads, and at most
 * `concurrency` polls are in flight or unread, so a slow reader holds the polls back.
 *
 * A tracker is due at a time (in `#waiting`), then starting (one at a time waits for its turn of `maxPerSecond`), then in flight
 * (counted in `#underWay`). With the response, its outcome becomes unread (in `#unread`), and the tracker is due again, or gone
 * if the outcome is its last. `delete` and the end of the stream remove a tracker from every state.
 */
export class TrackerPolls<Item = PollManyUpdate> extends PullStream<Item> {
  readonly #context: CallContext;
  readonly #ids: TrackerIds;
  readonly #settings: PollSettings;
  readonly #trackers = new Map<string, PolledTracker>();
  readonly #waiting = new MinHeap<PolledTracker>();
  readonly #timer = new ReschedulableTimer(() => this.#changes.wake());
  readonly #callSite: CallSite;
  readonly #toItem: (outcome: PollOutcome) => Item;
  readonly #changes = new Wakeup();
  #unread: PollOutcome[] = [];
  #underWay = 0;
  #unpolled = 0;
  #isStarting = false;
  #idSource: 'ready' | 'reading' | 'ended' = 'ready';
  #sourceFailure: { readonly error: unknown } | undefined;

  /**
   * @param toItem - builds what the reader gets; if it throws, the stream ends with that error
   * @internal
   */
  constructor(
    context: CallContext,
    ids: TrackerIds,
    settings: PollSettings,
    callSite: CallSite,
    toItem: (outcome: PollOutcome) => Item,
  ) {
    checkIterable('ids', ids);
    super(settings.signal);
    this.#context = context;
    this.#ids = ids;
    this.#settings = settings;
    this.#callSite = callSite;
    this.#toItem = toItem;
  }

  /** The number of trackers that are polled. */
  get size(): number {
    return this.#trackers.size;
  }

  /**
   * Polls one more tracker; its first poll comes after `initialDelayMs`.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @returns false if the tracker is polled already
   * @throws RequestValidationError for an impossible id; TrackingError if the stream has ended
   */
  add(id: string): boolean {
    if (this.hasEnded) {
      throw new TrackingError('Expected an open stream for a new id, got one that has ended');
    }
    if (this.#trackers.has(id)) return false;
    const tracker = new PolledTracker(id);
    const delayMs = this.#settings.initialDelayMs ?? this.#askInterval(tracker);
    this.#trackers.set(id, tracker);
    this.#unpolled += 1;
    this.#waiting.push(tracker, systemClock.now() + delayMs);
    this.#changes.wake();
    return true;
  }

  /**
   * Stops polling a tracker; no update of this tracker follows, even if a poll is in flight.
   *
   * @param id - the id as it was given
   * @returns false if the tracker is not polled
   */
  delete(id: string): boolean {
    const tracker = this.#trackers.get(id);
    if (tracker === undefined) return false;
    this.#remove(tracker);
    this.#unread = this.#unread.filter((result) => result.id !== id);
    this.#changes.wake();
    return true;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<Item, void, undefined> {
    const requests = this.#buildRequests(signal);
    const endsAt = systemClock.now() + this.#settings.maxDurationMs;
    const source = new SourceReader(this.#ids);
    const unsubscribe = onAbort(signal, () => {
      this.#timer.clear();
      this.#changes.wake();
    });
    try {
      for (;;) {
        signal.throwIfAborted();
        void this.#readIds(source, signal);
        const isOver = this.#sourceFailure !== undefined || systemClock.now() >= endsAt;
        if (!isOver) void this.#startDuePoll(requests, signal);
        const result = this.#unread.shift();
        if (result !== undefined) {
          pointToCallSite(result.error, this.#callSite);
          yield this.#toItem(result);
        } else if (this.#sourceFailure !== undefined) throw this.#sourceFailure.error;
        else if (isOver || (this.#trackers.size === 0 && this.#idSource === 'ended')) return;
        else await this.#waitForChange(endsAt);
      }
    } finally {
      unsubscribe();
      source.close();
      this.#trackers.clear();
    }
  }

  #buildRequests(signal: AbortSignal): PollRequests {
    const { maxPerSecond, maxConsecutiveErrors, searchBy, timeoutMs, totalTimeoutMs, headers } =
      this.#settings;
    const retry = completeRetry(this.#settings.retry, this.#context.config.retry, PATIENT_RETRY);
    return {
      context: this.#context,
      options: { searchBy, timeoutMs, totalTimeoutMs, headers, retry, priority: 'background' },
      maxConsecutiveErrors,
      takeTurn: maxPerSecond === undefined ? async () => {} : createTurns(maxPerSecond, signal),
      callSite: this.#callSite,
    };
  }

  async #readIds(source: SourceReader<string>, signal: AbortSignal): Promise<void> {
    const arePollsLate = this.#unpolled >= ID_BATCH_SIZE && this.#isPollDue();
    if (this.#idSource !== 'ready' || arePollsLate || !this.#hasRoom()) return;
    this.#idSource = 'reading';
    try {
      for (let count = 0; count < ID_BATCH_SIZE; count += 1) {
        const { done, value } = await source.next(signal);
        if (done) {
          this.#idSource = 'ended';
          return;
        }
        this.#addFromSource(value);
      }
      // Let timers and sockets run before the next batch.
      await sleep(0, signal);
      this.#idSource = 'ready';
    } catch (error) {
      this.#sourceFailure = { error };
    } finally {
      this.#changes.wake();
    }
  }

  /** A wrong id, or an interval function that throws for it, fails this tracker only. */
  #addFromSource(id: string): void {
    try {
      this.add(id);
    } catch (error) {
      this.#unread.push({ id, error, isLast: true });
      this.#changes.wake();
    }
  }

  #hasRoom(): boolean {
    return this.#underWay + this.#unread.length < this.#settings.concurrency;
  }

  #isPollDue(): boolean {
    const { first } = this.#waiting;
    return first !== undefined && first.dueAt <= systemClock.now();
  }

  /** Only one poll at a time waits for the throttle, so that a tracker deleted meanwhile does not use up `maxPerSecond`. */
  async #startDuePoll(requests: PollRequests, signal: AbortSignal): Promise<void> {
    if (this.#isStarting || !this.#hasRoom() || !this.#isPollDue()) return;
    this.#isStarting = true;
    try {
      await requests.takeTurn();
      const { first } = this.#waiting;
      if (first === undefined || !this.#isPollDue()) return;
      this.#unschedule(first);
      this.#underWay += 1;
      void this.#poll(first, requests, signal);
    } catch {
      // The throttle rejects when the stream ends.
    } finally {
      this.#isStarting = false;
      this.#changes.wake();
    }
  }

  async #poll(tracker: PolledTracker, requests: PollRequests, signal: AbortSignal): Promise<void> {
    const { id } = tracker;
    const startedAt = systemClock.now();
    try {
      this.#context.config.hooks.onPoll?.({ id, lagMs: startedAt - tracker.dueAt });
      const outcome = await tracker.poll(requests, signal);
      const update = outcome?.update;
      const isLast =
        update !== undefined &&
        (update.stopped ||
          (update.tracking !== undefined && askUntil(this.#settings.until, update.tracking)));
      const intervalMs = isLast ? 0 : this.#askInterval(tracker, update);
      // Check this last, because the caller's functions `until` and `intervalMs` may have deleted the tracker.
      if (!this.#isPolled(tracker)) return;
      if (outcome !== undefined) this.#unread.push({ id, isLast, ...outcome });
      if (isLast) this.#remove(tracker);
      else {
        const intervalsPassed = Math.max(1, Math.ceil((systemClock.now() - startedAt) / intervalMs));
        this.#waiting.push(tracker, startedAt + intervalsPassed * intervalMs);
      }
    } catch (error) {
      if (!this.#isPolled(tracker)) return;
      this.#remove(tracker);
      this.#unread.push({ id, error, isLast: true });
    } finally {
      this.#underWay -= 1;
      this.#changes.wake();
    }
  }

  /** False for a deleted tracker, even if its id was added again. */
  #isPolled(tracker: PolledTracker): boolean {
    return this.#trackers.get(tracker.id) === tracker;
  }

  #askInterval(tracker: PolledTracker, update?: PollUpdate): number {
    const { intervalMs } = this.#settings;
    if (typeof intervalMs === 'number') return intervalMs;
    return askInterval(intervalMs, tracker.buildContext(update));
  }

  #unschedule(tracker: PolledTracker): void {
    if (this.#waiting.remove(tracker) && tracker.polls === 0) this.#unpolled -= 1;
  }

  #remove(tracker: PolledTracker): void {
    this.#trackers.delete(tracker.id);
    this.#unschedule(tracker);
    tracker.cancel();
  }

  async #waitForChange(endsAt: number): Promise<void> {
    const nextDueAt = this.#hasRoom() && !this.#isStarting ? this.#waiting.first?.dueAt : undefined;
    this.#timer.set(Math.min(nextDueAt ?? endsAt, endsAt));
    await this.#changes.wait();
    this.#timer.clear();
  }
}

/** Ends the wait of the one reader. */
class Wakeup {
  #resolve = () => {};

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  wake(): void {
    this.#resolve();
  }
}

export function pollMany(
  context: CallContext,
  ids: TrackerIds,
  options: PollManyOptions,
  callSite: CallSite,
): TrackerPolls {
  const settings = checkOptions(pollManyOptions, options);
  return new TrackerPolls(context, ids, settings, callSite, ({ id, update, error }) => {
    if (update !== undefined) return { id, ...update };
    if (isTrackingError(error)) return { id, error };
    const failure = new TrackingError(`Polling \`${id}\` failed`, { cause: error });
    pointToCallSite(failure, callSite);
    return { id, error: failure };
  });
}

/** Polls one tracker; the stream ends with the failure that ends its polling. */
export function pollOne<Item = PollUpdate>(
  context: CallContext,
  id: string,
  options: PollOptions,
  callSite: CallSite,
  toItem: (outcome: PollOutcome & { readonly update: PollUpdate }) => Item,
): TrackerPolls<Item> {
  checkTrackerId(id);
  const settings = { ...checkOptions(pollOptions, options), concurrency: 1 };
  return new TrackerPolls(context, [id], settings, callSite, ({ update, ...outcome }) => {
    if (update === undefined) throw outcome.error;
    return toItem({ ...outcome, update });
  });
}

export async function waitUntilStopped(
  context: CallContext,
  id: string,
  options: PollOptions,
  callSite: CallSite,
): Promise<Tracking> {
  let last: PollOutcome | undefined;
  for await (const outcome of pollOne(context, id, options, callSite, (outcome) => outcome)) {
    last = outcome.isLast ? outcome : undefined;
  }
  const { update, notReady } = last ?? {};
  if (update?.tracking !== undefined) return update.tracking;
  const { maxDurationMs = Number.POSITIVE_INFINITY } = options;
  let error: TrackingError = new TimeoutError(
    `Ran out of \`maxDurationMs\` (${maxDurationMs} ms) while the service was still tracking`,
    { phase: 'backoff', timeoutMs: maxDurationMs },
  );
  if (update?.tracker !== undefined && notReady !== undefined) {
    const { headers, body } = notReady;
    const message = `The service has stopped tracking \`${id}\`, and has no results for it`;
    const details = { ...notReady, headers, body, tracker: update.tracker };
    error = new ResultsNotReadyError(message, details, { cause: notReady });
  }
  pointToCallSite(error, callSite);
  throw error;
}
