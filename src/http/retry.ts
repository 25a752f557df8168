import type { RetryPolicy } from '../config/call-options.ts';
import type { RetryClass } from '../endpoints.ts';
import {
  ApiError,
  ConnectionError,
  QuotaExceededError,
  TimeoutError,
  type TrackingError,
} from '../errors.ts';

/** What to do about a failed attempt; waiting out a 429 uses up no back-off. */
type RetryDecision =
  | { readonly kind: 'stop' }
  | { readonly kind: 'rate-limited' | 'backoff'; readonly delayMs: number };

const STOP: RetryDecision = { kind: 'stop' };

/** True for a 429 that comes back with the next window: a code may say more than the status, and an empty quota does not. */
export function isRateLimited(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 429 && !(error instanceof QuotaExceededError);
}

/** True where the service may have carried the request out, and we can't know. */
function isAmbiguous(error: TrackingError): boolean {
  if (error instanceof ConnectionError) return !error.neverSent;
  if (error instanceof TimeoutError) return true;
  return error instanceof ApiError && (error.status >= 500 || error.status === 408);
}

function mayRepeat(error: TrackingError, retryClass: RetryClass, retryAmbiguous: boolean): boolean {
  if (error instanceof ConnectionError && error.neverSent) return true;
  if (isAmbiguous(error)) return retryClass === 'safe' || (retryClass === 'bulk' && retryAmbiguous);
  const isConflict = error instanceof ApiError && error.status === 409 && error.code === 'request_conflict';
  return isConflict && retryClass === 'safe';
}

/** Exponential back-off with full jitter: anything from nothing to the bound, so that clients do not meet again. */
export function backoffDelayMs(
  policy: RetryPolicy,
  backoffs: number,
  random: () => number = Math.random,
): number {
  const bound = Math.min(policy.maxDelayMs, policy.minDelayMs * 2 ** backoffs);
  return Math.round(random() * bound);
}

/** Decides about one failed attempt (the table of retry classes). */
export function decideRetry(
  error: TrackingError,
  call: { readonly retryClass: RetryClass; readonly retryAmbiguous: boolean; readonly policy: RetryPolicy },
  history: { readonly backoffs: number; readonly rateLimits: number },
): RetryDecision {
  const { policy } = call;
  const askedMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  if (askedMs > policy.maxRetryAfterMs) return STOP;
  if (isRateLimited(error)) {
    if (policy.retries === 0 || history.rateLimits >= policy.maxRateLimitRetries) return STOP;
    return { kind: 'rate-limited', delayMs: askedMs };
  }
  if (history.backoffs >= policy.retries) return STOP;
  if (!mayRepeat(error, call.retryClass, call.retryAmbiguous)) return STOP;
  return { kind: 'backoff', delayMs: Math.max(askedMs, backoffDelayMs(policy, history.backoffs)) };
}
