import { onAbort } from '../common/abort.ts';
import { checkOptions } from '../common/check-options.ts';
import { endAfterCatchingUp, ReschedulableTimer, sleep, systemClock } from '../common/clock.ts';
import { checkIterable, PullStream, SourceReader } from '../common/streams.ts';
import type { Config } from '../config/config.ts';
import { isTrackingError, ResultsNotReadyError, TimeoutError, TrackingError } from '../errors.ts';
import { rememberCallSite } from '../http/call-errors.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { OutageLog } from './outage-log.ts';
import {
  checkTrackerId,
  createPollRequestSettings,
  type PollResult,
  type PollUpdate,
  quietCalls,
} from './poll-once.ts';
import {
  askInterval,
  askUntil,
  type PollManyOptions,
  type PollOptions,
  type PollSettings,
  pollManyOptions,
  pollOptions,
  type TrackerToPoll,
  trackerToPoll,
} from './poll-options.ts';
import { DueList, PolledTracker, type StreamRequestSettings } from './polled-tracker.ts';
import { createTurns } from './turns.ts';

type NoUpdate = Readonly<Partial<Record<keyof PollUpdate, undefined>>>;

/** An update of the tracker with this `id`, or the `error` that ended its polling. If your own function threw, see the `cause`. */
export type PollManyUpdate = { readonly id: string } & (
  | (PollUpdate & { readonly error?: undefined })
  | (NoUpdate & { readonly error: TrackingError })
);

/** Ids, or trackers with options of their own, from a list or an asynchronous source. */
export type TrackersToPoll = Iterable<string | TrackerToPoll> | AsyncIterable<string | TrackerToPoll>;

/** The outcome of a poll for the reader of the stream: an update, or the error that ends the polling of the tracker. */
interface FinishedPoll {
  readonly id: string;
  readonly result?: PollResult;
  readonly error?: unknown;
}

/** Trackers are read in batches, because reading a long list at once would block the event loop. */
const BATCH_SIZE = 500;

/**
 * The stream of `trackers.pollMany`, and of `trackers.poll` for one tracker. A poll starts only while somebody reads, and at most
 * `concurrency` polls are in flight or unread, so a slow reader holds the polls back.
 *
 * The states of a tracker, in this order:
 * - due at a time: it is in `#waiting`
 * - starting: it is the first in `#waiting`, its time has come, and it waits for a turn of `maxPerSecond` (`#isStarting`);
 *   if it is deleted meanwhile, the next due tracker gets the turn
 * - in flight: its requests run, counted by `#inFlight`
 * - unread: its outcome is in `#unread`, and the tracker waits in `#waiting` for its next poll, or is removed if this outcome is
 *   its last
 *
 * A failed poll has no outcome if polling goes on: the tracker goes back to `#waiting` and is due after its interval. `delete` and
 * the end of the stream remove a tracker from every state.
 */
export class TrackerPolls<Item = PollManyUpdate> extends PullStream<Item> {
  readonly #config: Config;
  readonly #source: TrackersToPoll;
  readonly #settings: PollSettings;
  readonly #requestSettings: StreamRequestSettings;
  readonly #toItem: (poll: FinishedPoll) => Item;
  readonly #trackers = new Map<string, PolledTracker>();
  readonly #waiting = new DueList();
  readonly #timer = new ReschedulableTimer(() => this.#wake());
  /** Ends the wait for a change. */
  #wake = () => {};
  #unread: FinishedPoll[] = [];
  #endsAt = Number.POSITIVE_INFINITY;
  #inFlight = 0;
  #neverPolled = 0;
  #isStarting = false;
  #isLatenessReported = false;
  #sourceState: 'ready' | 'reading' | 'ended' = 'ready';
  #sourceFailure: { readonly error: unknown } | undefined;

  /**
   * @param toItem - builds what the reader gets; if it throws, the stream ends with that error
   * @internal
   */
  constructor(
    config: Config,
    source: TrackersToPoll,
    settings: PollSettings,
    toItem: (poll: FinishedPoll) => Item,
  ) {
    checkIterable('ids', source);
    super(settings.signal);
    this.#config = config;
    this.#source = source;
    this.#settings = settings;
    this.#toItem = toItem;
    const { maxPerSecond, maxConsecutiveErrors } = settings;
    const { endSignal } = this;
    const requestSettings = createPollRequestSettings(config, settings, {
      callConfig: quietCalls(config),
      // Every second poll without `isTracked` reads the record, because only the record tells that the service stopped tracking.
      pollsPerRecord: 2,
      takeTurn: maxPerSecond === undefined ? undefined : createTurns(maxPerSecond, endSignal),
    });
    this.#requestSettings = {
      ...requestSettings,
      maxConsecutiveErrors,
      outages: new OutageLog(config.logger),
      endSignal,
    };
  }

  /** The number of trackers that are polled. */
  get size(): number {
    return this.#trackers.size;
  }

  /**
   * Polls one more tracker; its first poll comes after `initialDelayMs`.
   *
   * @param tracker - its `trackerId`, or your `clientTrackerId` with `searchBy`; or an object `{ id, knownKeys, initialDelayMs }`
   * with this id
   * @returns false if the tracker is polled already
   * @throws RequestValidationError for an impossible id; ConfigurationError; TrackingError if the stream has ended
   */
  add(tracker: string | TrackerToPoll): boolean {
    return this.#add(tracker, rememberCallSite(this.#config, this.add));
  }

  #add(tracker: string | TrackerToPoll, config = this.#config): boolean {
    if (this.endSignal.aborted)
      throw new TrackingError('This stream has ended; call `pollMany` to poll another tracker');
    const {
      id,
      knownKeys,
      initialDelayMs = this.#settings.initialDelayMs,
    } = typeof tracker === 'string'
      ? { id: tracker }
      : checkOptions(trackerToPoll, tracker, 'tracker', config);
    checkTrackerId(config, id);
    if (this.#trackers.has(id)) return false;
    const polled = new PolledTracker(id, knownKeys, this.#requestSettings);
    polled.dueAt = systemClock.now() + (initialDelayMs ?? this.#askInterval(polled, config));
    this.#trackers.set(id, polled);
    this.#waiting.add(polled);
    this.#neverPolled += 1;
    this.#wake();
    return true;
  }

  /**
   * Stops polling a tracker; no update of this tracker follows, even if a poll is in flight.
   *
   * @param id - the id as it was given
   * @returns false if the tracker is not polled and has no unread update
   */
  delete(id: string): boolean {
    const tracker = this.#trackers.get(id);
    const unread = this.#unread.filter((poll) => poll.id !== id);
    const wasKnown = tracker !== undefined || unread.length < this.#unread.length;
    if (tracker !== undefined) this.#remove(tracker);
    this.#unread = unread;
    this.#wake();
    return wasKnown;
  }

  protected override async *produce(): AsyncGenerator<Item, void, undefined> {
    const endsAt = systemClock.now() + this.#settings.maxDurationMs;
    this.#endsAt = endsAt;
    // If the process was frozen when the time was up, responses that have arrived are read before the stream ends.
    let readsUntil = endsAt;
    const source = new SourceReader(this.#source);
    const unsubscribe = onAbort(this.endSignal, () => {
      this.#timer.clear();
      this.#wake();
    });
    try {
      for (;;) {
        this.endSignal.throwIfAborted();
        // `#readBatch` and `#startDuePoll` go on in the background, and wake the loop after each change. Both wait at least once
        // before they wake the loop, so `#waitForChange` misses no change.
        if (!this.#isOver()) void this.#readBatch(source);
        if (!this.#isOver() && this.#sourceFailure === undefined) void this.#startDuePoll();
        const poll = this.#unread.shift();
        if (poll !== undefined) {
          yield this.#toItem(poll);
        } else if (this.#sourceFailure !== undefined) throw this.#sourceFailure.error;
        else if (this.#trackers.size === 0 && this.#sourceState === 'ended') return;
        else if (this.#isOver() && (this.#inFlight === 0 || systemClock.now() >= readsUntil)) return;
        else {
          await this.#waitForChange(readsUntil);
          if (readsUntil === endsAt) readsUntil = endAfterCatchingUp(endsAt);
        }
      }
    } finally {
      unsubscribe();
      source.close();
      this.#trackers.clear();
    }
  }

  /** Reads the next batch of trackers, but not while a poll is due and `BATCH_SIZE` or more trackers were never polled. */
  async #readBatch(source: SourceReader<string | TrackerToPoll>): Promise<void> {
    const arePollsBehind = this.#neverPolled >= BATCH_SIZE && this.#isPollDue();
    if (this.#sourceState !== 'ready' || arePollsBehind || !this.#hasRoom()) return;
    this.#sourceState = 'reading';
    try {
      for (let count = 0; count < BATCH_SIZE; count += 1) {
        const { done, value } = await source.next(this.endSignal);
        if (done) {
          this.#sourceState = 'ended';
          return;
        }
        this.#addFromSource(value);
      }
      // Let timers and sockets run before the next batch.
      await sleep(0, this.endSignal);
      this.#sourceState = 'ready';
    } catch (error) {
      this.#sourceFailure = { error };
    } finally {
      this.#wake();
    }
  }

  /** A wrong id or option, or an interval function that throws, fails this tracker only. */
  #addFromSource(tracker: string | TrackerToPoll): void {
    try {
      this.#add(tracker);
    } catch (error) {
      const id = typeof tracker === 'string' ? tracker : String(tracker?.id);
      this.#unread.push({ id, error });
      this.#wake();
    }
  }

  /** True after `maxDurationMs`: no poll starts any more. */
  #isOver(): boolean {
    return systemClock.now() >= this.#endsAt;
  }

  #hasRoom(): boolean {
    return this.#inFlight + this.#unread.length < this.#settings.concurrency;
  }

  #isPollDue(): boolean {
    const { first } = this.#waiting;
    return first !== undefined && first.dueAt <= systemClock.now();
  }

  async #startDuePoll(): Promise<void> {
    if (this.#isStarting || !this.#hasRoom() || !this.#isPollDue()) return;
    this.#isStarting = true;
    try {
      await this.#requestSettings.takeTurn?.();
      const { first } = this.#waiting;
      if (first === undefined || !this.#isPollDue() || this.#isOver()) return;
      this.#unschedule(first);
      this.#inFlight += 1;
      void this.#poll(first);
    } catch {
      // The turn rejects when the stream ends.
    } finally {
      this.#isStarting = false;
      this.#wake();
    }
  }

  async #poll(tracker: PolledTracker): Promise<void> {
    const { id } = tracker;
    const startedAt = systemClock.now();
    const lagMs = startedAt - tracker.dueAt;
    try {
      this.#config.hooks.onPoll?.({ id, lagMs });
      const result = await tracker.poll();
      const isLast = result !== undefined && this.#isLast(result.update);
      const intervalMs = isLast ? 0 : this.#askInterval(tracker, this.#config, result?.update);
      // Check this last, because the caller's functions `until` and `intervalMs` may have deleted the tracker.
      if (!this.#isPolled(tracker)) return;
      if (result !== undefined) this.#unread.push({ id, result });
      if (isLast) this.#remove(tracker);
      else {
        if (lagMs > intervalMs) this.#warnOfLateness(id, lagMs, intervalMs);
        const intervalsPassed = Math.max(1, Math.ceil((systemClock.now() - startedAt) / intervalMs));
        const nextAt = startedAt + intervalsPassed * intervalMs;
        tracker.dueAt = Math.max(nextAt, tracker.waitsUntil);
        this.#waiting.add(tracker);
      }
    } catch (error) {
      if (!this.#isPolled(tracker)) return;
      this.#remove(tracker);
      this.#unread.push({ id, error });
    } finally {
      this.#inFlight -= 1;
      this.#wake();
    }
  }

  #isLast({ stopped, tracking }: PollUpdate): boolean {
    return stopped || (tracking !== undefined && askUntil(this.#settings.until, tracking, this.#config));
  }

  /** False for a deleted tracker, even if its id was added again. */
  #isPolled(tracker: PolledTracker): boolean {
    return this.#trackers.get(tracker.id) === tracker;
  }

  #askInterval(tracker: PolledTracker, config: Config, update?: PollUpdate): number {
    const { intervalMs } = this.#settings;
    if (typeof intervalMs === 'number') return intervalMs;
    return askInterval(intervalMs, tracker.buildContext(update), config);
  }

  #warnOfLateness(id: string, lagMs: number, intervalMs: number): void {
    if (this.#isLatenessReported) return;
    this.#isLatenessReported = true;
    const { maxPerSecond, concurrency } = this.#settings;
    const trackers = this.size;
    // A single tracker needs only one poll at a time.
    const raise = trackers === 1 ? '`intervalMs`' : '`intervalMs`, `concurrency` or `maxPerSecond`';
    this.#config.logger.warn(
      `Polls start more than one interval late; raise ${raise}, or do less work in the loop for each update`,
      { id, lagMs: Math.round(lagMs), intervalMs, trackers, maxPerSecond, concurrency },
    );
  }

  #unschedule(tracker: PolledTracker): void {
    if (this.#waiting.remove(tracker) && tracker.polls === 0) this.#neverPolled -= 1;
  }

  #remove(tracker: PolledTracker): void {
    this.#trackers.delete(tracker.id);
    this.#unschedule(tracker);
    tracker.cancel();
  }

  async #waitForChange(endsAt: number): Promise<void> {
    const mayStart = this.#hasRoom() && !this.#isStarting && !this.#isOver();
    const nextDueAt = mayStart ? this.#waiting.first?.dueAt : undefined;
    this.#timer.set(Math.min(nextDueAt ?? endsAt, endsAt));
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#timer.clear();
  }
}

export function pollMany(config: Config, trackers: TrackersToPoll, options: PollManyOptions): TrackerPolls {
  const settings = checkOptions(pollManyOptions, options, undefined, config);
  return new TrackerPolls(config, trackers, settings, ({ id, result, error }) => {
    if (result !== undefined) return { id, ...result.update };
    if (isTrackingError(error)) return { id, error };
    const failure = new TrackingError(
      `Polling \`${id}\` has ended, because your \`until\`, \`intervalMs\` or \`knownKeys\` threw an error; see \`cause\``,
      { cause: error, callSite: config.callSite },
    );
    return { id, error: failure };
  });
}

export function poll(config: Config, id: string, options: PollOptions): TrackerPolls<PollUpdate> {
  return pollOne(config, id, checkPollOptions(config, id, options), ({ update }) => update);
}

export async function waitUntilStopped(config: Config, id: string, options: PollOptions): Promise<Tracking> {
  const { until, ...settings } = checkPollOptions(config, id, options);
  const polling = { ...settings, until: () => false };
  const updates = pollOne(config, id, polling, ({ update, notReady }) => {
    const { tracker } = update;
    if (tracker && notReady) throw createStoppedError(id, tracker, notReady, config);
    return update;
  });
  for await (const { tracking, stopped } of updates) {
    if (tracking !== undefined && (stopped || askUntil(until, tracking, config))) return tracking;
  }
  const { maxDurationMs } = settings;
  throw new TimeoutError(
    `The service was still tracking \`${id}\` after ${maxDurationMs} ms (\`maxDurationMs\`); wait again, or raise \`maxDurationMs\``,
    { phase: 'backoff', timeoutMs: maxDurationMs },
    { callSite: config.callSite },
  );
}

function checkPollOptions(config: Config, id: string, options: PollOptions) {
  checkTrackerId(config, id);
  return { ...checkOptions(pollOptions, options, undefined, config), concurrency: 1 };
}

/** Polls one tracker. If a failure ends the polling, or if `toUpdate` throws, the stream ends with this error. */
function pollOne(
  config: Config,
  id: string,
  settings: ReturnType<typeof checkPollOptions>,
  toUpdate: (result: PollResult) => PollUpdate,
): TrackerPolls<PollUpdate> {
  const tracker = { id, knownKeys: settings.knownKeys };
  return new TrackerPolls(config, [tracker], settings, ({ result, error }) => {
    if (result === undefined) throw error;
    return toUpdate(result);
  });
}

function createStoppedError(
  id: string,
  tracker: Tracker,
  notReady: ResultsNotReadyError,
  { callSite }: Config,
): ResultsNotReadyError {
  const { headers, body } = notReady;
  const message = `The service has stopped tracking \`${id}\` and has no results for it`;
  // The new error gets the `callId` and the endpoint of the last call, so that the log lines of this call can be found.
  const details = { ...notReady, headers, body, tracker };
  return new ResultsNotReadyError(message, details, { cause: notReady, callSite });
}
