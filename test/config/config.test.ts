import { afterEach, describe, expect, test, vi } from 'vitest';
import { resolveConfig, VERSION } from '../../src/config/config.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import type { TrackingClientOptions } from '../../src/options.ts';

const base = { baseUrl: 'https://host.test/v1', apiKey: 'key' };
/** Options as a caller without types could give them. */
const resolve = (options: Record<string, unknown>) =>
  resolveConfig({ ...base, ...options } as TrackingClientOptions);

afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

describe('defaults', () => {
  test('nothing but base URL and key → the documented values', () => {
    expect(resolveConfig(base)).toMatchObject({
      timeoutMs: { standard: 30_000, synchronous: 90_000 },
      totalTimeoutMs: undefined,
      retry: {
        retries: 3,
        minDelayMs: 500,
        maxDelayMs: 30_000,
        maxRetryAfterMs: 60_000,
        maxRateLimitRetries: 20,
      },
      limits: {},
      hooks: {},
      invalidResponse: 'keep',
      fetch: undefined,
    });
  });

  test('no limiter given → a token bucket limiter', () => {
    expect(resolveConfig(base).limiter).toBeInstanceOf(TokenBucketLimiter);
  });

  test('user agent and accept → name and version of the package and the runtime, JSON', () => {
    expect(resolveConfig(base).headers).toEqual({
      accept: 'application/json',
      'user-agent': `tracking-client/${VERSION} node/${process.versions.node}`,
    });
  });
});

describe('environment', () => {
  test('no options → base URL and key from the environment', () => {
    vi.stubEnv('TRACKING_BASE_URL', 'https://env.test/v1/');
    vi.stubEnv('TRACKING_API_KEY', ' env-key ');
    const config = resolveConfig({});
    expect(config.baseUrl).toBe('https://env.test/v1');
    expect(config.apiKey).toBe('env-key');
  });

  test('options → win over the environment', () => {
    vi.stubEnv('TRACKING_BASE_URL', 'https://env.test/v1/');
    vi.stubEnv('TRACKING_API_KEY', 'env-key');
    const config = resolveConfig(base);
    expect(config.baseUrl).toBe('https://host.test/v1');
    expect(config.apiKey).toBe('key');
  });

  test('an empty key → ConfigurationError, not the key of the environment', () => {
    vi.stubEnv('TRACKING_API_KEY', 'env-key');
    expect(() => resolve({ apiKey: '' })).toThrow(/^Expected `apiKey` to be a non-empty string/);
  });

  test.each([
    ['baseUrl', 'TRACKING_BASE_URL'],
    ['apiKey', 'TRACKING_API_KEY'],
  ])('no %s anywhere → ConfigurationError that names both ways', (option, variable) => {
    vi.stubEnv(variable, undefined);
    expect(() => resolve({ [option]: undefined })).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringMatching(new RegExp(`\`${option}\`.*${variable}`)),
      }),
    );
  });
});

describe('options that make no sense → ConfigurationError that names them', () => {
  test.each([0, Number.NaN, -1, 2 ** 31, Number.POSITIVE_INFINITY, '5', null])(
    'timeoutMs %s',
    (timeoutMs) => {
      expect(() => resolve({ timeoutMs })).toThrow(/^Expected `timeoutMs` to be a number of milliseconds/);
    },
  );

  test.each([0, Number.NaN, -1, 2 ** 31, '5', null])('totalTimeoutMs %s', (totalTimeoutMs) => {
    expect(() => resolve({ totalTimeoutMs })).toThrow(
      /^Expected `totalTimeoutMs` to be a number of milliseconds/,
    );
  });

  test.each([
    [{ retry: true }, '`retry`'],
    [{ retry: null }, '`retry`'],
    [{ retry: { retries: -1 } }, '`retry.retries`'],
    [{ retry: { retries: 1.5 } }, '`retry.retries`'],
    [{ retry: { minDelayMs: -1 } }, '`retry.minDelayMs`'],
    [{ retry: { maxDelayMs: Number.NaN } }, '`retry.maxDelayMs`'],
    [{ retry: { maxRetryAfterMs: 2 ** 31 } }, '`retry.maxRetryAfterMs`'],
    [{ retry: { maxRateLimitRetries: '3' } }, '`retry.maxRateLimitRetries`'],
    [{ retry: { limit: 3 } }, '`retry`'],
    [{ rateLimit: true }, '`rateLimit`'],
    [{ rateLimit: { limit: 5 } }, '`rateLimit`'],
    [{ rateLimit: { limits: { 'trackers.creat': 5 } } }, '`rateLimit.limits`'],
    [{ rateLimit: { limits: { 'trackers.create': 0 } } }, '`rateLimit.limits["trackers.create"]`'],
    [{ rateLimit: { limits: { 'trackers.create': 2.5 } } }, '`rateLimit.limits["trackers.create"]`'],
    [{ rateLimit: { maxQueue: -1 } }, '`maxQueue`'],
    [{ rateLimit: { maxUplinkMs: Number.NaN } }, '`maxUplinkMs`'],
    [{ rateLimit: { reserve: 0.5 } }, '`reserve`'],
    [{ limiter: {} }, '`limiter`'],
    [{ limiter: new TokenBucketLimiter(), rateLimit: false }, '`rateLimit`'],
    [{ fetch: 'fetch' }, '`fetch`'],
    [{ headers: [] }, '`headers`'],
    [{ headers: { Authorization: 'x' } }, '`headers`'],
    [{ headers: { 'x-a': 'a\nb' } }, '`headers.x-a`'],
    [{ userAgent: 'a\nb' }, '`userAgent.user-agent`'],
    [{ userAgent: 5 }, '`userAgent.user-agent`'],
    [{ logLevel: 'verbose' }, '`logLevel`'],
    [{ hooks: { onRequest: 5 } }, '`hooks.onRequest`'],
    [{ hooks: 5 }, '`hooks`'],
    [{ logger: {} }, '`logger.debug`'],
    [{ logger: null }, '`logger.debug`'],
    [{ invalidResponse: 'ignore' }, '`invalidResponse`'],
    [{ apikey: 'x' }, '`options`'],
    [{ baseURL: 'x' }, '`options`'],
  ])('%j', (options, name) => {
    expect(() => resolve(options)).toThrow(ConfigurationError);
    expect(() => resolve(options)).toThrow(name);
  });

  test.each([null, 'https://host.test', 5])('%j instead of options', (options) => {
    expect(() => resolveConfig(options as TrackingClientOptions)).toThrow(ConfigurationError);
  });

  test('an unknown option → refused with the list of known ones', () => {
    expect(() => resolve({ baseURL: 'https://x.test' })).toThrow(/got `baseURL`; known are baseUrl, /);
  });
});

describe('timeouts', () => {
  test('timeoutMs → for every endpoint, also the synchronous ones', () => {
    expect(resolve({ timeoutMs: 5_000 }).timeoutMs).toEqual({ standard: 5_000, synchronous: 5_000 });
  });
});

describe('retry', () => {
  test('some fields → the others keep their defaults', () => {
    expect(resolve({ retry: { retries: 1, maxDelayMs: undefined } }).retry).toMatchObject({
      retries: 1,
      minDelayMs: 500,
      maxDelayMs: 30_000,
    });
  });

  test('false → no retries', () => {
    expect(resolve({ retry: false }).retry.retries).toBe(0);
  });
});

describe('headers', () => {
  test('own headers → next to the defaults, whatever their case', () => {
    expect(resolve({ headers: { 'X-Tenant': 'a', Accept: 'text/json' } }).headers).toMatchObject({
      'x-tenant': 'a',
      accept: 'text/json',
    });
  });

  test('userAgent → replaces the default and a header of that name', () => {
    expect(resolve({ userAgent: 'shop/1', headers: { 'User-Agent': 'other' } }).headers['user-agent']).toBe(
      'shop/1',
    );
  });

  test('headers that change later → the client keeps what it was given', () => {
    const headers = { 'x-tenant': 'a' };
    const config = resolve({ headers });
    headers['x-tenant'] = 'b';
    expect(config.headers['x-tenant']).toBe('a');
  });
});

describe('limiter', () => {
  test('rateLimit: false → none', () => {
    expect(resolve({ rateLimit: false }).limiter).toBeUndefined();
  });

  test('one of your own → that one', () => {
    const limiter = new TokenBucketLimiter();
    expect(resolve({ limiter }).limiter).toBe(limiter);
  });

  test('one of your own with limits → both', () => {
    const limiter = new TokenBucketLimiter();
    const config = resolve({ limiter, rateLimit: { limits: { 'couriers.list': 5 } } });
    expect(config).toMatchObject({ limiter, limits: { 'couriers.list': 5 } });
  });
});

describe('a limiter that is set up on its own', () => {
  test.each(['maxQueue', 'maxUplinkMs', 'reserve'])('rateLimit.%s beside it → ConfigurationError', (name) => {
    const rateLimit = { [name]: 1 };
    expect(() => resolve({ limiter: new TokenBucketLimiter(), rateLimit })).toThrow(
      `Expected \`rateLimit.${name}\` to be left out where the \`limiter\` is given or shared`,
    );
  });

  test.each([null, {}, 5])('%j instead of it → ConfigurationError', (limiter) => {
    expect(() => resolve({ limiter })).toThrow(
      'Expected `limiter` to have the methods `acquire` and `snapshot`',
    );
  });
});

describe('switches', () => {
  test.each(['allowInsecureHttp', 'dangerouslyAllowBrowser'])('%s: "true" → ConfigurationError', (name) => {
    expect(() => resolve({ [name]: 'true' })).toThrow(
      `Expected \`${name}\` to be true or false, got a string of 4 characters`,
    );
  });
});

describe('maxResponseBytes', () => {
  test('none → 64 MiB', () => {
    expect(resolve({}).maxResponseBytes).toBe(67_108_864);
  });

  test.each([1, Number.POSITIVE_INFINITY])('%d → taken', (maxResponseBytes) => {
    expect(resolve({ maxResponseBytes }).maxResponseBytes).toBe(maxResponseBytes);
  });

  test.each([0, -1, 1.5, Number.NaN, '1'])('%j → ConfigurationError', (maxResponseBytes) => {
    expect(() => resolve({ maxResponseBytes })).toThrow(/^Expected `maxResponseBytes` to be a whole number/);
  });
});

describe('browser globals', () => {
  test('window and document → ConfigurationError that says why', () => {
    vi.stubGlobal('window', {});
    vi.stubGlobal('document', {});
    expect(() => resolveConfig(base)).toThrow(
      /^Expected to run on a server, got browser globals: every visitor could read the API key/,
    );
  });

  test('with dangerouslyAllowBrowser → allowed', () => {
    vi.stubGlobal('window', {});
    vi.stubGlobal('document', {});
    expect(() => resolve({ dangerouslyAllowBrowser: true })).not.toThrow();
  });

  test('only one of them, as some server runtimes have → allowed', () => {
    vi.stubGlobal('window', {});
    expect(() => resolveConfig(base)).not.toThrow();
  });
});
