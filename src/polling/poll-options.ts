import * as z from 'zod';
import { checkReturned, type ErrorContext } from '../common/check-options.ts';
import { MAX_TIMER_MS } from '../common/clock.ts';
import { isPromise, isSet } from '../common/foreign.ts';
import { expected, kindOf, kindOrNumber } from '../common/messages.ts';
import {
  countOption,
  delayOption,
  functionOption,
  type OptionShape,
  option,
  rule,
} from '../common/option-schemas.ts';
import { CALL_SHAPE } from '../config/call-options.ts';
import type { Priority } from '../limiter/limiter.ts';
import type { TrackerRequestOptions } from '../options.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { searchBySchema } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';

const MIN_INTERVAL_MS = 1000;
const DEFAULT_INTERVAL_MS = 15 * 60_000;
/** Until the first success of a tracker, this number applies to failures of every kind. */
export const DEFAULT_MAX_CONSECUTIVE_ERRORS = 5;
const DEFAULT_CONCURRENCY = 10;
const MIN_PER_SECOND = 1000 / MAX_TIMER_MS;

/** The argument of an interval function. */
export interface PollContext {
  /** The id as it was given. */
  readonly id: string;
  /** Polls of this tracker so far, failed ones included; 0 before the first. */
  readonly poll: number;
  /**
   * The results of the last poll, which can be without events; undefined before the first poll, after an error, and if the service
   * responded that there are no results yet.
   */
  readonly tracking: Tracking | undefined;
  /** The new events of these results. */
  readonly newEvents: readonly TrackingEvent[];
  /** Polls that failed since the last success. */
  readonly errorsInARow: number;
}

/** Options of `trackers.poll` and `trackers.waitUntilStopped`; request options apply to each request of a poll. */
export interface PollOptions extends Omit<TrackerRequestOptions, 'priority'> {
  /**
   * Milliseconds from one poll to the next, or a function. At least 1,000. Default 900,000 (15 minutes).
   * @example ({ tracking }) => (tracking?.shipment?.statusMilestone === 'out_for_delivery' ? 300_000 : 3_600_000)
   */
  readonly intervalMs?: number | ((context: PollContext) => number) | undefined;
  /** Milliseconds until the first poll. Default: the interval, because a new tracker has no results (docs/service.md 1.4). */
  readonly initialDelayMs?: number | undefined;
  /** Milliseconds after which the polling ends. A request that is under way is then aborted. Default: no bound. */
  readonly maxDurationMs?: number | undefined;
  /**
   * Number of failed polls in a row that end the polling. The retries within a poll do not count. An unknown
   * tracker ends the polling at once. Until a poll has succeeded, these failures also end it at once: a refused key or plan, a
   * used-up quota, an `apiKey` function that throws, and a failed connection that no retry can fix. If you set a number, every
   * failed poll counts. Default 5, but an outage (failures of the network, timeouts, 408, 429 and 5xx) counts only until the first
   * success of the tracker.
   */
  readonly maxConsecutiveErrors?: number | undefined;
  /**
   * The polling ends when this function returns true for the results. It is not called before the first event. Default: never.
   * @example (tracking) => tracking.shipment?.statusMilestone === 'delivered'
   */
  readonly until?: ((tracking: Tracking) => boolean) | undefined;
  /**
   * The `keys` of handled events, which are skipped. Default: none.
   * @example knownKeys: await readKeysFromDatabase(trackerId)
   */
  readonly knownKeys?: Iterable<string> | undefined;
}

/** Options of `trackers.pollOnce`; request options apply to each of its requests. */
export interface PollOnceOptions extends TrackerRequestOptions {
  /**
   * The `keys` of handled events, which are skipped. Default: none.
   * @example knownKeys: await readKeysFromDatabase(trackerId)
   */
  readonly knownKeys?: Iterable<string> | undefined;
  /** Waiting calls with `interactive` go before those with `background`. Default `background`. */
  readonly priority?: Priority | undefined;
}

/** Options of `trackers.resultsMany`; request options apply to each request. */
export interface ResultsManyOptions extends TrackerRequestOptions {
  /** Maximum number of requests under way, at least 1. Requests whose results your loop has not read count, too. Default 10. */
  readonly concurrency?: number | undefined;
  /** Waiting calls with `interactive` go before those with `background`. Default `background`. */
  readonly priority?: Priority | undefined;
}

/** A tracker for `trackers.pollMany`, with options of its own. */
export interface TrackerToPoll extends Pick<PollOptions, 'knownKeys' | 'initialDelayMs'> {
  /** The `trackerId`, or your `clientTrackerId` with `searchBy`. */
  readonly id: string;
}

/**
 * Options of `trackers.pollMany`. `signal` and `maxDurationMs` apply to the whole stream, the other options of `trackers.poll` to
 * each tracker.
 */
export interface PollManyOptions extends Omit<PollOptions, 'knownKeys'> {
  /**
   * Maximum number of requests per second for all trackers. It must be above 0; the requests are evenly spread. Retries
   * do not count. Default: only the rate limits.
   */
  readonly maxPerSecond?: number | undefined;
  /** Maximum number of polls under way, at least 1. Polls whose updates your loop has not read count, too. Default 10. */
  readonly concurrency?: number | undefined;
}

const INTERVAL_RULE = `a number of milliseconds from ${MIN_INTERVAL_MS} to ${MAX_TIMER_MS}`;
const intervalTo = (verb: 'be' | 'return') =>
  z
    .number(expected(`to ${verb} ${INTERVAL_RULE}`, kindOrNumber))
    .min(MIN_INTERVAL_MS)
    .max(MAX_TIMER_MS);
const returnedInterval = intervalTo('return');

/** Calls the interval function, and checks what it returns. */
export function askInterval(
  ask: (context: PollContext) => number,
  context: PollContext,
  client: ErrorContext,
): number {
  return checkReturned(returnedInterval, ignoreRejection(ask(context)), 'intervalMs', client);
}

const returnedAnswer = z.boolean(expected('to return true or false', kindOrNumber));

/**
 * Calls `until`, unless the results have no events. Checks what it returns: a promise would end the polling, because it is truthy.
 */
export function askUntil(
  until: (tracking: Tracking) => boolean,
  tracking: Tracking,
  client: ErrorContext,
): boolean {
  if (tracking.events.length === 0) return false;
  return checkReturned(returnedAnswer, ignoreRejection(until(tracking)), 'until', client);
}

/**
 * Ignores the rejection of a promise that a user's function returned by mistake. The caller refuses the promise and never awaits
 * it, so its rejection would end the process.
 */
function ignoreRejection(returned: unknown): unknown {
  if (isPromise(returned)) returned.catch(() => {});
  return returned;
}

const isIterable = (value: unknown): value is Iterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.iterator in value;

const isString = (value: unknown) => typeof value === 'string';

/** The keys are copied, because a poll deletes each key whose event it has read. */
const knownKeysOption = z
  .preprocess(
    (value) => (isIterable(value) ? new Set(value) : value),
    option<Set<string>>(
      'an iterable of strings',
      (keys) => isSet(keys) && [...keys].every(isString),
      (keys) =>
        isSet(keys)
          ? `an iterable with the item ${kindOrNumber([...keys].find((key) => !isString(key)))}`
          : kindOf(keys),
    ).optional(),
  )
  .optional();

const { priority: _priority, ...REQUEST_SHAPE } = CALL_SHAPE;

const POLL_SHAPE = {
  intervalMs: z
    .union(
      [intervalTo('be'), functionOption<(context: PollContext) => number>()],
      rule(`${INTERVAL_RULE}, or a function`),
    )
    .default(DEFAULT_INTERVAL_MS),
  initialDelayMs: delayOption.optional(),
  maxDurationMs: option<number>(
    'a number of milliseconds above 0',
    (value) => typeof value === 'number' && value > 0,
  ).default(Number.POSITIVE_INFINITY),
  maxConsecutiveErrors: countOption(1, true).optional(),
  until: functionOption<NonNullable<PollOptions['until']>>().default(() => () => false),
  searchBy: searchBySchema.optional(),
  ...REQUEST_SHAPE,
} satisfies OptionShape<Omit<PollOptions, 'knownKeys'>>;

export const pollOptions = z.strictObject({
  ...POLL_SHAPE,
  knownKeys: knownKeysOption,
} satisfies OptionShape<PollOptions>);

export const trackerToPoll = z.strictObject({
  id: z.custom<string>(), // `checkTrackerId` checks it.
  knownKeys: knownKeysOption,
  initialDelayMs: delayOption.optional(),
} satisfies OptionShape<TrackerToPoll>);

export const pollManyOptions = z.strictObject({
  ...POLL_SHAPE,
  maxPerSecond: z.number(rule('a finite number above 0')).min(MIN_PER_SECOND).optional(),
  concurrency: countOption(1).default(DEFAULT_CONCURRENCY),
} satisfies OptionShape<PollManyOptions>);

export type PollSettings = z.output<typeof pollManyOptions>;

export const pollOnceOptions = z.strictObject({
  ...CALL_SHAPE,
  searchBy: searchBySchema.optional(),
  knownKeys: knownKeysOption,
} satisfies OptionShape<PollOnceOptions>);

export const resultsManyOptions = z.strictObject({
  ...CALL_SHAPE,
  searchBy: searchBySchema.optional(),
  concurrency: countOption(1).default(DEFAULT_CONCURRENCY),
} satisfies OptionShape<ResultsManyOptions>);

export type PollOnceSettings = z.output<typeof pollOnceOptions>;
