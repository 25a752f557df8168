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
import { askInterval, askUntil, type PollOptions, type PollSettings, pollOptions } from './options.ts';
import { PolledTracker, type PollRequests, type PollUpdate } from './tracker.ts';
import { createTurns } from './turns.ts';

type NoUpdate = Readonly<Partial<Record<keyof PollUpdate, undefined>>>;

/** An update of the tracker with this `id`, or the `error` that ended its polling, as `trackers.poll` would throw it. */
export type PollManyUpdate = { readonly id: string } & (
  | (PollUpdate & { readonly error?: undefined })
  | (NoUpdate & { readonly error: TrackingError })
);

/** The ids, from a list or an asynchronous source. */
export type TrackerIds = Iterable<string> | AsyncIterable<string>;

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
 * The stream of `trackers.pollMany`. A poll starts only while somebody reads, and at most `concurrency` polls are in flight or
 * not read yet, so a slow reader holds the polls back.
 */
export class TrackerPolls extends PullStream<PollManyUpdate> {
  readonly #context: CallContext;
  readonly #ids: TrackerIds;
  readonly #settings: PollSettings;
  readonly #trackers = new Map<string, PolledTracker>();
  readonly #waiting = new MinHeap<PolledTracker>();
  readonly #timer = new ReschedulableTimer(() => this.#wake());
  readonly #callSite: CallSite;
  #unread: PollOutcome[] = [];
  #underWay = 0;
  #unpolled = 0;
  #isStarting = false;
  #idSource: 'ready' | 'reading' | 'ended' = 'ready';
  #sourceFailure: { readonly error: unknown } | undefined;
  #wake = () => {};

  /** @internal */
  constructor(context: CallContext, ids: TrackerIds, settings: PollSettings, callSite: CallSite) {
    checkIterable('ids', ids);
    super(settings.signal);
    this.#context = context;
    this.#ids = ids;
    this.#settings = settings;
    this.#callSite = callSite;
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
    this.#wake();
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
    this.#wake();
    return true;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollManyUpdate, void, undefined> {
    for await (const { id, update, error } of this.run(signal)) {
      if (update !== undefined) yield { id, ...update };
      else yield { id, error: this.#toTrackingError(id, error) };
    }
  }

  /** @internal */
  async *run(signal: AbortSignal): AsyncGenerator<PollOutcome, void, undefined> {
    const requests = this.#buildRequests(signal);
    const endsAt = systemClock.now() + this.#settings.maxDurationMs;
    const source = new SourceReader(this.#ids);
    const unsubscribe = onAbort(signal, () => {
      this.#timer.clear();
      this.#wake();
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
          yield result;
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
      this.#wake();
    }
  }

  /** A wrong id, or an interval function that throws for it, fails this tracker only. */
  #addFromSource(id: string): void {
    try {
      this.add(id);
    } catch (error) {
      this.#unread.push({ id, error, isLast: true });
      this.#wake();
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
      this.#wake();
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
      this.#wake();
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

  #toTrackingError(id: string, cause: unknown): TrackingError {
    if (isTrackingError(cause)) return cause;
    const error = new TrackingError(`Polling \`${id}\` failed`, { cause });
    pointToCallSite(error, this.#callSite);
    return error;
  }

  async #waitForChange(endsAt: number): Promise<void> {
    const nextDueAt = this.#hasRoom() && !this.#isStarting ? this.#waiting.first?.dueAt : undefined;
    this.#timer.set(Math.min(nextDueAt ?? endsAt, endsAt));
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#timer.clear();
  }
}

/** The stream of `trackers.poll`, which reads a `TrackerPolls` stream of one tracker. */
export class TrackerPoll extends PullStream<PollUpdate> {
  /** The outcome that ended the polling; undefined before, and if `maxDurationMs` ended it. */
  last: PollOutcome | undefined;
  readonly #polls: TrackerPolls;

  constructor(context: CallContext, id: string, options: PollOptions, callSite: CallSite) {
    // This throws for an impossible id at once; without it, the error would come with the first read.
    new PolledTracker(id);
    const settings = { ...checkOptions(pollOptions, options), concurrency: 1 };
    super(options.signal);
    this.#polls = new TrackerPolls(context, [id], settings, callSite);
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollUpdate, void, undefined> {
    for await (const outcome of this.#polls.run(signal)) {
      if (outcome.isLast) this.last = outcome;
      if (outcome.update === undefined) throw outcome.error;
      yield outcome.update;
    }
  }
}

export async function waitUntilStopped(
  context: CallContext,
  id: string,
  options: PollOptions,
  callSite: CallSite,
): Promise<Tracking> {
  const polls = new TrackerPoll(context, id, options, callSite);
  while (!(await polls.next()).done);
  const { update, notReady } = polls.last ?? {};
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
