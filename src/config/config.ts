import {
  checkBoolean,
  checkCount,
  checkHeaders,
  checkKnownOptions,
  checkOneOf,
  checkTimeoutMs,
} from '../common/option-checks.ts';
import { ENDPOINT_NAMES, type EndpointName, type TimeoutClass } from '../endpoints.ts';
import { ConfigurationError } from '../errors.ts';
import type { Limiter } from '../limiter/limiter.ts';
import { TokenBucketLimiter } from '../limiter/token-bucket.ts';
import { checkLogger, type Hooks, LOG_LEVELS, type Logger, leveledLogger, resolveHooks } from '../logging.ts';
import type { RateLimitOptions, TrackingClientOptions } from '../options.ts';
import { accountOf, type KeySource, keySource } from './api-key.ts';
import { resolveBaseUrl } from './base-url.ts';
import { DEFAULT_RETRY, type RetryPolicy, resolveRetry } from './call-options.ts';

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
  readonly maxAnswerBytes: number;
}

const DEFAULT_TIMEOUT_MS: Record<TimeoutClass, number> = { standard: 30_000, synchronous: 90_000 };
const DEFAULT_MAX_ANSWER_BYTES = 64 * 1024 * 1024;

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
  maxAnswerBytes: true,
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

function resolveLimits(limits: RateLimitOptions['limits']): Partial<Record<EndpointName, number>> {
  if (limits === undefined) return {};
  checkKnownOptions('rateLimit.limits', limits, ENDPOINT_NAMES);
  for (const [name, limit] of Object.entries(limits)) {
    if (limit !== undefined) checkCount(`rateLimit.limits["${name}"]`, limit, 1);
  }
  return { ...limits };
}

function checkLimiter(limiter: Limiter): Limiter {
  // `Object` makes something with properties of null, too: options come from callers without types.
  const { acquire, snapshot } = Object(limiter);
  if (typeof acquire === 'function' && typeof snapshot === 'function') return limiter;
  throw new ConfigurationError('Expected `limiter` to have the methods `acquire` and `snapshot`');
}

function resolveLimiter({ limiter, rateLimit = {} }: TrackingClientOptions): Limiter | undefined {
  if (rateLimit === false) {
    if (limiter === undefined) return undefined;
    throw new ConfigurationError('Expected `rateLimit` to be left on when a `limiter` is given, got false');
  }
  checkKnownOptions('rateLimit', rateLimit, Object.keys(KNOWN_RATE_LIMIT_OPTIONS));
  const { limits: _limits, ...bucketOptions } = rateLimit;
  if (limiter === undefined) return new TokenBucketLimiter(bucketOptions);
  for (const [name, value] of Object.entries(bucketOptions)) {
    if (value === undefined) continue;
    throw new ConfigurationError(
      `Expected \`rateLimit.${name}\` to be left out where the \`limiter\` is given or shared: it is set up on its own`,
    );
  }
  return checkLimiter(limiter);
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
  const { dangerouslyAllowBrowser = false, allowInsecureHttp = false } = options;
  refuseBrowser(checkBoolean('dangerouslyAllowBrowser', dangerouslyAllowBrowser));
  const apiKey = options.apiKey ?? environment('TRACKING_API_KEY');
  const timeoutMs =
    options.timeoutMs === undefined ? undefined : checkTimeoutMs('timeoutMs', options.timeoutMs);
  if (options.fetch !== undefined && typeof options.fetch !== 'function') {
    throw new ConfigurationError('Expected `fetch` to be a function');
  }
  return {
    baseUrl: resolveBaseUrl(
      options.baseUrl ?? environment('TRACKING_BASE_URL'),
      checkBoolean('allowInsecureHttp', allowInsecureHttp),
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
    maxAnswerBytes: checkCount('maxAnswerBytes', options.maxAnswerBytes ?? DEFAULT_MAX_ANSWER_BYTES, 1, true),
  };
}

/** Name and version of this package and of the runtime, e.g. `tracking-client/0.1.0 node/20.19.0`. */
export function defaultUserAgent(): string {
  const { process } = globalThis;
  const runtime = process?.versions?.['bun'] ?? process?.versions?.['deno'];
  const name = process?.versions?.['bun'] !== undefined ? 'bun' : runtime === undefined ? 'node' : 'deno';
  const nodeVersion = process?.versions?.node;
  const own = `tracking-client/${VERSION}`;
  return nodeVersion === undefined ? own : `${own} ${name}/${runtime ?? nodeVersion}`;
}

/** The version of this package; a test keeps it equal to the one in package.json. */
export const VERSION = '0.1.0';
