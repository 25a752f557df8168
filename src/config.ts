import { accountOf, type KeySource, keySource } from './api-key.ts';
import { resolveBaseUrl } from './base-url.ts';
import { ENDPOINT_NAMES, type EndpointName, type TimeoutClass } from './endpoints.ts';
import { ConfigurationError } from './errors.ts';
import { type Hooks, resolveHooks } from './hooks.ts';
import type { Limiter } from './limiter/limiter.ts';
import { TokenBucketLimiter } from './limiter/token-bucket.ts';
import { checkLogger, LOG_LEVELS, type Logger, leveledLogger } from './logger.ts';
import {
  checkCount,
  checkDelayMs,
  checkHeaders,
  checkKnownOptions,
  checkOneOf,
  checkTimeoutMs,
} from './option-checks.ts';
import type { RateLimitOptions, RequestOptions, RetryOptions, TrackingClientOptions } from './options.ts';
import type { BulkRequestOptions, TrackerRequestOptions } from './resources/request-options.ts';
import { defaultUserAgent } from './user-agent.ts';

/** When a failed attempt is followed by another one; every field is filled. */
export interface RetryPolicy {
  readonly retries: number;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  readonly maxRetryAfterMs: number;
  /** Counts for nothing while `retries` is 0. */
  readonly maxRateLimitRetries: number;
}

/** The options of a client, checked and completed once. */
export interface Config {
  readonly baseUrl: string;
  readonly account: string;
  readonly apiKey: KeySource;
  readonly timeoutMs: Readonly<Record<TimeoutClass, number>>;
  readonly totalTimeoutMs: number | undefined;
  readonly retry: RetryPolicy;
  /** Undefined with `rateLimit: false`. */
  readonly limiter: Limiter | undefined;
  readonly limits: Partial<Record<EndpointName, number>>;
  readonly fetch: typeof globalThis.fetch | undefined;
  /** Accept, user agent and the caller's headers; never the key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly logger: Logger;
  readonly hooks: Hooks;
  readonly invalidResponse: 'throw' | 'warn';
}

/** What the options of any method may hold. */
type EveryCallOption = TrackerRequestOptions & BulkRequestOptions;

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

const DEFAULT_TIMEOUT_MS: Record<TimeoutClass, number> = { standard: 30_000, synchronous: 90_000 };
const DEFAULT_RETRY: RetryPolicy = {
  retries: 3,
  minDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 60_000,
  maxRateLimitRetries: 20,
};

// Typed against the options, so an option without an entry here does not compile.
const KNOWN_OPTIONS = {
  baseUrl: true,
  apiKey: true,
  timeoutMs: true,
  totalTimeoutMs: true,
  retry: true,
  rateLimit: true,
  limiter: true,
  fetch: true,
  headers: true,
  userAgent: true,
  logger: true,
  logLevel: true,
  hooks: true,
  invalidResponse: true,
  dangerouslyAllowBrowser: true,
  allowInsecureHttp: true,
} satisfies Record<keyof TrackingClientOptions, true>;

const KNOWN_RATE_LIMIT_OPTIONS = {
  limits: true,
  maxQueue: true,
  maxUplinkMs: true,
  reserve: true,
} satisfies Record<keyof RateLimitOptions, true>;

function environment(name: string): string | undefined {
  return globalThis.process?.env?.[name];
}

function resolveRetry(value: false | RetryOptions | undefined, base: RetryPolicy): RetryPolicy {
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

function resolveLimits(limits: RateLimitOptions['limits']): Partial<Record<EndpointName, number>> {
  if (limits === undefined) return {};
  checkKnownOptions('rateLimit.limits', limits, ENDPOINT_NAMES);
  for (const [name, limit] of Object.entries(limits)) {
    if (limit !== undefined) checkCount(`rateLimit.limits["${name}"]`, limit, 1);
  }
  return { ...limits };
}

function resolveLimiter(options: TrackingClientOptions): Limiter | undefined {
  const { limiter, rateLimit } = options;
  if (rateLimit === false) {
    if (limiter === undefined) return undefined;
    throw new ConfigurationError('Expected `rateLimit` to be left on when a `limiter` is given, got false');
  }
  if (rateLimit !== undefined)
    checkKnownOptions('rateLimit', rateLimit, Object.keys(KNOWN_RATE_LIMIT_OPTIONS));
  if (limiter !== undefined) {
    if (typeof limiter.acquire === 'function' && typeof limiter.snapshot === 'function') return limiter;
    throw new ConfigurationError('Expected `limiter` to have the methods `acquire` and `snapshot`');
  }
  const { limits: _limits, ...bucketOptions } = rateLimit ?? {};
  return new TokenBucketLimiter(bucketOptions);
}

function resolveHeaders(options: TrackingClientOptions): Readonly<Record<string, string>> {
  const { userAgent } = options;
  return {
    accept: 'application/json',
    'user-agent': defaultUserAgent(),
    ...(options.headers === undefined ? {} : checkHeaders('headers', options.headers)),
    ...(userAgent === undefined ? {} : checkHeaders('userAgent', { 'user-agent': userAgent })),
  };
}

function refuseBrowser(isAllowed: boolean): void {
  const hasBrowserGlobals = 'window' in globalThis && 'document' in globalThis;
  if (!hasBrowserGlobals || isAllowed) return;
  throw new ConfigurationError(
    'Expected to run on a server, got browser globals: every visitor could read the API key. ' +
      'Call the service from your backend, or set `dangerouslyAllowBrowser` where no key is at stake',
  );
}

/**
 * Checks and completes the options of a client.
 *
 * @throws ConfigurationError naming the option that is missing or makes no sense
 */
export function resolveConfig(options: TrackingClientOptions): Config {
  checkKnownOptions('options', options, Object.keys(KNOWN_OPTIONS));
  refuseBrowser(options.dangerouslyAllowBrowser === true);
  const apiKey = options.apiKey ?? environment('TRACKING_API_KEY');
  const timeoutMs =
    options.timeoutMs === undefined ? undefined : checkTimeoutMs('timeoutMs', options.timeoutMs);
  if (options.fetch !== undefined && typeof options.fetch !== 'function') {
    throw new ConfigurationError('Expected `fetch` to be a function');
  }
  return {
    baseUrl: resolveBaseUrl(
      options.baseUrl ?? environment('TRACKING_BASE_URL'),
      options.allowInsecureHttp === true,
    ),
    account: accountOf(apiKey),
    apiKey: keySource(apiKey),
    timeoutMs: timeoutMs === undefined ? DEFAULT_TIMEOUT_MS : { standard: timeoutMs, synchronous: timeoutMs },
    totalTimeoutMs:
      options.totalTimeoutMs === undefined
        ? undefined
        : checkTimeoutMs('totalTimeoutMs', options.totalTimeoutMs),
    retry: resolveRetry(options.retry, DEFAULT_RETRY),
    limiter: resolveLimiter(options),
    limits: options.rateLimit ? resolveLimits(options.rateLimit.limits) : {},
    fetch: options.fetch,
    headers: resolveHeaders(options),
    logger: leveledLogger(
      options.logger === undefined ? console : checkLogger(options.logger),
      checkOneOf('logLevel', options.logLevel ?? 'warn', LOG_LEVELS),
    ),
    hooks: resolveHooks(options.hooks),
    invalidResponse: checkOneOf('invalidResponse', options.invalidResponse ?? 'throw', ['throw', 'warn']),
  };
}

// Typed against the options, so an option without an entry here does not compile.
const KNOWN_CALL_OPTIONS = Object.keys({
  signal: true,
  timeoutMs: true,
  totalTimeoutMs: true,
  retry: true,
  headers: true,
  priority: true,
  searchBy: true,
  retryAmbiguous: true,
} satisfies Record<keyof EveryCallOption, true>);

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

/**
 * Checks that the options of a single call hold nothing unknown, so that a typo does not pass silently.
 *
 * @throws ConfigurationError naming the unknown option and the one that was meant
 */
export function checkCallOptionNames(options: unknown): void {
  if (options !== undefined) checkKnownOptions('options', options, KNOWN_CALL_OPTIONS);
}
