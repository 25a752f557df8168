import * as z from 'zod';
import { linkedController } from '../common/abort.ts';
import { MAX_TIMER_MS, systemClock } from '../common/clock.ts';
import { buildEventKey, canonicalJson } from '../common/event-keys.ts';
import type { RetryPolicy } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import { endpoints } from '../endpoints.ts';
import {
  ApiError,
  type CallSite,
  ConfigurationError,
  isAccountError,
  NotFoundError,
  RequestValidationError,
  ResponseValidationError,
  ResultsNotReadyError,
  TrackingError,
} from '../errors.ts';
import type { CheckedResponse } from '../http/check-response.ts';
import { startCall } from '../http/execute.ts';
import { checkInput, type EndpointResult, prepareRequest } from '../http/prepare.ts';
import { MAX_WAIT_IN_POLL_MS } from '../http/retry.ts';
import { formatError, type LogFields } from '../observability/logger.ts';
import type { RequestOptions, TrackerRequestOptions } from '../options.ts';
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
   * The tracker's record in the results. If they lack `isTracked`, every second poll reads it separately (docs/service.md 5.3), and
   * reads the results once more if it says that tracking has stopped. Undefined if a poll gets no record.
   */
  readonly tracker: Tracker | undefined;
}

/** The result of one poll. */
export interface PollResult {
  readonly update: PollUpdate;
  /** The reason why there are no results, if the service gave one. */
  readonly notReady: ResultsNotReadyError | undefined;
}

/** What the requests of one poll have read. */
type Reading = Pick<PollUpdate, 'tracking' | 'tracker'> & Pick<PollResult, 'notReady'>;

type PollEndpoint = 'trackers.results' | 'trackers.get';

/** The settings that the requests of all trackers of a stream share. */
export interface PollRequests {
  readonly config: Config;
  readonly options: TrackerRequestOptions & { readonly retry: RetryPolicy };
  readonly maxConsecutiveErrors: number;
  readonly takeTurn: () => Promise<void>;
  /** Aborts when the stream ends. */
  readonly endSignal: AbortSignal;
  readonly callSite: CallSite;
}

/** Without results nothing carries `isTracked`, so every second empty poll reads the tracker itself (docs/service.md 5.3). */
const MAX_POLLS_WITHOUT_IS_TRACKED = 2;

/** Refuses an impossible id, because the first poll would report it only after the interval. */
export function checkTrackerId(config: Config, id: unknown, callSite?: CallSite): asserts id is string {
  // The schema that names the field is built for wrong ids only, because building it costs more than the check.
  if (!trackerIdentifier.safeParse(id).success)
    checkInput(config, z.object({ id: trackerIdentifier }), { id }, 'id', callSite);
}

/** A tracker and the state of its polling. Between two polls it has no promise, timer or listener. */
export class PolledTracker {
  readonly id: string;
  dueAt = 0;
  /** The time until which the service has asked to wait, in the response to the last request that failed. */
  waitsUntil = 0;
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
      const { tracking, tracker, notReady } = await this.#read(controller.signal);
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

  /** Reads the results. If they lack `isTracked`, every second poll also reads the record. */
  async #read(signal: AbortSignal): Promise<Reading> {
    const results = await this.#readResults(signal);
    this.#pollsWithoutIsTracked = hasIsTracked(results.tracker) ? 0 : this.#pollsWithoutIsTracked + 1;
    const mayWait = this.#pollsWithoutIsTracked < MAX_POLLS_WITHOUT_IS_TRACKED;
    if (mayWait || systemClock.now() < this.waitsUntil) return results;
    const tracker = await this.#readRecord(signal);
    // Events may have come between the two requests, so read the results once more.
    const last = tracker?.isTracked === false ? await this.#readResultsAgain(signal) : results;
    this.#pollsWithoutIsTracked = 0;
    return { ...last, tracker: hasIsTracked(last.tracker) ? last.tracker : (tracker ?? last.tracker) };
  }

  async #readResults(signal: AbortSignal): Promise<Reading> {
    try {
      const tracking = await this.#call('trackers.results', { signal }, ({ tracker }) => tracker);
      return { tracking, tracker: tracking.tracker ?? undefined, notReady: undefined };
    } catch (error) {
      if (!(error instanceof ResultsNotReadyError)) throw error;
      return { tracking: undefined, tracker: undefined, notReady: error };
    }
  }

  async #readResultsAgain(signal: AbortSignal): Promise<Reading> {
    await this.#requests.takeTurn();
    return await this.#readResults(signal);
  }

  /** Returns undefined after a failure that a later poll may mend. */
  async #readRecord(signal: AbortSignal): Promise<Tracker | undefined> {
    const { retry } = this.#requests.options;
    // A pause of this endpoint does not stop the results of other trackers, which may need the slot.
    const maxRetryAfterMs = Math.min(retry.maxRetryAfterMs, MAX_WAIT_IN_POLL_MS);
    try {
      await this.#requests.takeTurn();
      const options = { signal, retry: { ...retry, maxRetryAfterMs } };
      return await this.#call('trackers.get', options, (tracker) => tracker);
    } catch (error) {
      if (signal.aborted || isPermanent(error) || error instanceof ResponseValidationError) throw error;
      this.#noteRetryAfter(error);
      const message = 'Could not read a tracker; a later poll tries again';
      this.#warn('trackers.get', message, { reason: formatError(error) });
      return undefined;
    }
  }

  #call<Name extends PollEndpoint>(
    name: Name,
    own: Pick<RequestOptions, 'signal' | 'retry'>,
    getTracker: (data: EndpointResult<Name>) => Tracker | null | undefined,
  ) {
    const { config, options, callSite } = this.#requests;
    const prepare = () => {
      const input = { params: { trackerId: this.id }, query: { searchBy: options.searchBy } };
      const request = prepareRequest(config, name, input);
      return {
        ...request,
        retryClass: 'poll' as const,
        read: (...response: Parameters<typeof request.read>) => {
          const checked = request.read(...response);
          return checked.isUsable ? checkIsTracked(checked, getTracker(checked.data)) : checked;
        },
      };
    };
    return startCall(config, name, { ...options, ...own }, prepare, callSite);
  }

  #takeNewEvents(tracking: Tracking | undefined) {
    const { searchBy } = this.#requests.options;
    const polledIds = searchBy === 'clientTrackerId' ? { clientTrackerId: this.id } : { trackerId: this.id };
    const record = tracking?.tracker;
    // With `invalidResponse: 'keep'`, the record may lack its id.
    const ids = typeof record?.trackerId === 'string' ? record : polledIds;
    const unseen = new Map<string, { readonly event: TrackingEvent; readonly key: string }>();
    for (const event of tracking?.events ?? []) {
      const id: unknown = event.eventId;
      const identity = typeof id === 'string' && id !== '' ? id : canonicalJson(event);
      if (this.#seenEvents?.has(identity) || unseen.has(identity)) continue;
      unseen.set(identity, { event, key: buildEventKey(ids, event) });
    }
    // Remember the events only now: if the key of one cannot be built, the poll fails, and the next poll finds all again.
    if (unseen.size > 0) this.#seenEvents ??= new Set();
    for (const identity of unseen.keys()) this.#seenEvents?.add(identity);
    const fresh = [...unseen.values()].filter(({ key }) => !this.#knownKeys?.delete(key));
    return { newEvents: fresh.map(({ event }) => event), keys: fresh.map(({ key }) => key) };
  }

  #noteRetryAfter(error: unknown): void {
    const retryAfterMs = (error instanceof ApiError && error.retryAfterMs) || 0;
    this.waitsUntil = systemClock.now() + Math.min(retryAfterMs, MAX_TIMER_MS);
  }

  #countFailure(error: unknown): void {
    this.#errorsInARow += 1;
    this.#noteRetryAfter(error);
    if (isPermanent(error)) throw error;
    const errorsInARow = this.#errorsInARow;
    // A key or plan that has worked once may work again, e.g. after a rotation.
    const hasWorked = this.polls > errorsInARow;
    if (!hasWorked && (isAccountError(error) || error instanceof ConfigurationError)) throw error;
    const reason = formatError(error);
    if (errorsInARow >= this.#requests.maxConsecutiveErrors) {
      const errors = errorsInARow === 1 ? '1 error' : `${errorsInARow} errors in a row`;
      const message = `Polling \`${this.id}\` has ended after ${errors} (\`maxConsecutiveErrors\`); the last error: ${reason}`;
      throw new TrackingError(message, { cause: error, callSite: this.#requests.callSite });
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

function hasIsTracked(tracker: Tracker | undefined): boolean {
  return typeof tracker?.isTracked === 'boolean';
}

/** Refuses a wrong `isTracked`, which would keep the polling from ending. A missing or null one is not wrong. */
function checkIsTracked<T>(
  checked: CheckedResponse<T>,
  tracker: Tracker | null | undefined,
): CheckedResponse<T> {
  const isTracked: unknown = tracker?.isTracked ?? undefined;
  if (isTracked === undefined || typeof isTracked === 'boolean') return checked;
  const mismatched = checked.mismatched.filter(({ path }) => path.at(-1) === 'isTracked');
  return { isUsable: false, mismatched, total: mismatched.length };
}

/** True if every later poll would fail, too. A 404 without a code comes from a gateway, so later polls may succeed. */
function isPermanent(error: unknown): boolean {
  const isUnknownTracker = error instanceof NotFoundError && error.code !== undefined;
  return isUnknownTracker || error instanceof RequestValidationError;
}
