import {
  checkCount,
  checkDelayMs,
  checkHeaders,
  checkKnownOptions,
  checkOneOf,
  checkTimeoutMs,
} from '../common/option-checks.ts';
import { ENDPOINT_NAMES, type Endpoint, type EndpointName, endpoints } from '../endpoints.ts';
import { ConfigurationError } from '../errors.ts';
import type { BulkRequestOptions, RequestOptions, RetryOptions } from '../options.ts';
import type { Config } from './config.ts';

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

/** The options of one call, checked and completed. */
export interface CallOptions {
  readonly signal: AbortSignal | undefined;
  /** Undefined: the client's, by timeout class. */
  readonly timeoutMs: number | undefined;
  readonly totalTimeoutMs: number | undefined;
  readonly retry: RetryPolicy;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly priority: 'interactive' | 'background';
}

// Typed against the options, so an option without an entry here does not compile.
/** The names of what every call takes. */
export const CALL_OPTIONS = Object.keys({
  signal: true,
  timeoutMs: true,
  totalTimeoutMs: true,
  retry: true,
  headers: true,
  priority: true,
} satisfies Record<keyof RequestOptions, true>);

// Typed against the options, so an option without an entry here does not compile.
const BULK_OPTIONS = Object.keys({ retryAmbiguous: true } satisfies Record<
  Exclude<keyof BulkRequestOptions, keyof RequestOptions>,
  true
>);

function optionsOf({ request, retryClass }: Endpoint): readonly string[] {
  // The query of an endpoint stands among the options of its method.
  const query = request.query === undefined ? [] : Object.keys(Object(request.query).shape);
  return [...query, ...CALL_OPTIONS, ...(retryClass === 'bulk' ? BULK_OPTIONS : [])];
}

/** The names of the options of each endpoint's method, so that what another method takes is not ignored here. */
export const METHOD_OPTIONS: ReadonlyMap<EndpointName, readonly string[]> = new Map(
  ENDPOINT_NAMES.map((name) => [name, optionsOf(endpoints[name])]),
);

function isAbortSignal(value: unknown): value is AbortSignal {
  // By shape: a test environment may have an AbortSignal of its own.
  const isObject = typeof value === 'object' && value !== null;
  return isObject && 'aborted' in value && 'addEventListener' in value;
}

/**
 * Checks and completes the options of one call.
 *
 * @throws ConfigurationError naming the option that makes no sense
 */
export function resolveCallOptions(config: Config, options: RequestOptions = {}): CallOptions {
  const { signal, timeoutMs, totalTimeoutMs, retry, headers, priority } = options;
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new ConfigurationError('Expected `signal` to be an AbortSignal');
  }
  return {
    signal,
    timeoutMs: timeoutMs === undefined ? undefined : checkTimeoutMs('timeoutMs', timeoutMs),
    totalTimeoutMs:
      totalTimeoutMs === undefined ? config.totalTimeoutMs : checkTimeoutMs('totalTimeoutMs', totalTimeoutMs),
    retry: resolveRetry(retry, config.retry),
    headers: headers === undefined ? undefined : checkHeaders('headers', headers),
    priority: checkOneOf('priority', priority ?? 'interactive', ['interactive', 'background']),
  };
}
