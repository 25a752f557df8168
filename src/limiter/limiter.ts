// Specification: service.md 8

import { z } from 'zod';
import { type Clock, systemClock } from '../common/clock.ts';
import { checkOptions, countOption, delayOption, hasMethods, option } from '../common/option-checks.ts';
import { TrackingError } from '../errors.ts';

/** Which of two waiting calls goes first. */
export type Priority = 'interactive' | 'background';

/** What shares one allowance: the same account asking the same endpoint of the same service. */
export interface BucketId {
  /** Origin and path of the service, without a trailing slash. */
  readonly baseUrl: string;
  /** SHA-256 of the API key in hexadecimal, or `dynamic` for a key that a function gives; never the key. */
  readonly account: string;
  /** Endpoint name, e.g. `trackers.results`; `request` for paths outside the table. */
  readonly endpoint: string;
}

/** What `acquire` needs to know. */
export interface AcquireOptions {
  /** What the request counts against. */
  readonly bucket: BucketId;
  /** Requests allowed in a window of one second, until the service announces another number; the bucket's first call sets it. */
  readonly limit: number;
  /** What the service announces never raises the limit above this; the bucket's first call sets it. Default: no bound. */
  readonly maxLimit?: number | undefined;
  /** Which lane of the queue the call waits in. */
  readonly priority: Priority;
  /** Gives the place in the queue up; the rejection is the signal's own reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Longest wait in the queue in milliseconds; beyond it `acquire` rejects with `TimeoutError` (phase `queue`). Default: none. */
  readonly maxWaitMs?: number | undefined;
  /**
   * Longest pause the call sits out, in milliseconds: while a longer one is left, `acquire` rejects with `LongPauseError`, and
   * so do calls that wait when it begins. Default: any.
   */
  readonly maxPauseMs?: number | undefined;
}

/** What an answer told about the allowance. */
export interface RateLimitFeedback {
  /** HTTP status. */
  readonly status: number;
  /**
   * How long the service asked to wait, in milliseconds; given for every 429. The limiters of this package wait an hour at
   * most: a longer delay is more likely a mistake, and else the first request after the hour is told the rest.
   */
  readonly retryAfterMs?: number | undefined;
  /**
   * The limit that the answer's headers announced, when they held a positive integer. The limiters of this package believe
   * in up to 1,000 per second, or in up to the configured limit where that is larger.
   */
  readonly announcedLimit?: number | undefined;
  /** How many more requests the answer's headers allow for now, when they held a whole number. */
  readonly remaining?: number | undefined;
  /** How long until the service allows the whole limit again, in milliseconds, when the answer's headers told. */
  readonly resetMs?: number | undefined;
}

/**
 * Permission for one request. Call `send` right before sending and `settle` when the answer's headers arrive; or
 * `cancel` when nothing will be sent.
 *
 * A request that breaks off after `send` (aborted, timed out, connection lost) is simply never settled: the service may
 * have counted it, so its token comes back at the latest moment the service can have done so. A permit that is neither
 * sent nor cancelled gives its token back after a minute; sending it later still counts.
 */
export interface Permit {
  /** Tokens left in the bucket right after this one was granted. */
  readonly tokensLeft: number;
  /** The request leaves now. */
  send(): void;
  /**
   * The answer's headers arrived.
   *
   * @param feedback - what they told
   */
  report(feedback: RateLimitFeedback): void;
  /** The request was not sent: its token is free at once. After `send` it does nothing; the service may have counted the request. */
  cancel(): void;
}

/** State of one bucket at one moment. */
export interface BucketSnapshot {
  /** Requests allowed in a window of one second. */
  readonly limit: number;
  /** Tokens that are out and not back yet. */
  readonly inUse: number;
  /** Calls that wait for a token. */
  readonly queued: number;
  /** When the pause that a 429 asked for ends, in milliseconds since the epoch; null when there is none. */
  readonly pausedUntil: number | null;
}

/**
 * Grants permission to send, so that no window of the service ever sees more requests than it allows.
 *
 * A limiter of your own has to sit out pauses, too: once a permit was settled with status 429, no call of its bucket is granted
 * before `retryAfterMs` is over. And no `acquire` may outlast its `signal` and its `maxWaitMs`.
 */
export interface Limiter {
  /** True when `acquire` itself rejects on `signal` and after `maxWaitMs`, so that nobody else has to watch them. */
  readonly honorsDeadlines?: boolean;
  /**
   * Waits for a token of one bucket. Once it resolved, an abort of the signal no longer gives the token back: look at
   * the signal again before sending, and call `cancel` if it aborted.
   *
   * @param options - which bucket, its limit, the priority, and when to give up
   * @returns a permit for one request
   * @throws QueueFullError when the queue is full; TimeoutError after `maxWaitMs`; LongPauseError when the service asked for
   *   a longer pause than `maxPauseMs`; the signal's reason on abort
   */
  acquire(options: AcquireOptions): Promise<Permit>;
  /**
   * The state of one bucket.
   *
   * @param bucket - which one
   * @returns undefined when nothing was asked of it, or nothing for so long that it was forgotten
   */
  snapshot(bucket: BucketId): BucketSnapshot | undefined;
}

/**
 * The service asked for a pause that is longer than a call waits (`maxPauseMs`). A limiter rejects with it; the client makes a
 * `RateLimitError` of it.
 */
export class LongPauseError extends TrackingError {
  static override readonly kind: string = 'LongPauseError';
  /** What is left of the pause, in milliseconds. */
  readonly pausedForMs: number;

  /** @param pausedForMs - what is left of the pause, in milliseconds */
  constructor(pausedForMs: number) {
    super(`Expected a shorter pause of the rate limit, got one of ${Math.ceil(pausedForMs)} ms`);
    this.pausedForMs = pausedForMs;
  }
}

const CLOCK_METHODS = ['now', 'wallNow', 'setTimeout', 'clearTimeout'] as const;

/** The options that all limiters of this package have. */
export const SETTINGS_SHAPE = {
  maxQueue: countOption(0, true).default(Number.POSITIVE_INFINITY),
  maxUplinkMs: delayOption.default(500),
  reserve: countOption(0).optional(),
  clock: option<Clock>(`an object with the methods ${CLOCK_METHODS.join(', ')}`, (clock) =>
    hasMethods(clock, ...CLOCK_METHODS),
  ).default(() => systemClock),
};

/** What the limiters of this package have in common, after the checks. */
export type LimiterSettings = z.output<z.ZodObject<typeof SETTINGS_SHAPE>>;

const limitsOfBucket = z.object({
  limit: countOption(1),
  maxLimit: countOption(1, true).default(Number.POSITIVE_INFINITY),
});

/** Checks what the first call of a bucket sets. */
export function checkLimits(options: AcquireOptions): z.output<typeof limitsOfBucket> {
  return checkOptions(limitsOfBucket, options);
}
