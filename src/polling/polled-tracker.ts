import * as z from 'zod';
import { isAccountError } from '../bulk/outcomes.ts';
import { linkedController } from '../common/abort.ts';
import type { Config } from '../config/config.ts';
import { endpoints } from '../endpoints.ts';
import {
  ConfigurationError,
  NotFoundError,
  RequestValidationError,
  ResultsNotReadyError,
  TrackingError,
} from '../errors.ts';
import { buildEventKey, canonicalJson } from '../events/keys.ts';
import type { CallSite } from '../http/api-promise.ts';
import { callEndpoint } from '../http/execute.ts';
import { checkInput } from '../http/prepare.ts';
import { formatError, type LogFields } from '../observability/logger.ts';
import type { TrackerRequestOptions } from '../options.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { type Tracker, trackerIdentifier } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';

/** The argument of an interval function. */
export interface PollContext {
  /** The id as it was given. */
  readonly id: string;
  /** Polls of this tracker so far, failed ones included; 0 before the first. */
  readonly poll: number;
  /** The results of the last poll; undefined before the first poll, without results, and after an error. */
  readonly tracking: Tracking | undefined;
  /** The new events of these results. */
  readonly newEvents: readonly TrackingEvent[];
  /** Polls that failed since the last success. */
  readonly errorsInARow: number;
}

/** One poll of a tracker. */
export interface PollUpdate {
  /** The results; undefined while there are none. */
  readonly tracking: Tracking | undefined;
  /** The events that no earlier update had and whose key is not in `knownKeys`, in the service's order. */
  readonly newEvents: TrackingEvent[];
  /**
   * The key of each new event, as webhooks give it. Store it when you have handled the event, and pass it as one of the
   * `knownKeys` after a restart.
   */
  readonly keys: string[];
  /** Number of the poll, from 1; failed ones count. */
  readonly poll: number;
  /** True when the service has stopped tracking (`isTracked: false`; docs/service.md 5.1): this update is the last. */
  readonly stopped: boolean;
  /**
   * The tracker's record in the results. If they lack `isTracked`, every second poll reads it separately (docs/service.md 5.3).
   * Undefined if a poll gets no record.
   */
  readonly tracker: Tracker | undefined;
}

/** The result of one poll. */
export interface PollResult {
  readonly update: PollUpdate;
  /** The reason why there are no results, if the service gave one. */
  readonly notReady: ResultsNotReadyError | undefined;
}

type PollEndpoint = 'trackers.results' | 'trackers.get';

/** The settings that the requests of all trackers of a stream share. */
export interface PollRequests {
  readonly config: Config;
  readonly options: TrackerRequestOptions;
  readonly maxConsecutiveErrors: number;
  readonly takeTurn: () => Promise<void>;
  /** Aborts when the stream ends. */
  readonly endSignal: AbortSignal;
  readonly callSite: CallSite;
}

/** Without results nothing carries `isTracked`, so every second empty poll reads the tracker itself (docs/service.md 5.3). */
const MAX_POLLS_WITHOUT_IS_TRACKED = 2;

/** Refuses an impossible id, because the first poll would report it only after the interval. */
export function checkTrackerId(config: Config, id: unknown): asserts id is string {
  // The schema that names the field is built for wrong ids only, because building it costs more than the check.
  if (!trackerIdentifier.safeParse(id).success)
    checkInput(config, z.object({ id: trackerIdentifier }), { id }, 'id');
}

/** A tracker and the state of its polling. Between two polls it has no promise, timer or listener. */
export class PolledTracker {
  readonly id: string;
  dueAt = 0;
  polls = 0;
  #errorsInARow = 0;
  #pollsWithoutIsTracked = 0;
  /** Ids, which take less memory than keys. Created with the first results, because most trackers of a long list have none. */
  #seenEvents: Set<string> | undefined;
  /** The keys of `knownKeys` whose events no poll has read yet. */
  #knownKeys: Set<string> | undefined;
  #controller: AbortController | undefined;
  readonly #requests: PollRequests;

  constructor(id: string, knownKeys: Set<string> | undefined, requests: PollRequests) {
    this.id = id;
    this.#knownKeys = knownKeys;
    this.#requests = requests;
  }

  cancel(): void {
    this.#controller?.abort(new Error('The tracker is no longer polled'));
  }

  buildContext(update?: PollUpdate): PollContext {
    return {
      id: this.id,
      poll: this.polls,
      tracking: update?.tracking,
      newEvents: update?.newEvents ?? [],
      errorsInARow: this.#errorsInARow,
    };
  }

  /** Returns undefined if the poll failed and another poll may follow; throws the failure that ends the polling. */
  async poll(): Promise<PollResult | undefined> {
    const { controller, unsubscribe } = linkedController(this.#requests.endSignal);
    this.#controller = controller;
    this.polls += 1;
    try {
      const { tracking, notReady } = await this.#readResults(controller.signal);
      const tracker = await this.#readTracker(tracking?.tracker ?? undefined, controller.signal);
      this.#errorsInARow = 0;
      const { newEvents, keys } = this.#takeNewEvents(tracking);
      const stopped = tracker?.isTracked === false;
      return { update: { tracking, newEvents, keys, poll: this.polls, stopped, tracker }, notReady };
    } catch (error) {
      controller.signal.throwIfAborted();
      this.#countFailure(error);
      return undefined;
    } finally {
      unsubscribe();
      this.#controller = undefined;
    }
  }

  #call<Name extends PollEndpoint>(name: Name, signal: AbortSignal) {
    const { config, options, callSite } = this.#requests;
    const input = { params: { trackerId: this.id }, query: { searchBy: options.searchBy } };
    return callEndpoint(config, name, input, { ...options, signal }, callSite);
  }

  async #readResults(signal: AbortSignal) {
    try {
      return { tracking: await this.#call('trackers.results', signal), notReady: undefined };
    } catch (error) {
      if (error instanceof ResultsNotReadyError) return { tracking: undefined, notReady: error };
      throw error;
    }
  }

  /** Returns the record in the results. If it lacks `isTracked`, every second poll reads the record itself. */
  async #readTracker(tracker: Tracker | undefined, signal: AbortSignal): Promise<Tracker | undefined> {
    const hasIsTracked = typeof tracker?.isTracked === 'boolean';
    this.#pollsWithoutIsTracked = hasIsTracked ? 0 : this.#pollsWithoutIsTracked + 1;
    if (this.#pollsWithoutIsTracked < MAX_POLLS_WITHOUT_IS_TRACKED) return tracker;
    this.#pollsWithoutIsTracked = 0;
    try {
      await this.#requests.takeTurn();
      return await this.#call('trackers.get', signal);
    } catch (error) {
      if (signal.aborted || isPermanent(error)) throw error;
      const message = 'Could not read a tracker; a later poll tries again';
      this.#warn('trackers.get', message, { reason: formatError(error) });
      return tracker;
    }
  }

  #takeNewEvents(tracking: Tracking | undefined) {
    const { searchBy } = this.#requests.options;
    const newEvents: TrackingEvent[] = [];
    const keys: string[] = [];
    // With `invalidResponse: 'keep'` any field may have another type.
    for (const event of Array.isArray(tracking?.events) ? tracking.events : []) {
      this.#seenEvents ??= new Set();
      const id: unknown = event?.eventId;
      const identity = typeof id === 'string' && id !== '' ? id : canonicalJson(event);
      if (this.#seenEvents.has(identity)) continue;
      this.#seenEvents.add(identity);
      const polledIds =
        searchBy === 'clientTrackerId' ? { clientTrackerId: this.id } : { trackerId: this.id };
      const record = tracking?.tracker;
      const key = buildEventKey(typeof record?.trackerId === 'string' ? record : polledIds, event);
      if (this.#knownKeys?.delete(key)) continue;
      newEvents.push(event);
      keys.push(key);
    }
    return { newEvents, keys };
  }

  #countFailure(error: unknown): void {
    this.#errorsInARow += 1;
    if (isPermanent(error)) throw error;
    const errorsInARow = this.#errorsInARow;
    // A key or plan that has worked once may work again, e.g. after a rotation.
    const hasWorked = this.polls > errorsInARow;
    if (!hasWorked && (isAccountError(error) || error instanceof ConfigurationError)) throw error;
    const reason = formatError(error);
    if (errorsInARow >= this.#requests.maxConsecutiveErrors) {
      const errors = errorsInARow === 1 ? '1 error' : `${errorsInARow} errors in a row`;
      const message = `Polling \`${this.id}\` has ended after ${errors} (\`maxConsecutiveErrors\`); the last error: ${reason}`;
      throw new TrackingError(message, { cause: error });
    }
    const message = 'A poll failed; the tracker will be polled again';
    this.#warn('trackers.results', message, { poll: this.polls, errorsInARow, reason });
  }

  #warn(endpoint: PollEndpoint, message: string, fields: LogFields): void {
    const { method, path } = endpoints[endpoint];
    this.#requests.config.logger.warn(message, { endpoint, method, path, id: this.id, ...fields });
  }
}

/** Trackers sorted by the time of their next poll; those due at the same time keep the order in which they were added. */
export class DueList {
  readonly #trackers: PolledTracker[] = [];

  get first(): PolledTracker | undefined {
    return this.#trackers[0];
  }

  add(tracker: PolledTracker): void {
    this.#trackers.splice(this.#findEnd(tracker.dueAt), 0, tracker);
  }

  /** Returns false for a tracker that is not in the list. */
  remove(tracker: PolledTracker): boolean {
    const index =
      tracker === this.first ? 0 : this.#trackers.indexOf(tracker, this.#findEnd(tracker.dueAt - 1));
    if (index >= 0) this.#trackers.splice(index, 1);
    return index >= 0;
  }

  /** Finds the end of the trackers that are due at `dueAt` or before. Most of them are added at the end, so it looks there first. */
  #findEnd(dueAt: number): number {
    let low = 0;
    let high = this.#trackers.length;
    if ((this.#trackers.at(-1)?.dueAt ?? dueAt) <= dueAt) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#trackers[middle]?.dueAt ?? dueAt) <= dueAt) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** True if every later poll would fail, too. A 404 without a code comes from a gateway, so later polls may succeed. */
function isPermanent(error: unknown): boolean {
  const isUnknownTracker = error instanceof NotFoundError && error.code !== undefined;
  return isUnknownTracker || error instanceof RequestValidationError;
}
