import type { CallOptions } from '../config/call-options.ts';
import type { RetryClass } from '../endpoints.ts';
import {
  ApiError,
  ConnectionError,
  isAccountError,
  QuotaExceededError,
  TimeoutError,
  type TrackingError,
} from '../errors.ts';

/** Tells whether a failed attempt may be retried (docs/service.md 1.2, 4.1, 4.5, 8.8). */
export function isRetryable(
  error: unknown,
  retryClass: RetryClass,
  { retryAmbiguous, retry }: Pick<CallOptions, 'retryAmbiguous' | 'retry'>,
): error is TrackingError {
  if (getRetryAfterMs(error) > retry.maxRetryAfterMs) return false;
  // A request that the service refuses with 429 was not carried out, so even a paid call may be retried.
  if (isRateLimited(error)) return true;
  if (error instanceof ConnectionError && error.isPermanent) return false;
  if (error instanceof ConnectionError && error.neverSent) return true;
  if (error instanceof ApiError && error.status === 409)
    return retryClass === 'safe' && error.code === 'request_conflict';
  return isAmbiguous(error) && (retryClass === 'safe' || (retryClass === 'bulk' && retryAmbiguous));
}

/** Returns how long the service asks to wait, in milliseconds; 0 if it does not ask. */
export function getRetryAfterMs(error: unknown): number {
  return (error instanceof ApiError && error.retryAfterMs) || 0;
}

const MIN_BACKOFF_MS = 500;

/** The waits of p-retry between the attempts of one call. */
export interface Backoff {
  readonly minTimeout: number;
  readonly maxTimeout: number;
}

/** Draws the waits of a call. If all calls had the same waits, calls that fail together would be retried together for ever. */
export function drawBackoff(maxBackoffMs: number): Backoff {
  return {
    minTimeout: MIN_BACKOFF_MS * (1 + Math.random()),
    maxTimeout: maxBackoffMs * (0.5 + Math.random() / 2),
  };
}

/** Returns how long p-retry will wait. It does not tell this before the wait, so its rule is repeated here. */
export function getBackoffMs({ minTimeout, maxTimeout }: Backoff, retriesConsumed: number): number {
  return Math.min(Math.round(minTimeout * 2 ** retriesConsumed), maxTimeout);
}

/** True for a 429 of the rate limit, after which the endpoint pauses (docs/service.md 6.3); false for a 429 of a used-up quota. */
export function isRateLimited(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 429 && !(error instanceof QuotaExceededError);
}

/** True if nobody knows whether the service carried the request out, and a retry may succeed. */
function isAmbiguous(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500 || error.status === 408;
  return error instanceof TimeoutError || error instanceof ConnectionError;
}

/** True for a failure of the network or the service that can pass without a change of settings, account or input. */
export function isOutage(error: unknown): boolean {
  return (isRateLimited(error) || isAmbiguous(error)) && !isAccountError(error);
}

/** True if the service may have carried out the request that failed with this error. */
export function requestMayBeDone(error: unknown): boolean {
  if (error instanceof ApiError) return error.status < 300 || error.status >= 500 || error.status === 408;
  return !(error instanceof ConnectionError && error.neverSent);
}
