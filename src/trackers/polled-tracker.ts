// Specification: service.md 1, 2.3, 3

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { linkedController } from '../common/abort.ts';
import {
  AuthenticationError,
  ConfigurationError,
  NoActiveSubscriptionError,
  NotFoundError,
  PermissionDeniedError,
  QuotaExceededError,
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
import type { Due } from './poll-schedule.ts';

/** What an interval function is given. */
export interface PollContext {
  /** The id as it was given. */
  readonly id: string;
  /** Polls of this tracker so far, failed ones included; 0 before the first. */
  readonly poll: number;
  /** What the last poll brought; undefined before the first, while there are no results, and after an error. */
  readonly tracking: Tracking | undefined;
  /** What was new in it. */
  readonly newEvents: readonly TrackingEvent[];
  /** Polls that failed since the last success. */
  readonly errorsInARow: number;
}

/** What one poll brought. */
export interface PollUpdate {
  /** The results; undefined while there are none. */
  readonly tracking: Tracking | undefined;
  /** The events that were not yielded before, in the service's order. */
  readonly newEvents: TrackingEvent[];
  /** Which poll it was, from 1; failed ones count. */
  readonly poll: number;
  /** True when the service has stopped tracking (`isTracked: false`): this update is the last. */
  readonly stopped: boolean;
  /**
   * The tracker's record: that of the results, and while these do not say whether it is tracked, at every second poll the
   * one that is asked for then. Undefined where it was not asked for.
   */
  readonly tracker: Tracker | undefined;
}

export interface TrackerPollSettings {
  readonly maxConsecutiveErrors: number;
  /** Options of each request. */
  readonly request: TrackerRequestOptions;
}

/** What all trackers of an engine share. */
export interface PollRun {
  readonly context: CallContext;
  readonly settings: TrackerPollSettings;
  /** Waits until the budget allows one more request. */
  readonly turn: () => Promise<void>;
}

/** An update, and why it is without results when it is. */
export interface PollOutcome {
  readonly update: PollUpdate;
  readonly notReady: ResultsNotReadyError | undefined;
}

type Finding =
  | { readonly tracking: Tracking; readonly notReady?: undefined }
  | { readonly tracking?: undefined; readonly notReady: ResultsNotReadyError };

/** A number that never gets results never says that it was given up: its record does, and is asked for this seldom. */
const SILENT_POLLS_PER_RECORD = 2;

/** 128 bits as one-byte characters: even a billion ids share no digest, and an id costs 16 bytes, however long it is. */
const DIGEST_LENGTH = 16;
/** Events remembered for a tracker beyond those of its last response; those that vanished longest ago go first. */
const MOST_VANISHED_EVENTS = 1000;

/** One tracker that is polled. It holds no promise, timer or listener between its polls: there may be very many. */
export class PolledTracker implements Due {
  readonly id: string;
  dueAt = 0;
  place = 0;
  turn = 0;
  #polls = 0;
  #errorsInARow = 0;
  /** Polls that did not say whether the service still tracks it. */
  #silentInARow = 0;
  /** Digests of the events that were yielded: a flat string is the smallest thing that can remember them. */
  #seen = '';
  /** True once nobody wants to know of it any more. */
  hasLeft = false;
  #controller: AbortController | undefined;

  /** @throws RequestValidationError for an id that can't be one */
  constructor(id: string) {
    this.id = checkTrackerId(id);
  }

  /** Ends the poll that is under way, and makes its update nobody's. */
  leave(): void {
    this.hasLeft = true;
    this.#controller?.abort(new Error('The tracker is polled no more'));
  }

  context(update?: PollUpdate): PollContext {
    return {
      id: this.id,
      poll: this.#polls,
      tracking: update?.tracking,
      newEvents: update?.newEvents ?? [],
      errorsInARow: this.#errorsInARow,
    };
  }

  /** Polls once; undefined when that failed and another poll may follow, else what it throws ends the polling. */
  async poll(run: PollRun, signal: AbortSignal): Promise<PollOutcome | undefined> {
    const { controller, unsubscribe } = linkedController(signal);
    this.#controller = controller;
    this.#polls += 1;
    let finding: Finding;
    let tracker: Tracker | undefined;
    try {
      finding = await this.#results(run, controller.signal);
      tracker = finding.tracking?.tracker ?? undefined;
      this.#silentInARow = typeof tracker?.isTracked === 'boolean' ? 0 : this.#silentInARow + 1;
      if (this.#silentInARow === SILENT_POLLS_PER_RECORD) {
        this.#silentInARow = 0;
        tracker = (await this.#record(run, controller.signal)) ?? tracker;
      }
    } catch (error) {
      controller.signal.throwIfAborted();
      this.#countFailure(error, run);
      return undefined;
    } finally {
      unsubscribe();
      this.#controller = undefined;
    }
    this.#errorsInARow = 0;
    const { tracking, notReady } = finding;
    // With `invalidResponse: 'warn'` the events may be anything.
    const events = Array.isArray(tracking?.events) ? tracking.events : [];
    const { newEvents, seen } = diffEvents(this.#seen, events);
    this.#seen = seen;
    const stopped = tracker?.isTracked === false;
    return { update: { tracking, newEvents, poll: this.#polls, stopped, tracker }, notReady };
  }

  /** The results, or that there are none yet. */
  async #results({ context, settings }: PollRun, signal: AbortSignal): Promise<Finding> {
    const options = { ...settings.request, signal };
    try {
      return { tracking: await callEndpoint(context, 'trackers.results', this.#address(options), options) };
    } catch (error) {
      if (error instanceof ResultsNotReadyError) return { notReady: error };
      throw error;
    }
  }

  /** The tracker's record; undefined when it can't be had now, which is no reason to end. */
  async #record({ context, settings, turn }: PollRun, signal: AbortSignal): Promise<Tracker | undefined> {
    const options = { ...settings.request, signal };
    try {
      await turn();
      return await callEndpoint(context, 'trackers.get', this.#address(options), options);
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error;
      const details = { id: this.id, reason: messageOf(error) };
      context.config.logger.warn('The record of a tracker without results could not be read', details);
      return undefined;
    }
  }

  #address({ searchBy }: TrackerRequestOptions) {
    return { params: { trackerId: this.id }, query: { searchBy } };
  }

  #countFailure(error: unknown, { context, settings }: PollRun): void {
    this.#errorsInARow += 1;
    // A key or plan that worked once may do so again; one that never did will not.
    const neverWorked = this.#polls === this.#errorsInARow;
    if (isFinal(error)) throw error;
    if (neverWorked && (concernsEveryRequest(error) || error instanceof ConfigurationError)) throw error;
    const reason = messageOf(error);
    const [id, errorsInARow] = [this.id, this.#errorsInARow];
    if (errorsInARow >= settings.maxConsecutiveErrors) {
      const times = errorsInARow === 1 ? 'once' : `${errorsInARow} times in a row`;
      throw new TrackingError(`Polling \`${id}\` failed ${times}, at last with: ${reason}`, { cause: error });
    }
    const details = { id, poll: this.#polls, errorsInARow, reason };
    context.config.logger.warn('A poll failed, the next one follows', details);
  }
}

/** Checks an id before the first wait: a poll would say so only when the interval is over. */
export function checkTrackerId(id: string): string {
  return checkInput(z.object({ id: trackerIdentifier }), { id }, 'id').id;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown failure';
}

/** True when the next poll can only fail the same way. A 404 without a code is a gateway's, not the service's word. */
function isFinal(error: unknown): boolean {
  return (
    error instanceof RequestValidationError || (error instanceof NotFoundError && error.code !== undefined)
  );
}

/** True for failures that every later request would meet too: the key, its rights, the plan or its quota. */
export function concernsEveryRequest(error: unknown): boolean {
  return (
    error instanceof AuthenticationError ||
    error instanceof PermissionDeniedError ||
    error instanceof QuotaExceededError ||
    error instanceof NoActiveSubscriptionError
  );
}

/**
 * Finds the events that were not seen before (service.md 2.3). One that vanishes from the responses and comes back is not
 * new.
 *
 * @param seen - digests of the known events, most recently seen first; empty at first
 * @returns the new events, each once, in the order of the response; and what to remember: the whole response and up to
 * 1,000 events that vanished, 16 bytes each
 */
export function diffEvents(
  seen: string,
  events: readonly TrackingEvent[],
): { readonly newEvents: TrackingEvent[]; readonly seen: string } {
  const current = new Map<string, TrackingEvent>();
  for (const event of events) {
    const digest = digestOf(event);
    if (!current.has(digest)) current.set(digest, event);
  }
  const digests = [...current.keys()].join('');
  if (digests === seen) return { newEvents: [], seen };
  const known = new Set(digestsIn(seen));
  const newEvents = [...current].flatMap(([digest, event]) => (known.has(digest) ? [] : [event]));
  const vanished = [...known].filter((digest) => !current.has(digest)).slice(0, MOST_VANISHED_EVENTS);
  return { newEvents, seen: digests + vanished.join('') };
}

function digestOf(event: TrackingEvent): string {
  // With `invalidResponse: 'warn'` an event may have no id; then the whole of it is its identity.
  const identity = typeof event.eventId === 'string' ? event.eventId : JSON.stringify(event);
  return createHash('sha256').update(identity).digest('binary').slice(0, DIGEST_LENGTH);
}

function digestsIn(seen: string): string[] {
  const count = seen.length / DIGEST_LENGTH;
  return Array.from({ length: count }, (_, index) =>
    seen.slice(index * DIGEST_LENGTH, (index + 1) * DIGEST_LENGTH),
  );
}
