import * as z from 'zod';
import { linkedController } from '../common/abort.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import { endpoints } from '../endpoints.ts';
import {
  type CallSite,
  ConfigurationError,
  NotFoundError,
  RequestValidationError,
  ResultsNotReadyError,
  TrackingError,
} from '../errors.ts';
import { type CallContext, callEndpoint } from '../http/execute.ts';
import { checkInput } from '../http/prepare.ts';
import type { TrackerRequestOptions } from '../options.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { trackerIdentifier } from '../schemas/identifier.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { isAccountError } from './bulk-results.ts';
import type { HeapItem } from './min-heap.ts';

/** The argument of an interval function. */
export interface PollContext {
  /** The id as it was given. */
  readonly id: string;
  /** Polls of this tracker so far, failed ones included; 0 before the first. */
  readonly poll: number;
  /** The results of the last poll; undefined before the first, while there are no results, and after an error. */
  readonly tracking: Tracking | undefined;
  /** The events that were new in them. */
  readonly newEvents: readonly TrackingEvent[];
  /** Polls that failed since the last success. */
  readonly errorsInARow: number;
}

/** The outcome of one poll. */
export interface PollUpdate {
  /** The results; undefined while there are none. */
  readonly tracking: Tracking | undefined;
  /** The events that were not yielded before, in the service's order. */
  readonly newEvents: TrackingEvent[];
  /** Number of the poll, from 1; failed ones count. */
  readonly poll: number;
  /** True when the service has stopped tracking (`isTracked: false`): this update is the last. */
  readonly stopped: boolean;
  /**
   * The tracker's record: that of the results or, at every second poll that does not say whether the service still tracks,
   * the record that is read then. Undefined at the other polls.
   */
  readonly tracker: Tracker | undefined;
}

/** How the requests of a stream of polls are made. */
export interface PollRequests {
  readonly context: CallContext;
  readonly options: TrackerRequestOptions;
  readonly maxConsecutiveErrors: number;
  /** Waits until `maxPerSecond` allows one more request. */
  readonly takeTurn: () => Promise<void>;
  /** Where the method was called that polls. */
  readonly callSite: CallSite;
}

/** A tracker without results carries no `isTracked`, so every second empty poll reads the tracker itself. */
const EMPTY_POLLS_PER_RECORD = 2;

/** One tracker that is polled. Between its polls it holds no promise, timer or listener. */
export class PolledTracker implements HeapItem {
  readonly id: string;
  dueAt = 0;
  heapIndex = 0;
  sequence = 0;
  /** Polls so far, failed ones included. */
  polls = 0;
  /** True once it is polled no more. */
  hasLeft = false;
  #errorsInARow = 0;
  /** Polls in a row that did not say whether the service still tracks the shipment. */
  #emptyInARow = 0;
  /** Identities of the events that were yielded; made by the first results, because there may be very many trackers. */
  #seenEvents: Set<string> | undefined;
  #controller: AbortController | undefined;

  /** @throws RequestValidationError for an id that cannot be one: a poll would say so only after the interval */
  constructor(id: string) {
    // Built for wrong ids only, because the schema that names the field costs more than the check.
    if (!trackerIdentifier.safeParse(id).success)
      checkInput(z.object({ id: trackerIdentifier }), { id }, 'id');
    this.id = id;
  }

  /** Ends the poll that is under way. */
  leave(): void {
    this.hasLeft = true;
    this.#controller?.abort(new Error('The tracker is polled no more'));
  }

  /** Builds what an interval function gets. */
  buildContext(update?: PollUpdate): PollContext {
    return {
      id: this.id,
      poll: this.polls,
      tracking: update?.tracking,
      newEvents: update?.newEvents ?? [],
      errorsInARow: this.#errorsInARow,
    };
  }

  /** Polls once; undefined when that failed and another poll may follow. What it throws ends the polling. */
  async poll(requests: PollRequests, signal: AbortSignal) {
    const { controller, unsubscribe } = linkedController(signal);
    this.#controller = controller;
    this.polls += 1;
    try {
      const results = await this.#call('trackers.results', requests, controller.signal).catch(keepNotReady);
      const notReady = results instanceof ResultsNotReadyError ? results : undefined;
      const tracking = results instanceof ResultsNotReadyError ? undefined : results;
      let tracker = tracking?.tracker ?? undefined;
      this.#emptyInARow = typeof tracker?.isTracked === 'boolean' ? 0 : this.#emptyInARow + 1;
      if (this.#emptyInARow === EMPTY_POLLS_PER_RECORD) {
        this.#emptyInARow = 0;
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

  #call<Name extends 'trackers.results' | 'trackers.get'>(
    name: Name,
    { context, options, callSite }: PollRequests,
    signal: AbortSignal,
  ) {
    const input = { params: { trackerId: this.id }, query: { searchBy: options.searchBy } };
    return callEndpoint(context, name, input, { ...options, signal }, callSite);
  }

  /** Reads the tracker's record; undefined when that fails, unless the next one can only fail in the same way. */
  async #readRecord(requests: PollRequests, signal: AbortSignal): Promise<Tracker | undefined> {
    try {
      await requests.takeTurn();
      return await this.#call('trackers.get', requests, signal);
    } catch (error) {
      if (signal.aborted || isPermanent(error)) throw error;
      const fields = { ...buildCallFields('trackers.get'), id: this.id, reason: formatReason(error) };
      const { logger } = requests.context.config;
      logger.warn('The record of a tracker without results could not be read', fields);
      return undefined;
    }
  }

  /** Picks the events that were not seen before; an event that vanishes and comes back is not new. */
  #takeNewEvents(events: readonly TrackingEvent[] | undefined): TrackingEvent[] {
    // With `invalidResponse: 'keep'` the events may be anything.
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

  #countFailure(error: unknown, { context, maxConsecutiveErrors }: PollRequests): void {
    this.#errorsInARow += 1;
    if (isPermanent(error)) throw error;
    const { id, polls: poll } = this;
    const errorsInARow = this.#errorsInARow;
    // A key or plan that has worked once may work again, e.g. after a rotation.
    const hasWorked = poll > errorsInARow;
    if (!hasWorked && (isAccountError(error) || error instanceof ConfigurationError)) throw error;
    const reason = formatReason(error);
    if (errorsInARow >= maxConsecutiveErrors) {
      const times = errorsInARow === 1 ? 'once' : `${errorsInARow} times in a row`;
      throw new TrackingError(`Polling \`${id}\` failed ${times}, at last with: ${reason}`, { cause: error });
    }
    const fields = { ...buildCallFields('trackers.results'), id, poll, errorsInARow, reason };
    context.config.logger.warn('A poll failed, the next one follows', fields);
  }
}

/** The error that says that there are no results yet is a result, too. */
function keepNotReady(error: unknown): ResultsNotReadyError {
  if (error instanceof ResultsNotReadyError) return error;
  throw error;
}

/** True when the next poll can only fail the same way. A 404 without a code comes from a gateway, not from the service. */
function isPermanent(error: unknown): boolean {
  const isUnknownTracker = error instanceof NotFoundError && error.code !== undefined;
  return isUnknownTracker || error instanceof RequestValidationError;
}

/** The fields by which the log lines of a call are found. */
function buildCallFields(endpoint: 'trackers.results' | 'trackers.get') {
  const { method, path } = endpoints[endpoint];
  return { endpoint, method, path };
}

function formatReason(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown failure';
}
