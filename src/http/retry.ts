import type { RetryClass } from '../endpoints.ts';
import {
  ApiError,
  ConnectionError,
  QuotaExceededError,
  TimeoutError,
  type TrackingError,
} from '../errors.ts';

/** The rules by which a call repeats a failed attempt. */
export interface RetryRules {
  readonly retryClass: RetryClass;
  readonly retryAmbiguous: boolean;
  readonly maxRetryAfterMs: number;
}

/** Tells whether a failed attempt may be repeated (docs/service.md 1.2, 4.1, 4.5, 8.8). */
export function isRetryable(error: unknown, rules: RetryRules): error is TrackingError {
  const { retryClass, retryAmbiguous, maxRetryAfterMs } = rules;
  if (error instanceof ApiError && (error.retryAfterMs ?? 0) > maxRetryAfterMs) return false;
  // The service counts a request that it refuses with 429 as not made, so even a paid call may be repeated.
  if (isRateLimited(error)) return true;
  // No byte of the request has left.
  if (error instanceof ConnectionError && error.neverSent) return true;
  const isSafe = retryClass === 'safe';
  if (error instanceof ApiError && error.status === 409) return isSafe && error.code === 'request_conflict';
  return isAmbiguous(error) && (isSafe || (retryClass === 'bulk' && retryAmbiguous));
}

/** True for a 429 that ends with its window. A 429 that reports an empty quota does not. */
export function isRateLimited(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 429 && !(error instanceof QuotaExceededError);
}

/** True if nobody knows whether the service carried the request out, and a repeat may succeed. */
function isAmbiguous(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500 || error.status === 408;
  return error instanceof TimeoutError || error instanceof ConnectionError;
}

/** Tells whether the service may have carried out a request that left and then failed. */
export function mayHaveBeenCarriedOut(error: unknown): boolean {
  if (error instanceof ApiError) return error.status < 300 || error.status >= 500 || error.status === 408;
  return !(error instanceof ConnectionError && error.neverSent);
}
