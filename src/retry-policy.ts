import { checkCount, checkDelayMs, checkKnownOptions } from './option-checks.ts';
import type { RetryOptions } from './options.ts';

/** When a failed attempt is followed by another one; every field is filled. */
export interface RetryPolicy {
  readonly retries: number;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  readonly maxRetryAfterMs: number;
  /** Counts for nothing while `retries` is 0. */
  readonly maxRateLimitRetries: number;
}

export const DEFAULT_RETRY: RetryPolicy = {
  retries: 3,
  minDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 60_000,
  maxRateLimitRetries: 20,
};

/**
 * Checks retry options and fills in what they leave out.
 *
 * @throws ConfigurationError naming the option that makes no sense
 */
export function resolveRetry(value: false | RetryOptions | undefined, base: RetryPolicy): RetryPolicy {
  if (value === undefined) return base;
  if (value === false) return { ...base, retries: 0 };
  checkKnownOptions('retry', value, Object.keys(DEFAULT_RETRY));
  const pick = <Key extends keyof RetryPolicy>(
    key: Key,
    check: (name: string, value: unknown) => number,
  ): number => (value[key] === undefined ? base[key] : check(`retry.${key}`, value[key]));
  const count = (name: string, given: unknown) => checkCount(name, given, 0);
  return {
    retries: pick('retries', count),
    minDelayMs: pick('minDelayMs', checkDelayMs),
    maxDelayMs: pick('maxDelayMs', checkDelayMs),
    maxRetryAfterMs: pick('maxRetryAfterMs', checkDelayMs),
    maxRateLimitRetries: pick('maxRateLimitRetries', count),
  };
}
