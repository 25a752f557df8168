import { describe, expect, test, vi } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { resolveConfig } from '../../src/config/config.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import type { FetchInit, TrackingClientOptions } from '../../src/options.ts';
import { RedisLimiter } from '../../src/redis/index.ts';
import { VERSION } from '../../src/version.ts';
import { ScriptedRedis } from '../redis/limiter/make-redis-limiter.ts';

const base = { baseUrl: 'https://host.test/v1', apiKey: 'key' };

/** Sends a request, and returns its headers except the key. */
async function sendHeaders(options: TrackingClientOptions = {}): Promise<Record<string, string>> {
  let sent: Record<string, string> = {};
  const fetch = async (_url: string, { headers }: FetchInit) => {
    const { authorization: _key, ...others } = headers;
    sent = others;
    return Response.json({ data: [] });
  };
  await new TrackingClient({ ...base, fetch, ...options }).couriers.list();
  return sent;
}
/** Options as a caller without types could give them. */
const resolve = (options: Record<string, unknown>) =>
  resolveConfig({ ...base, ...options } as TrackingClientOptions);

describe('defaults', () => {
  test('base URL and key only → the documented defaults', () => {
    expect(resolveConfig(base)).toMatchObject({
      timeoutMs: { standard: 30_000, synchronous: 90_000 },
      totalTimeoutMs: undefined,
      retry: {},
      maxResponseBytes: 67_108_864,
      hooks: {},
      invalidResponse: 'keep',
      fetch: undefined,
      limiter: expect.any(TokenBucketLimiter),
    });
  });

  test('no `headers` option → a user agent with package and runtime, and JSON as accepted type', async () => {
    expect(await sendHeaders()).toEqual({
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
    expect(config.apiKey).toMatchObject({ text: 'env-key' });
  });

  test('options and environment → the options are used', () => {
    vi.stubEnv('TRACKING_BASE_URL', 'https://env.test/v1/');
    vi.stubEnv('TRACKING_API_KEY', 'env-key');
    const config = resolveConfig(base);
    expect(config.baseUrl).toBe('https://host.test/v1');
    expect(config.apiKey).toMatchObject({ text: 'key' });
  });

  test('an empty key → ConfigurationError, not the key of the environment', () => {
    vi.stubEnv('TRACKING_API_KEY', 'env-key');
    expect(() => resolve({ apiKey: '' })).toThrow(/^`apiKey` is missing; /);
  });
});

describe('invalid options → ConfigurationError that names them', () => {
  test.each([
    [{ timeoutMs: 0 }, '`timeoutMs` to be a number of milliseconds'],
    [{ totalTimeoutMs: null }, '`totalTimeoutMs` to be a number of milliseconds'],
    [{ retry: true }, '`retry`'],
    [{ retry: { retries: -1 } }, '`retry.retries`'],
    [{ retry: { maxRetryAfterMs: 2 ** 31 } }, '`retry.maxRetryAfterMs`'],
    [{ retry: { limit: 3 } }, '`retry.limit`'],
    [{ rateLimit: true }, '`rateLimit`'],
    [{ rateLimit: { limit: 5 } }, '`rateLimit.limit`'],
    [{ rateLimit: { limits: { 'trackers.creat': 5 } } }, '`rateLimit.limits["trackers.creat"]`'],
    [{ rateLimit: { limits: { 'trackers.create': 0 } } }, '`rateLimit.limits["trackers.create"]`'],
    [{ rateLimit: { maxQueue: -1 } }, '`rateLimit.maxQueue`'],
    [{ account: '' }, '`account`'],
    [
      { limiter: new TokenBucketLimiter(), rateLimit: false },
      'Both `rateLimit` and `limiter` are set; leave out one of them',
    ],
    [{ fetch: 'fetch' }, '`fetch`'],
    [{ headers: { Authorization: 'x' } }, '`headers.Authorization`'],
    [{ headers: { 'x-a': 'a\nb' } }, '`headers.x-a`'],
    [{ logLevel: 'verbose' }, '`logLevel`'],
    [{ hooks: { onRequest: 5 } }, '`hooks.onRequest`'],
    [{ logger: null }, '`logger.debug`'],
    [{ invalidResponse: 'warn' }, '`invalidResponse`'],
    [{ allowInsecureHttp: 'true' }, "`allowInsecureHttp` to be true or false, got 'true'"],
    [{ maxResponseBytes: 0 }, '`maxResponseBytes` to be a whole number'],
    [
      { limiter: new TokenBucketLimiter(), rateLimit: { maxQueue: 1 } },
      'Both `rateLimit` and `limiter` are set; pass `limits` and `maxQueue` to the limiter instead',
    ],
    [{ limiter: null }, '`limiter` to be a TokenBucketLimiter or a RedisLimiter'],
    [{ baseURL: 'x' }, 'Unknown option `baseURL`; known options: baseUrl, '],
  ])('%j', (options, name) => {
    expect(() => resolve(options)).toThrow(ConfigurationError);
    expect(() => resolve(options)).toThrow(name);
  });

  test.each([null, 'https://host.test', 5])('%j instead of options', (options) => {
    expect(() => resolveConfig(options as TrackingClientOptions)).toThrow(ConfigurationError);
  });
});

test('headers in any case → added to the defaults', async () => {
  const headers = { 'X-Tenant': 'a', Accept: 'text/json', 'User-Agent': 'shop/1' };
  expect(await sendHeaders({ headers })).toEqual({
    'x-tenant': 'a',
    'user-agent': 'shop/1',
    accept: 'text/json',
  });
});

describe('a limiter that several processes share', () => {
  const limiter = new RedisLimiter({ redis: new ScriptedRedis() });
  const apiKey = () => 'key';

  test('a function as key without `account` → ConfigurationError that asks for `account`', () => {
    expect(() => resolve({ limiter, apiKey })).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringMatching(
          /^`account` is missing\. If `apiKey` is a function, .*; set `account` to the same name /,
        ),
      }),
    );
  });

  test.each([{ apiKey, account: 'shop' }, { apiKey: 'key' }])('a limiter with %j → accepted', (options) => {
    expect(() => resolve({ limiter, ...options })).not.toThrow();
  });
});

describe('browser globals', () => {
  // Vitest sends its reports through `process.nextTick`. Without it in the stub, vitest would take it from the real `process`
  // afterwards, and the run would hang.
  const { nextTick } = process;
  const withoutRuntime = () => vi.stubGlobal('process', { env: {}, nextTick });

  test('a document without a server runtime → ConfigurationError that gives the reason', () => {
    vi.stubGlobal('document', {});
    withoutRuntime();
    expect(() => resolveConfig(base)).toThrow(
      /^TrackingClient does not run in a browser, where every visitor could read the API key/,
    );
  });

  test('a document of jsdom in Node → accepted', () => {
    vi.stubGlobal('window', {});
    vi.stubGlobal('document', {});
    expect(() => resolveConfig(base)).not.toThrow();
  });

  test('an unknown runtime without a document → accepted, with a user agent that names no runtime', async () => {
    withoutRuntime();
    expect((await sendHeaders())['user-agent']).toBe(`tracking-client/${VERSION}`);
  });

  test.each([
    ['bun', { bun: '1.2.3', node: '24.0.0' }],
    ['deno', { deno: '2.1.0', node: '24.0.0' }],
    ['node', { node: '24.0.0' }],
  ])('%s with a document → accepted, named in the user agent', async (name, versions) => {
    vi.stubGlobal('document', {});
    vi.stubGlobal('process', { env: {}, nextTick, versions });
    expect((await sendHeaders())['user-agent']).toContain(` ${name}/`);
  });
});

describe('a runtime without a class that a client needs', () => {
  const expectRefused = (name: string) =>
    expect(() => new TrackingClient({ ...base, headers: { 'x-source': 'shop' } })).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringContaining(`This runtime has no global \`${name}\`; use Node `),
      }),
    );

  test.each(['AbortController', 'Headers', 'URL'])(
    'no `%s` → ConfigurationError that names the class',
    (name) => {
      vi.stubGlobal(name, undefined);
      expectRefused(name);
    },
  );

  test('a `URL` without `canParse`, as in old versions of jsdom → ConfigurationError that names the method', () => {
    vi.stubGlobal('URL', class {});
    expectRefused('URL.canParse');
  });
});

describe('a base URL that ends with the path of an endpoint', () => {
  test.each([
    ['https://a.test/public/v1/trackers', '/trackers'],
    ['https://a.test/public/v1/trackers/', '/trackers'],
    ['https://a.test/trackers/bulk', '/trackers/bulk'],
    ['https://a.test/v1/trackers/track', '/trackers/track'],
    ['https://a.test/v1/tracking/search', '/tracking/search'],
    ['https://a.test/v1/couriers', '/couriers'],
  ])('%s → ConfigurationError that names the path', (baseUrl, path) => {
    expect(() => new TrackingClient({ baseUrl, apiKey: 'key' })).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        option: 'baseUrl',
        message: expect.stringContaining(
          `\`baseUrl\` ends with the path of an endpoint, ${path}; remove it, `,
        ),
      }),
    );
  });

  test.each(['https://a.test/tracking', 'https://a.test/trackers/v1', 'https://trackers'])(
    '%s → accepted',
    (baseUrl) => {
      expect(() => new TrackingClient({ baseUrl, apiKey: 'key' })).not.toThrow();
    },
  );
});
