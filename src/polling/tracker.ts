import * as z from 'zod';
import { isAccountError } from '../bulk/outcomes.ts';
import { linkedController } from '../common/abort.ts';
import { endpoints } from '../endpoints.ts';
import {
  ConfigurationError,
  NotFoundError,
  RequestValidationError,
  ResultsNotReadyError,
  TrackingError,
} from '../errors.ts';
import { canonicalJson } from '../events/keys.ts';
import type { CallSite } from '../http/api-promise.ts';
import { type CallContext, callEndpoint } from '../http/execute.ts';
import { checkInput } from '../http/prepare.ts';
import { formatError, type LogFields } from '../observability/logger.ts';
import type { TrackerRequestOptions } from '../options.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { type Tracker, trackerIdentifier } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import type { HeapItem } from './min-heap.ts';

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
  /** The events that no earlier update had, in the service's order. */
  readonly newEvents: TrackingEvent[];
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

type PollEndpoint = 'trackers.results' | 'trackers.get';

export interface PollRequests {
  readonly context: CallContext;
  readonly options: TrackerRequestOptions;
  readonly maxConsecutiveErrors: number;
  readonly takeTurn: () => Promise<void>;
  readonly callSite: CallSite;
}

/** Without results nothing carries `isTracked`, so every second empty poll reads the tracker itself (docs/service.md 5.3). */
const MAX_POLLS_WITHOUT_IS_TRACKED = 2;

/** Refuses an impossible id, because the first poll would report it only after the interval. */
export function checkTrackerId(id: string): void {
  // The schema that names the field is built for wrong ids only, because building it costs more than the check.
  if (!trackerIdentifier.safeParse(id).success) checkInput(z.object({ id: trackerIdentifier }), { id }, 'id');
}

/** A tracker and the state of its polling. Between two polls it holds no promise, timer or listener. */
export class PolledTracker implements HeapItem {
  readonly id: string;
  dueAt = 0;
  heapIndex = 0;
  sequence = 0;
  polls = 0;
  #errorsInARow = 0;
  #pollsWithoutIsTracked = 0;
  /** Created with the first results, because most trackers of a long list have no results. */
  #seenEvents: Set<string> | undefined;
  #controller: AbortController | undefined;

  constructor(id: string) {
    checkTrackerId(id);
    this.id = id;
  }

  cancel(): void {
    this.#controller?.abort(new Error('The tracker is polled no more'));
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
  async poll(requests: PollRequests, signal: AbortSignal) {
    const { controller, unsubscribe } = linkedController(signal);
    this.#controller = controller;
    this.polls += 1;
    try {
      let notReady: ResultsNotReadyError | undefined;
      const results = this.#call('trackers.results', requests, controller.signal);
      const tracking = await results.catch((error: unknown) => {
        if (!(error instanceof ResultsNotReadyError)) throw error;
        notReady = error;
        return undefined;
      });
      let tracker = tracking?.tracker ?? undefined;
      this.#pollsWithoutIsTracked =
        typeof tracker?.isTracked === 'boolean' ? 0 : this.#pollsWithoutIsTracked + 1;
      if (this.#pollsWithoutIsTracked === MAX_POLLS_WITHOUT_IS_TRACKED) {
        this.#pollsWithoutIsTracked = 0;
        tracker = (await this.#readRecord(requests, controller.signal)) ?? tracker;
      }
      this.#errorsInARow = 0;
      const newEvents = this.#takeNewEvents(tracking?.events);
      const stopped = tracker?.isTracked === false;
      const update: PollUpdate = { tracking, newEvents, poll: this.polls, stopped, tracker };
      return { update, notReady };
    } catch (error) {
      controller.signal.throwIfAborted();
      this.#countFailure(error, requests);
      return undefined;
    } finally {
      unsubscribe();
      this.#controller = undefined;
    }
  }

  #call<Name extends PollEndpoint>(name: Name, requests: PollRequests, signal: AbortSignal) {
    const { context, options, callSite } = requests;
    const input = { params: { trackerId: this.id }, query: { searchBy: options.searchBy } };
    return callEndpoint(context, name, input, { ...options, signal }, callSite);
  }

  async #readRecord(requests: PollRequests, signal: AbortSignal): Promise<Tracker | undefined> {
    try {
      await requests.takeTurn();
      return await this.#call('trackers.get', requests, signal);
    } catch (error) {
      if (signal.aborted || isPermanent(error)) throw error;
      const message = 'The record of a tracker without results could not be read';
      this.#warn('trackers.get', message, requests, { reason: formatError(error) });
      return undefined;
    }
  }

  #takeNewEvents(events: readonly TrackingEvent[] | undefined): TrackingEvent[] {
    // With `invalidResponse: 'keep'` the field may hold anything.
    if (!Array.isArray(events)) return [];
    this.#seenEvents ??= new Set();
    const seen = this.#seenEvents;
    return events.filter((event) => {
      const id: unknown = event?.eventId;
      const identity = typeof id === 'string' ? id : canonicalJson(event);
      const isNew = !seen.has(identity);
      seen.add(identity);
      return isNew;
    });
  }

  #countFailure(error: unknown, requests: PollRequests): void {
    this.#errorsInARow += 1;
    if (isPermanent(error)) throw error;
    const errorsInARow = this.#errorsInARow;
    // A key or plan that has worked once may work again, e.g. after a rotation.
    const hasWorked = this.polls > errorsInARow;
    if (!hasWorked && (isAccountError(error) || error instanceof ConfigurationError)) throw error;
    const reason = formatError(error);
    if (errorsInARow >= requests.maxConsecutiveErrors) {
      const times = errorsInARow === 1 ? 'once' : `${errorsInARow} times in a row`;
      const message = `Polling \`${this.id}\` failed ${times}; the last error was: ${reason}`;
      throw new TrackingError(message, { cause: error });
    }
    const message = 'A poll failed; the next poll follows';
    this.#warn('trackers.results', message, requests, { poll: this.polls, errorsInARow, reason });
  }

  #warn(endpoint: PollEndpoint, message: string, { context }: PollRequests, fields: LogFields): void {
    const { method, path } = endpoints[endpoint];
    context.config.logger.warn(message, { endpoint, method, path, id: this.id, ...fields });
  }
}

/** True if every later poll would fail, too. A 404 without a code comes from a gateway, so later polls may succeed. */
function isPermanent(error: unknown): boolean {
  const isUnknownTracker = error instanceof NotFoundError && error.code !== undefined;
  return isUnknownTracker || error instanceof RequestValidationError;
}
