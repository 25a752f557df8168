import { describe, expect, test } from 'vitest';
import { resolveCallOptions } from '../../src/config/call-options.ts';
import { resolveConfig } from '../../src/config/config.ts';
import { ConfigurationError } from '../../src/errors.ts';
import type { RequestOptions, TrackingClientOptions } from '../../src/options.ts';
import type { TrackerListQuery } from '../../src/schemas/tracker.ts';
import { catchRejection, makeClient } from '../support/make-client.ts';

const base = { baseUrl: 'https://host.test/v1', apiKey: 'key' };
/** Options as a caller without types could give them. */
const callOptions = (options: unknown, client: TrackingClientOptions = {}) =>
  resolveCallOptions(resolveConfig({ ...base, ...client }), 'couriers.list', options as RequestOptions);
const untyped = (options: unknown) => options as RequestOptions & TrackerListQuery;

describe('options of one call', () => {
  test('no options → the options of the client, and the defaults', () => {
    expect(callOptions({}, { totalTimeoutMs: 5_000, retry: { retries: 1 } })).toEqual({
      signal: undefined,
      timeoutMs: undefined,
      totalTimeoutMs: 5_000,
      retry: { retries: 1, maxRetryAfterMs: 60_000, maxBackoffMs: 8_000 },
      headers: undefined,
      priority: 'interactive',
      retryAmbiguous: false,
    });
  });

  test.each([
    [{ timeoutMs: 0 }, '`timeoutMs`'],
    [{ totalTimeoutMs: 0 }, '`totalTimeoutMs`'],
    [{ retry: { retries: -1 } }, '`retry.retries`'],
    [{ retry: { maxBackoffMs: 0 } }, '`retry.maxBackoffMs`'],
    [{ headers: { authorization: 'x' } }, '`headers.authorization`'],
    [{ priority: 'urgent' }, '`priority`'],
    [{ signal: {} }, '`signal`'],
    [{ signal: { aborted: false } }, '`signal`'],
  ])('%j → ConfigurationError that names it', (options, name) => {
    expect(() => callOptions(options)).toThrow(ConfigurationError);
    expect(() => callOptions(options)).toThrow(name);
  });

  test('a signal of another realm → accepted', () => {
    const foreign = { aborted: false, addEventListener: () => {}, removeEventListener: () => {} };
    expect(callOptions({ signal: foreign }).signal).toBe(foreign);
  });

  test.each([
    [undefined, {}, { retries: 4, maxRetryAfterMs: 60_000, maxBackoffMs: 8_000 }],
    [
      { retries: 1 },
      { retry: { maxRetryAfterMs: 7 } },
      { retries: 1, maxRetryAfterMs: 7, maxBackoffMs: 8_000 },
    ],
    [
      { maxBackoffMs: 100 },
      { retry: { maxBackoffMs: 900 } },
      { retries: 4, maxRetryAfterMs: 60_000, maxBackoffMs: 100 },
    ],
    [{ retries: 2 }, { retry: false }, { retries: 2, maxRetryAfterMs: 60_000, maxBackoffMs: 8_000 }],
    [false, { retry: { retries: 3 } }, { retries: 0, maxRetryAfterMs: 60_000, maxBackoffMs: 8_000 }],
  ] as const)('retry %j of a call, client %j → %j', (retry, client, resolved) => {
    expect(callOptions({ retry }, client).retry).toEqual(resolved);
  });
});

describe('headers', () => {
  test('names and values → the names in lower case, the values trimmed', () => {
    const { headers } = callOptions({ headers: { 'X-Tenant': ' a ', accept: 'b' } });
    expect(headers).toEqual({ accept: 'b', 'x-tenant': 'a' });
  });

  test('a symbol as a name, which cannot be a header → ignored', () => {
    // Sound for a test of what callers without types pass.
    const headers = { accept: 'b', [Symbol('aborted')]: false } as Record<string, string>;
    expect(callOptions({ headers }).headers).toEqual({ accept: 'b' });
  });

  test.each([null, 5, 'x', [['a', 'b']], new Headers(), new Map([['a', 'b']])])(
    '%s → ConfigurationError',
    (value) => {
      const message = /^Expected `headers` to be a plain object, as in { 'x-source': 'shop' }, got /;
      expect(() => callOptions({ headers: value })).toThrow(message);
    },
  );

  test.each([
    ['Authorization', 'the client sets it from `apiKey`'],
    ['Connection', '`fetch` sets it'],
    ['content-length', '`fetch` sets it'],
    ['transfer-encoding', '`fetch` sets it'],
    ['host', '`fetch` sets it'],
    ['expect', '`fetch` sets it'],
    ['upgrade', '`fetch` sets it'],
    ['keep-alive', '`fetch` sets it'],
  ])('%s → ConfigurationError that names where the header belongs', (name, setter) => {
    const message = `Expected \`headers.${name}\` to be left out (${setter}), got a string of 14 characters`;
    expect(() => callOptions({ headers: { [name]: 'Bearer hunter2' } })).toThrow(
      new ConfigurationError(message),
    );
  });

  test.each([
    ['x-a', 'hunter2\nx-b: 1'],
    ['x-a', 'hunter2\u0000'],
    ['x-a', 'hunter2 €'],
    ['x a', 'hunter2'],
    ['', 'hunter2'],
    ['x-a', 5],
    ['x-a', undefined],
  ])('%j: %j → ConfigurationError that does not print the value', (name, value) => {
    const message =
      /^Expected `headers.*` to (have a header name of letters|be a string of Latin-1 ch).*, got (?!.*hunter2)/;
    expect(() => callOptions({ headers: { [name]: value } })).toThrow(message);
  });
});

describe('unknown options of a method', () => {
  const { client, requests } = makeClient();
  const input = { trackingNumber: 'LA680658838NL' };

  test.each([
    ['minDelayMs', () => client.couriers.list(untyped({ retry: { minDelayMs: 1 } }))],
    ['searchby', () => client.trackers.get('id', untyped({ searchby: 'clientTrackerId' }))],
    ['query.Limit', () => client.trackers.list(untyped({ Limit: 10 }))],
    ['query.page', () => client.trackers.listAll(untyped({ page: 2 })).next()],
    ['page', () => client.trackers.list({}, untyped({ page: 2 }))],
    ['idempotant', () => client.request({ method: 'POST', path: '/a', ...untyped({ idempotant: true }) })],
    ['searchBy', () => client.couriers.list(untyped({ searchBy: 'clientTrackerId' }))],
    ['retryAmbiguous', () => client.trackers.create(input, untyped({ retryAmbiguous: true }))],
    ['page', () => client.trackers.get('id', untyped({ page: 2 }))],
  ])('%s → ConfigurationError that names it, nothing is sent', async (name, call) => {
    expect(await catchRejection(call())).toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringMatching(`^Unknown option \`(retry\\.)?${name}\`; known options: `),
    });
    expect(requests).toHaveLength(0);
  });

  test("retryAmbiguous: 'false' → ConfigurationError", async () => {
    const call = client.trackers.createBulk([input], untyped({ retryAmbiguous: 'false' }));
    const message = expect.stringMatching(/^Expected `retryAmbiguous` to be true or false, got /);
    expect(await catchRejection(call)).toMatchObject({ name: 'ConfigurationError', message });
  });
});
