import { createHash, randomUUID } from 'node:crypto';
import * as z from 'zod';
import { checkOptions, type ErrorContext, refuseOption, rejectOption } from '../common/check-options.ts';
import { readEnvironment } from '../common/environment.ts';
import { isUrl } from '../common/foreign.ts';
import { expected, kindOf, kindOrNumber } from '../common/messages.ts';
import {
  countOption,
  functionOption,
  hasMethods,
  headersOption,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-schemas.ts';
import { isKey, KEY_RULE, Secret } from '../common/secrets.ts';
import { isUnencrypted, quoteUrl, trimSlashes } from '../common/urls.ts';
import { ENDPOINT_NAMES, endpoints, type TimeoutClass } from '../endpoints.ts';
import { ConfigurationError } from '../errors.ts';
import { LIMITER_SHAPE, type Limiter, type LimiterOptions } from '../limiter/limiter.ts';
import { TokenBucketLimiter } from '../limiter/token-bucket.ts';
import { type Hooks, resolveHooks } from '../observability/hooks.ts';
import { LOG_LEVELS, type LogAdapter, type Logger, resolveLogger } from '../observability/logger.ts';
import type { FetchFunction, RetryOptions, TrackingClientOptions } from '../options.ts';
import { VERSION } from '../version.ts';
import { type CallOptions, resolveCallOptions, retryOption } from './call-options.ts';

export interface Config extends ErrorContext {
  readonly baseUrl: string;
  /** Names the account in bucket ids: the option `account`, else a hash of the key, else a random id. */
  readonly bucketAccount: string;
  readonly apiKey: Secret | (() => Promise<Secret>);
  readonly timeoutMs: Readonly<Record<TimeoutClass, number>>;
  readonly totalTimeoutMs: number | undefined;
  /** The options of the client only; each call adds the defaults, which depend on its method. */
  readonly retry: RetryOptions;
  /** The options of a call that passes none. */
  readonly callDefaults: CallOptions;
  /** Undefined when rate limiting is off. */
  readonly limiter: Limiter | undefined;
  readonly fetch: FetchFunction | undefined;
  /** The default headers and those of the option `headers`, with names in lower case; the API key is never among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly logger: LogAdapter;
  readonly hooks: Hooks;
  /** `keep`: keep the fields of a response that break its schema. `throw`: reject the call. */
  readonly invalidResponse: 'keep' | 'throw';
  readonly maxResponseBytes: number;
}

const isWorkerd = globalThis.navigator?.userAgent === 'Cloudflare-Workers';

const DEFAULT_TIMEOUT_MS: Record<TimeoutClass, number> = { standard: 30_000, synchronous: 90_000 };
const DEFAULT_MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

const clientOptions = z.strictObject({
  baseUrl: z.custom<string | URL>().optional(),
  apiKey: z.custom<NonNullable<TrackingClientOptions['apiKey']>>().optional(),
  timeoutMs: timeoutOption.optional(),
  totalTimeoutMs: timeoutOption.optional(),
  retry: retryOption,
  rateLimit: z.custom<false | LimiterOptions>().optional(),
  account: z.string(expected('to be a non-empty string')).min(1).optional(),
  limiter: option<Limiter>('a TokenBucketLimiter or a RedisLimiter', (value) =>
    hasMethods(value, 'acquire', 'snapshot'),
  ).optional(),
  fetch: functionOption<FetchFunction>().optional(),
  headers: headersOption.optional(),
  logger: z.custom<Logger>().optional(),
  logLevel: z.enum(LOG_LEVELS).optional(),
  hooks: z.custom<Hooks | readonly Hooks[]>().optional(),
  invalidResponse: z.enum(['keep', 'throw']).default('keep'),
  maxResponseBytes: countOption(1, true).default(DEFAULT_MAX_RESPONSE_BYTES),
  allowInsecureHttp: z.boolean().default(false),
} satisfies OptionShape<TrackingClientOptions>);

const limiterOptions = z.strictObject(LIMITER_SHAPE);

export function resolveConfig(options: TrackingClientOptions): Config {
  rejectIncompleteRuntime();
  const givenKey = options?.apiKey ?? readEnvironment('TRACKING_API_KEY');
  const keys = { last: new Secret(typeof givenKey === 'string' ? givenKey.trim() : '') };
  // If `apiKey` is a function, errors and log lines mask the key that it returned last.
  const maskKey = (text: string) => keys.last.mask(text);
  const context = { maskKey };
  const checked = checkOptions(clientOptions, options, undefined, context);
  rejectBrowser();
  const { timeoutMs } = checked;
  const baseUrl = checked.baseUrl ?? readEnvironment('TRACKING_BASE_URL');
  const logger = resolveLogger(checked.logger, checked.logLevel, maskKey);
  const keySource = resolveKey(givenKey, keys);
  const limiter = resolveLimiter(checked.limiter, checked.rateLimit, context);
  const shared = { ...context, totalTimeoutMs: checked.totalTimeoutMs, retry: checked.retry ?? {} };
  const userAgent = [`tracking-client/${VERSION}`, findRuntime()].filter(Boolean).join(' ');
  const headers = { accept: 'application/json', 'user-agent': userAgent, ...checked.headers };
  return {
    baseUrl: resolveBaseUrl(baseUrl, checked.allowInsecureHttp, maskKey),
    bucketAccount: nameBucketAccount(checked.account, keySource, limiter),
    apiKey: keySource,
    ...shared,
    callDefaults: resolveCallOptions(shared, 'request', {}),
    timeoutMs: timeoutMs === undefined ? DEFAULT_TIMEOUT_MS : { standard: timeoutMs, synchronous: timeoutMs },
    limiter,
    fetch: checked.fetch,
    headers,
    logger,
    hooks: resolveHooks(checked.hooks, logger, context),
    invalidResponse: checked.invalidResponse,
    maxResponseBytes: checked.maxResponseBytes,
  };
}

function resolveLimiter(
  limiter: Limiter | undefined,
  rateLimit: TrackingClientOptions['rateLimit'],
  context: ErrorContext,
): Limiter | undefined {
  const isUnset = rateLimit === undefined || rateLimit === false;
  const settings = isUnset ? {} : checkOptions(limiterOptions, rateLimit, 'rateLimit', context);
  // In a Cloudflare Worker a queued call might wait for ever, because a timer ends with the incoming request in which it was set.
  const isOff = rateLimit === false || (rateLimit === undefined && isWorkerd);
  if (limiter === undefined) return isOff ? undefined : new TokenBucketLimiter(settings);
  if (rateLimit === undefined) return limiter;
  const advice =
    rateLimit === false ? 'leave out one of them' : 'pass `limits` and `maxQueue` to the limiter instead';
  throw new ConfigurationError(`Both \`rateLimit\` and \`limiter\` are set; ${advice}`);
}

/** Refuses a runtime or a test environment without the classes that a client needs before its first request. */
function rejectIncompleteRuntime(): void {
  const { AbortController, Headers, URL } = globalThis;
  const needed = { AbortController, Headers, URL, 'URL.canParse': Reflect.get(Object(URL), 'canParse') };
  const [missing] = Object.entries(needed).find(([, value]) => typeof value !== 'function') ?? [];
  if (missing === undefined) return;
  const advice = 'use Node 20 or later; if this is a test in jsdom, run it in the environment `node`';
  throw new ConfigurationError(`This runtime has no global \`${missing}\`; ${advice}`);
}

/** Refuses to run in a browser (docs/service.md 1.7), but not in a test environment such as jsdom, which runs in Node. */
function rejectBrowser(): void {
  if (!('document' in globalThis) || findRuntime() !== undefined) return;
  throw new ConfigurationError(
    'TrackingClient does not run in a browser, where every visitor could read the API key; call the service from your backend',
  );
}

function findRuntime(): string | undefined {
  const versions: Readonly<Record<string, string | undefined>> = globalThis.process?.versions ?? {};
  // Bun and Deno report a version of Node, too, so their own versions are looked for first.
  const name = ['bun', 'deno', 'node'].find((candidate) => versions[candidate] !== undefined);
  return name && `${name}/${versions[name]}`;
}

function checkKey(value: unknown, verb: 'be' | 'return'): string {
  const key = typeof value === 'string' ? value.trim() : '';
  if (key === '') refuseOption('apiKey', 'a non-empty string', value, kindOrNumber, verb);
  if (/^(?:authorization\s*:\s*)?bearer\s/i.test(key))
    refuseOption('apiKey', 'the key alone (remove `Bearer`, which the client adds)', value, kindOf, verb);
  if (!isKey(key)) refuseOption('apiKey', KEY_RULE, value, kindOf, verb);
  return key;
}

/** @param keys - remembers the key that the function returned last */
function resolveKey(apiKey: unknown, keys: { last: Secret }): Config['apiKey'] {
  if (apiKey === undefined || (typeof apiKey === 'string' && apiKey.trim() === ''))
    return rejectOption('apiKey', 'is missing', 'pass it, or set TRACKING_API_KEY');
  if (typeof apiKey !== 'function') return new Secret(checkKey(apiKey, 'be'));
  return async () => {
    let key: unknown;
    try {
      key = await apiKey();
    } catch (cause) {
      throw new ConfigurationError('The `apiKey` function threw an error, so nothing was sent; see `cause`', {
        option: 'apiKey',
        rule: 'threw an error',
        // Only a few fields of the error are copied: the others may contain the request to a vault, with its credentials.
        cause: keys.last.maskCause(cause),
      });
    }
    const text = checkKey(key, 'return');
    if (text !== keys.last.text) keys.last = new Secret(text);
    return keys.last;
  };
}

function nameBucketAccount(
  account: string | undefined,
  apiKey: Config['apiKey'],
  limiter: Limiter | undefined,
): string {
  if (account !== undefined) return account;
  if (typeof apiKey !== 'function') return createHash('sha256').update(apiKey.text).digest('hex');
  if (limiter?.spansProcesses) {
    throw new ConfigurationError(
      '`account` is missing. If `apiKey` is a function, a RedisLimiter cannot tell which account a key belongs to; set `account` to the same name in all processes of the account',
      { option: 'account', rule: 'is missing' },
    );
  }
  return randomUUID();
}

/** Finds the path of an endpoint at the end of the base URL; the paths with an id are left out, because an id can be any text. */
function findEndpointPath(pathname: string): string | undefined {
  const path = trimSlashes(pathname);
  const paths = ENDPOINT_NAMES.map((name) => endpoints[name].path).filter((each) => !each.includes('{'));
  return paths.find((each) => path.endsWith(each));
}

/** Refuses a URL that would send the key unencrypted (docs/service.md 1.7), and keeps the path but no trailing slash (1.6). */
function resolveBaseUrl(
  value: unknown,
  allowInsecureHttp: boolean,
  maskKey: (text: string) => string,
): string {
  const text = isUrl(value) ? value.href : value;
  if (text === undefined || text === '') {
    return rejectOption(
      'baseUrl',
      'is missing',
      'pass it, or set TRACKING_BASE_URL, as in https://api.example.com/public/v1',
    );
  }
  if (typeof text !== 'string') return refuseOption('baseUrl', 'a string or a URL', value);
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return rejectOption(
      'baseUrl',
      `(${maskKey(quoteUrl(text))}) is not an https:// URL`,
      'write it as in https://api.example.com/public/v1',
    );
  }
  const { username, password, origin, pathname, search, hash } = url;
  if (username !== '' || password !== '')
    rejectOption(
      'baseUrl',
      'contains a user name or a password',
      'remove it, and pass the API key as `apiKey`',
    );
  if (search !== '' || hash !== '')
    rejectOption('baseUrl', 'contains a query (`?`) or a fragment (`#`)', 'remove it');
  const endpointPath = findEndpointPath(pathname);
  if (endpointPath !== undefined) {
    rejectOption(
      'baseUrl',
      `ends with the path of an endpoint, ${endpointPath}`,
      'remove it, so that the URL ends with the version, as in https://api.example.com/public/v1',
    );
  }
  if (!allowInsecureHttp && isUnencrypted(text)) {
    rejectOption(
      'baseUrl',
      'begins with http://, so the API key would be sent unencrypted',
      'use https://, or set `allowInsecureHttp`',
    );
  }
  return origin + trimSlashes(pathname);
}
