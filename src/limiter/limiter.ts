import { TrackingError } from '../errors.ts';

/** Which of two waiting calls goes first. */
export type Priority = 'interactive' | 'background';

/** Names a bucket. The calls of one account to one endpoint of one service share its allowance. */
export interface BucketId {
  /** Origin and path of the service, without a trailing slash. */
  readonly baseUrl: string;
  /** Names the account, e.g. by a hash of its API key; never the key. */
  readonly account: string;
  /** Endpoint name, e.g. `trackers.results`; `request` for paths outside the table. */
  readonly endpoint: string;
}

/** The options of `acquire`. */
export interface AcquireOptions {
  /** The bucket that the request counts against. */
  readonly bucket: BucketId;
  /** Requests allowed per second, until the service announces another number; the first call of a bucket sets it. */
  readonly limit: number;
  /** Announced limits never raise the limit above this; the first call of a bucket sets it. Default: no bound. */
  readonly maxLimit?: number | undefined;
  /** Which lane of the queue the call waits in. */
  readonly priority: Priority;
  /** Gives up the place in the queue; the rejection is the signal's own reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Longest pause that the call waits for, in milliseconds; a longer one rejects with `LongPauseError`. Default: any. */
  readonly maxPauseMs?: number | undefined;
}

/** The rate limit as a response describes it. */
export interface RateLimitFeedback {
  /** HTTP status. */
  readonly status: number;
  /** How long the service asked to wait after a 429, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** The limit that the headers announced. */
  readonly announcedLimit?: number | undefined;
  /** How many more requests the headers allow in this window. */
  readonly remaining?: number | undefined;
  /** How long until the limit resets, in milliseconds, as the headers told. */
  readonly resetMs?: number | undefined;
}

/**
 * Permission for one request. Call `send` right before sending and `report` when the headers of the response arrive, or
 * `cancel` if nothing will be sent. A request that breaks after `send` is never reported, since the service may have
 * counted it; its token comes back at the latest moment.
 */
export interface Permit {
  /** Tokens left in the bucket right after this one was granted. */
  readonly tokensLeft: number;
  /** The request leaves now. */
  send(): void;
  /** The headers of the response arrived. */
  report(feedback: RateLimitFeedback): void;
  /** Nothing was sent, so the token is free at once. Does nothing after `send`. */
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
  /** When the pause that a 429 asked for ends, in milliseconds since the epoch; null if there is none. */
  readonly pausedUntil: number | null;
}

/** Grants permission to send, so that no window of the service sees more requests than it allows. */
export interface Limiter {
  /** True if processes share the allowance, so that the account needs a name which is the same in all of them. */
  readonly spansProcesses: boolean;
  /**
   * Waits for a token of one bucket. After it resolved, an abort no longer gives the token back.
   *
   * @param options - which bucket, its limit, the priority, and when to give up
   * @returns a permit for one request
   * @throws QueueFullError if the queue is full; LongPauseError if more than `maxPauseMs` of a pause is left; the
   *   signal's own reason on abort
   * @internal
   */
  acquire(options: AcquireOptions): Promise<Permit>;
  /**
   * The state of one bucket.
   *
   * @param bucket - which one
   * @returns undefined if the bucket was not used yet, or not for so long that it was forgotten
   * @internal
   */
  snapshot(bucket: BucketId): BucketSnapshot | undefined;
}

/** The service asked for a longer pause than a call waits for; the client turns it into a `RateLimitError`. */
export class LongPauseError extends TrackingError {
  static override readonly kind: string = 'LongPauseError';
  /** The rest of the pause, in milliseconds. */
  readonly pausedForMs: number;

  /** @param pausedForMs - what is left of the pause, in milliseconds */
  constructor(pausedForMs: number) {
    super(`Expected a shorter pause of the rate limit, got one of ${Math.ceil(pausedForMs)} ms`);
    this.pausedForMs = pausedForMs;
  }
}

// The rules of tokens, which every limiter keeps.

/** The window in which the service counts, in milliseconds. */
export const WINDOW_MS = 1_000;

/** From a response to the return of its token: a window, and a guard because no two clocks run equally fast. */
export const RETURN_MS = WINDOW_MS + 10;

/** Longest time in milliseconds from sending a request to the service counting it, with DNS, TCP and TLS. */
export const MAX_UPLINK_MS = 500;

/** From sending a request to the return of its token at the latest, whenever the response comes. */
export const MAX_RETURN_MS = MAX_UPLINK_MS + RETURN_MS;

/** How long a token stays with a caller that neither sends nor cancels, in milliseconds. */
export const UNSENT_LEASE_MS = 60_000;

/** Longest pause after a 429, in milliseconds; a longer delay is more likely a mistake, such as a timestamp. */
export const MAX_PAUSE_MS = 60 * 60 * 1_000;

/** An announced limit raises the table's value at most by this factor: an hourly quota is no limit per second. */
export const MAX_RAISE_FACTOR = 5;

/** From this limit on, background calls leave one token free for interactive ones. */
const RESERVE_FROM_LIMIT = 10;

/** How many tokens background calls leave free. */
export function reservedTokens(limit: number): number {
  return limit >= RESERVE_FROM_LIMIT ? 1 : 0;
}

/** How long a 429 pauses its endpoint, in milliseconds: what the service asked for, else one window. */
export function computePauseMs({ retryAfterMs = WINDOW_MS }: RateLimitFeedback): number {
  const isDelay = Number.isFinite(retryAfterMs) && retryAfterMs >= 0;
  return isDelay ? Math.min(retryAfterMs, MAX_PAUSE_MS) : WINDOW_MS;
}

/**
 * The limit that holds after a response.
 *
 * @param feedback - what the response told
 * @param current - the limit so far
 * @param configured - the limit of the table, and the bound of the user
 * @returns requests per second
 */
export function computeLimit(
  { announcedLimit, resetMs }: RateLimitFeedback,
  current: number,
  configured: { readonly limit: number; readonly maxLimit: number },
): number {
  const base = Math.min(configured.limit, configured.maxLimit);
  // A longer reset shows that the announced numbers are those of an hour or a day, so they never justified a raise.
  const isLongWindow = resetMs !== undefined && resetMs > WINDOW_MS;
  const unraised = isLongWindow ? Math.min(current, base) : current;
  if (announcedLimit === undefined || !Number.isSafeInteger(announcedLimit) || announcedLimit < 1)
    return unraised;
  if (announcedLimit <= base) return announcedLimit;
  // Back to the configured limit at least, as far as a lower one was announced before.
  if (resetMs === undefined || isLongWindow) return Math.max(unraised, base);
  return Math.min(announcedLimit, base * MAX_RAISE_FACTOR, configured.maxLimit);
}
