import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  checkHeaders,
  checkOptions,
  choiceOption,
  countOption,
  functionOption,
  hasMethods,
  headersOption,
  type OptionShape,
  switchOption,
  timeoutOption,
} from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ENDPOINT_NAMES, type EndpointName, type TimeoutClass } from '../endpoints.ts';
import { ConfigurationError } from '../errors.ts';
import type { Limiter } from '../limiter/limiter.ts';
import { TokenBucketLimiter } from '../limiter/token-bucket.ts';
import { type Hooks, resolveHooks } from '../observability/hooks.ts';
import {
  LOG_LEVELS,
  type LogAdapter,
  type Logger,
  levelOfEnvironment,
  resolveLogger,
} from '../observability/logger.ts';
import type { RateLimitOptions, TrackingClientOptions } from '../options.ts';
import type { InvalidResponseMode } from '../schemas/envelope.ts';
import { completeRetry, DEFAULT_RETRY, type RetryPolicy, retryOption } from './call-options.ts';

/** The version of this package; a test keeps it equal to the one in package.json. */
export const VERSION = '0.1.0';

/** The options of a client, checked and completed once. */
export interface Config {
  readonly baseUrl: string;
  readonly account: string;
  /** The key, or what gives it for one attempt. */
  readonly apiKey: string | (() => Promise<string>);
  readonly timeoutMs: Readonly<Record<TimeoutClass, number>>;
  readonly totalTimeoutMs: number | undefined;
  readonly retry: RetryPolicy;
  /** Undefined with `rateLimit: false`. */
  readonly limiter: Limiter | undefined;
  readonly limits: Partial<Record<EndpointName, number | undefined>>;
  readonly fetch: typeof globalThis.fetch | undefined;
  /** Accept, user agent and the caller's headers; never the key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly logger: LogAdapter;
  /** Spares most programs the words of a line for every attempt. */
  readonly isDebugLogged: boolean;
  readonly hooks: Hooks;
  readonly invalidResponse: InvalidResponseMode;
  readonly maxAnswerBytes: number;
}

const DEFAULT_TIMEOUT_MS: Record<TimeoutClass, number> = { standard: 30_000, synchronous: 90_000 };
const DEFAULT_MAX_ANSWER_BYTES = 64 * 1024 * 1024;

const limitsObject = z.strictObject(
  Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, countOption(1).optional()])),
);

const rateLimitObject = z.strictObject({
  limits: limitsObject.optional(),
  // Checked by the limiter they set up.
  maxQueue: z.custom<RateLimitOptions['maxQueue']>().optional(),
  maxUplinkMs: z.custom<RateLimitOptions['maxUplinkMs']>().optional(),
  reserve: z.custom<RateLimitOptions['reserve']>().optional(),
} satisfies OptionShape<RateLimitOptions>);

function checkLimiter(limiter: Limiter): Limiter {
  if (hasMethods(limiter, 'acquire', 'snapshot')) return limiter;
  throw new ConfigurationError('Expected `limiter` to have the methods `acquire` and `snapshot`');
}

const clientOptions = z.strictObject({
  baseUrl: z.unknown().optional(),
  apiKey: z.unknown().optional(),
  timeoutMs: timeoutOption.optional(),
  totalTimeoutMs: timeoutOption.optional(),
  retry: retryOption,
  rateLimit: z
    .unknown()
    .transform((value) => (value === false ? value : checkOptions(rateLimitObject, value, 'rateLimit')))
    .optional(),
  limiter: z.custom<Limiter>().transform(checkLimiter).optional(),
  fetch: functionOption<typeof globalThis.fetch>().optional(),
  headers: headersOption('headers').optional(),
  userAgent: z
    .unknown()
    .transform((value) => checkHeaders('userAgent', { 'user-agent': value }))
    .optional(),
  logger: z.custom<Logger>().optional(),
  logLevel: choiceOption(LOG_LEVELS).optional(),
  hooks: z.custom<Hooks>().optional(),
  invalidResponse: choiceOption(['keep', 'throw', 'warn']).default('keep'),
  maxAnswerBytes: countOption(1, true).default(DEFAULT_MAX_ANSWER_BYTES),
  dangerouslyAllowBrowser: switchOption.default(false),
  allowInsecureHttp: switchOption.default(false),
} satisfies OptionShape<TrackingClientOptions>);

export function resolveConfig(options: TrackingClientOptions): Config {
  const given = checkOptions(clientOptions, options);
  rejectBrowser(given.dangerouslyAllowBrowser);
  const { timeoutMs, rateLimit } = given;
  const apiKey = given.apiKey ?? environment('TRACKING_API_KEY');
  const baseUrl = given.baseUrl ?? environment('TRACKING_BASE_URL');
  const logLevel = given.logLevel ?? levelOfEnvironment();
  const logger = resolveLogger(given.logger, logLevel);
  return {
    baseUrl: resolveBaseUrl(baseUrl, given.allowInsecureHttp),
    account: accountOf(apiKey),
    apiKey: keySource(apiKey),
    timeoutMs: timeoutMs === undefined ? DEFAULT_TIMEOUT_MS : { standard: timeoutMs, synchronous: timeoutMs },
    totalTimeoutMs: given.totalTimeoutMs,
    retry: completeRetry(given.retry, DEFAULT_RETRY),
    limiter: resolveLimiter(given.limiter, rateLimit),
    limits: rateLimit ? (rateLimit.limits ?? {}) : {},
    fetch: given.fetch,
    headers: {
      accept: 'application/json',
      'user-agent': defaultUserAgent(),
      ...given.headers,
      ...given.userAgent,
    },
    logger,
    isDebugLogged: logLevel === 'debug',
    hooks: resolveHooks(given.hooks, logger),
    invalidResponse: given.invalidResponse,
    maxAnswerBytes: given.maxAnswerBytes,
  };
}

function environment(name: string): string | undefined {
  return globalThis.process?.env?.[name];
}

function resolveLimiter(
  limiter: Limiter | undefined,
  rateLimit: TrackingClientOptions['rateLimit'] = {},
): Limiter | undefined {
  if (rateLimit === false) {
    if (limiter === undefined) return undefined;
    throw new ConfigurationError('Expected `rateLimit` to be left on when a `limiter` is given, got false');
  }
  const { limits: _limits, ...bucketOptions } = rateLimit;
  if (limiter === undefined) return new TokenBucketLimiter(bucketOptions);
  for (const [name, value] of Object.entries(bucketOptions)) {
    if (value === undefined) continue;
    throw new ConfigurationError(
      `Expected \`rateLimit.${name}\` to be left out where the \`limiter\` is given or shared: it is set up on its own`,
    );
  }
  return limiter;
}

function rejectBrowser(isAllowed: boolean): void {
  const hasBrowserGlobals = 'window' in globalThis && 'document' in globalThis;
  if (!hasBrowserGlobals || isAllowed) return;
  throw new ConfigurationError(
    'Expected to run on a server, got browser globals: every visitor could read the API key. ' +
      'Call the service from your backend, or set `dangerouslyAllowBrowser` where no key is at stake',
  );
}

/** Name and version of this package and of the runtime, e.g. `tracking-client/0.1.0 node/20.19.0`. */
function defaultUserAgent(): string {
  const versions: Readonly<Record<string, string | undefined>> = globalThis.process?.versions ?? {};
  // The others name a version of Node as well.
  const runtime = ['bun', 'deno', 'node'].find((name) => versions[name] !== undefined);
  const own = `tracking-client/${VERSION}`;
  return runtime === undefined ? own : `${own} ${runtime}/${versions[runtime]}`;
}

function checkKey(value: unknown): string {
  const key = typeof value === 'string' ? value.trim() : undefined;
  if (key === undefined || key === '') {
    throw new ConfigurationError(
      `Expected \`apiKey\` to be a non-empty string, got ${kindOf(value)}; pass it, or set TRACKING_API_KEY`,
    );
  }
  // The kind only: the value must never reach a message.
  if (!/^[\x20-\x7e]+$/.test(key) || /["'`\\]/.test(key)) {
    throw new ConfigurationError(
      'Expected `apiKey` to hold visible ASCII characters without quotes and backslashes, got others among them',
    );
  }
  return key;
}

/** A key that does not change is checked at once; a function is asked before every attempt. */
export function keySource(apiKey: unknown): Config['apiKey'] {
  if (typeof apiKey !== 'function') return checkKey(apiKey);
  return async () => {
    let key: unknown;
    try {
      key = await apiKey();
    } catch (cause) {
      throw new ConfigurationError('Expected the `apiKey` function to give a key, got an error', { cause });
    }
    return checkKey(key);
  };
}

/**
 * Names the account for limiters: a hash of the key, never the key. A key that comes from a function can change while
 * the account stays, so all such clients that share a limiter count as one account.
 */
export function accountOf(apiKey: unknown): string {
  if (typeof apiKey !== 'string') return 'dynamic';
  return createHash('sha256').update(apiKey.trim()).digest('hex');
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname)
  );
}

function parse(value: unknown): URL {
  if (value instanceof URL) return new URL(value);
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ConfigurationError(
      `Expected \`baseUrl\` to be a URL, got ${kindOf(value)}; pass it, or set TRACKING_BASE_URL`,
    );
  }
  try {
    return new URL(value.trim());
  } catch {
    throw new ConfigurationError(
      'Expected `baseUrl` to be an absolute URL such as https://host/public/v1, got another string',
    );
  }
}

/** Rejects a URL that would carry the key in the clear, and cuts trailing slashes; the path is kept. */
export function resolveBaseUrl(value: unknown, allowInsecureHttp: boolean): string {
  const url = parse(value);
  if (url.username !== '' || url.password !== '') {
    throw new ConfigurationError(
      'Expected `baseUrl` to hold no credentials, got some; the key goes into `apiKey`',
    );
  }
  if (url.search !== '' || url.hash !== '') {
    throw new ConfigurationError('Expected `baseUrl` to end with its path, got a query or a fragment');
  }
  const isSecure =
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && (allowInsecureHttp || isLoopback(url.hostname)));
  if (!isSecure) {
    throw new ConfigurationError(
      `Expected \`baseUrl\` to be https: (or http: on loopback, or with \`allowInsecureHttp\`), got ${url.protocol}`,
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
