import { z } from 'zod';
import {
  checkCount,
  checkDelayMs,
  checkKnownOptions,
  checkOneOf,
  refuseOption,
} from '../common/option-checks.ts';
import { MAX_TIMER_MS } from '../common/timing.ts';
import { errorMap, toValidationIssues } from '../common/validation.ts';
import { resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import { RequestValidationError } from '../errors.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { type SearchBy, searchBySchema, trackerIdentifier } from '../schemas/identifier.ts';
import type { Tracking } from '../schemas/tracking.ts';
import type { TrackerRequestOptions } from './request-options.ts';

/** Asked for less, a service that updates every few minutes only gets busier. */
const SHORTEST_INTERVAL_MS = 1000;
const DEFAULT_INTERVAL_MS = 15 * 60_000;
const DEFAULT_MAX_CONSECUTIVE_ERRORS = 5;

/** What an interval function is told. */
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

/** Options of `trackers.poll` and `trackers.waitUntilStopped`; those of a request hold for each poll. */
export interface PollOptions extends Omit<TrackerRequestOptions, 'priority'> {
  /**
   * Time from one poll to the next, in milliseconds, or a function that is asked after every poll; 1,000 or more.
   * Default 900,000 (15 minutes).
   * @example ({ tracking }) => (tracking?.shipment?.statusMilestone === 'out_for_delivery' ? 300_000 : 3_600_000)
   */
  readonly intervalMs?: number | ((context: PollContext) => number) | undefined;
  /**
   * Time until the first poll, in milliseconds. Default: the interval, since a new tracker has no results yet
   * (service.md 1).
   */
  readonly initialDelayMs?: number | undefined;
  /**
   * Longest time to poll, in milliseconds; it ends at once when the next poll would come later. Default: no bound. A
   * tracker that never gets results never says that it has stopped.
   */
  readonly maxDurationMs?: number | undefined;
  /**
   * Failed polls in a row, after the retries of each, that end it with an error. A refused key, plan or quota ends it at
   * once while no poll has succeeded yet. Default 5.
   */
  readonly maxConsecutiveErrors?: number | undefined;
  /**
   * Ends it after the update for which this is true.
   * @example (tracking) => tracking.shipment?.statusMilestone === 'delivered'
   */
  readonly until?: ((tracking: Tracking) => boolean) | undefined;
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
}

/** The options of polls, checked and completed. */
export interface PollSettings {
  /** Checks what the caller's function returns. */
  readonly intervalMs: (context: PollContext) => number;
  readonly initialDelayMs: number | undefined;
  readonly maxDurationMs: number;
  readonly maxConsecutiveErrors: number;
  readonly until: (tracking: Tracking) => boolean;
  readonly signal: AbortSignal | undefined;
  /** Time for one poll with its attempts and waits. */
  readonly totalTimeoutMs: number | undefined;
  readonly request: TrackerRequestOptions;
}

// Typed against the options, so an option without an entry here does not compile.
export const POLL_OPTIONS = {
  intervalMs: true,
  initialDelayMs: true,
  maxDurationMs: true,
  maxConsecutiveErrors: true,
  until: true,
  searchBy: true,
  signal: true,
  timeoutMs: true,
  totalTimeoutMs: true,
  retry: true,
  headers: true,
} satisfies Record<keyof PollOptions, true>;

/**
 * Checks an id before the first wait: a poll would tell only when the interval is over.
 *
 * @throws RequestValidationError for an id that can't be one
 */
export function checkTrackerId(id: string): string {
  const result = z.object({ id: trackerIdentifier }).safeParse({ id }, { error: errorMap('id') });
  if (result.success) return result.data.id;
  throw new RequestValidationError(toValidationIssues(result.error));
}

function checkIntervalMs(name: string, value: unknown): number {
  if (typeof value === 'number' && value >= SHORTEST_INTERVAL_MS && value <= MAX_TIMER_MS) return value;
  return refuseOption(
    name,
    `a number of milliseconds from ${SHORTEST_INTERVAL_MS} to ${MAX_TIMER_MS}`,
    value,
  );
}

function intervalOf(value: unknown): PollSettings['intervalMs'] {
  if (typeof value !== 'function') {
    const intervalMs = checkIntervalMs('intervalMs', value);
    return () => intervalMs;
  }
  return (context) => checkIntervalMs('intervalMs()', value(context));
}

function checkDurationMs(name: string, value: unknown): number {
  return typeof value === 'number' && value > 0
    ? value
    : refuseOption(name, 'a number of milliseconds above 0', value);
}

/**
 * Checks and completes the options of polls.
 *
 * @throws ConfigurationError naming the option that makes no sense
 */
export function resolvePollOptions(
  config: Config,
  options: PollOptions,
  known: Readonly<Record<string, true>> = POLL_OPTIONS,
): PollSettings {
  checkKnownOptions('options', options, Object.keys(known));
  const { intervalMs = DEFAULT_INTERVAL_MS, initialDelayMs, maxDurationMs, maxConsecutiveErrors } = options;
  const { until = () => false, searchBy, signal, timeoutMs, totalTimeoutMs, retry, headers } = options;
  if (typeof until !== 'function') refuseOption('until', 'a function', until);
  if (searchBy !== undefined) checkOneOf<SearchBy>('searchBy', searchBy, searchBySchema.options);
  const call = resolveCallOptions(config, { signal, timeoutMs, totalTimeoutMs, retry, headers });
  return {
    intervalMs: intervalOf(intervalMs),
    initialDelayMs: initialDelayMs === undefined ? undefined : checkDelayMs('initialDelayMs', initialDelayMs),
    maxDurationMs:
      maxDurationMs === undefined
        ? Number.POSITIVE_INFINITY
        : checkDurationMs('maxDurationMs', maxDurationMs),
    maxConsecutiveErrors: checkCount(
      'maxConsecutiveErrors',
      maxConsecutiveErrors ?? DEFAULT_MAX_CONSECUTIVE_ERRORS,
      1,
      true,
    ),
    until,
    signal,
    totalTimeoutMs: call.totalTimeoutMs,
    request: { searchBy, timeoutMs, retry, headers, priority: 'background' },
  };
}
