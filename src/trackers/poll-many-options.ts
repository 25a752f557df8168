import { checkCount, refuseOption } from '../common/option-checks.ts';
import { MAX_TIMER_MS } from '../common/timing.ts';
import type { Config } from '../config/config.ts';
import type { TrackingError } from '../errors.ts';
import { WINDOW_MS } from '../limiter/token-pool.ts';
import {
  POLL_OPTIONS,
  type PollOptions,
  type PollSettings,
  type PollUpdate,
  resolvePollOptions,
} from './poll-options.ts';

const DEFAULT_CONCURRENCY = 10;
/** Slower than this, the time between two polls is longer than a timer can hold. */
const SMALLEST_RATE = 0.000001;

/** Options of `trackers.pollMany`: those of `trackers.poll` hold for each tracker. */
export interface PollManyOptions extends PollOptions {
  /**
   * A budget of polls per second, evenly spread, for all trackers together; above 0. Default: none, so that only the
   * limiter bounds them (service.md 8).
   */
  readonly maxPerSecond?: number | undefined;
  /** Most polls that are under way or wait to be read, 1 or more. Default 10. */
  readonly concurrency?: number | undefined;
  /** Longest time to poll, in milliseconds, for all trackers together. Default: no bound. */
  readonly maxDurationMs?: number | undefined;
}

/** An update of one of many trackers. */
export interface TrackerPollUpdate extends PollUpdate {
  /** The id as it was given. */
  readonly id: string;
  /** Only in a failure. */
  readonly error?: undefined;
}

/** One of many trackers failed, and is polled no more. */
export interface TrackerPollFailure {
  /** The id as it was given. */
  readonly id: string;
  /** Why: what `trackers.poll` would have thrown. */
  readonly error: TrackingError;
  /** Only in an update. */
  readonly tracking?: undefined;
  /** Only in an update. */
  readonly newEvents?: undefined;
  /** Only in an update. */
  readonly poll?: undefined;
  /** Only in an update. */
  readonly stopped?: undefined;
}

/** What `trackers.pollMany` yields; `error` tells the two apart. */
export type PollManyUpdate = TrackerPollUpdate | TrackerPollFailure;

/** Any number of ids, known now or later. */
export type TrackerIds = Iterable<string> | AsyncIterable<string>;

/** The options of `trackers.pollMany`, checked and completed. */
export interface PollManySettings extends PollSettings {
  readonly maxPerSecond: number | undefined;
  readonly concurrency: number;
}

const POLL_MANY_OPTIONS = { ...POLL_OPTIONS, maxPerSecond: true, concurrency: true } satisfies Record<
  keyof PollManyOptions,
  true
>;

function checkRate(value: unknown): number {
  const isRate = typeof value === 'number' && value >= SMALLEST_RATE && Number.isFinite(value);
  return isRate && WINDOW_MS / value <= MAX_TIMER_MS
    ? value
    : refuseOption('maxPerSecond', 'a finite number above 0', value);
}

/**
 * Checks and completes the options of `trackers.pollMany`.
 *
 * @throws ConfigurationError naming the option that makes no sense
 */
export function resolvePollManyOptions(config: Config, options: PollManyOptions): PollManySettings {
  const settings = resolvePollOptions(config, options, POLL_MANY_OPTIONS);
  const { maxPerSecond, concurrency = DEFAULT_CONCURRENCY } = options;
  return {
    ...settings,
    maxPerSecond: maxPerSecond === undefined ? undefined : checkRate(maxPerSecond),
    concurrency: checkCount('concurrency', concurrency, 1),
  };
}
