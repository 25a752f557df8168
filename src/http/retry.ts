import { ApiError, QuotaExceededError } from '../api-errors.ts';
import type { RetryPolicy } from '../config/call-options.ts';
import type { RetryClass } from '../endpoints.ts';
import { ConnectionError, TimeoutError, type TrackingError } from '../errors.ts';

/** What to do about a failed attempt. */
export type RetryDecision =
  | { readonly kind: 'stop' }
  /** Another attempt after the wait the service asked for; uses up no back-off. */
  | { readonly kind: 'rate-limited'; readonly delayMs: number }
  | { readonly kind: 'backoff'; readonly delayMs: number };

/** What was tried before. */
export interface RetryHistory {
  /** Back-offs that were used up. */
  readonly backoffs: number;
  /** Answers of 429 that were waited out. */
  readonly rateLimits: number;
}

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
  history: RetryHistory,
): RetryDecision {
  const { policy } = call;
  const askedMs = error instanceof ApiError ? error.retryAfterMs : undefined;
  if (askedMs !== undefined && askedMs > policy.maxRetryAfterMs) return STOP;
  if (isRateLimited(error)) {
    if (policy.retries === 0 || history.rateLimits >= policy.maxRateLimitRetries) return STOP;
    return { kind: 'rate-limited', delayMs: askedMs ?? 0 };
  }
  if (history.backoffs >= policy.retries || !mayRepeat(error, call.retryClass, call.retryAmbiguous))
    return STOP;
  return { kind: 'backoff', delayMs: Math.max(askedMs ?? 0, backoffDelayMs(policy, history.backoffs)) };
}
