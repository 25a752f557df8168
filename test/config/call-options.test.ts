import { describe, expect, test } from 'vitest';
import { resolveCallOptions } from '../../src/config/call-options.ts';
import { resolveConfig } from '../../src/config/config.ts';
import { ConfigurationError } from '../../src/errors.ts';
import type { RequestOptions, TrackingClientOptions } from '../../src/options.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';

const base = { baseUrl: 'https://host.test/v1', apiKey: 'key' };
/** Options as a caller without types could give them. */
const callOptions = (options: unknown, client: TrackingClientOptions = {}) =>
  resolveCallOptions(resolveConfig({ ...base, ...client }), options as RequestOptions);
const untyped = (options: unknown) => options as RequestOptions;

describe('options of one call', () => {
  test('none → what the client has', () => {
    const config = resolveConfig({ ...base, totalTimeoutMs: 5_000, retry: { retries: 1 } });
    expect(resolveCallOptions(config)).toEqual({
      signal: undefined,
      timeoutMs: undefined,
      totalTimeoutMs: 5_000,
      retry: config.retry,
      headers: undefined,
      priority: 'interactive',
      retryAmbiguous: false,
    });
  });

  test.each([
    [{ timeoutMs: 0 }, '`timeoutMs`'],
    [{ timeoutMs: Number.NaN }, '`timeoutMs`'],
    [{ timeoutMs: -5 }, '`timeoutMs`'],
    [{ timeoutMs: 2 ** 31 }, '`timeoutMs`'],
    [{ totalTimeoutMs: 0 }, '`totalTimeoutMs`'],
    [{ retry: { retries: -1 } }, '`retry.retries`'],
    [{ headers: { authorization: 'x' } }, '`headers`'],
    [{ priority: 'urgent' }, '`priority`'],
    [{ signal: {} }, '`signal`'],
  ])('%j → ConfigurationError that names it', (options, name) => {
    expect(() => callOptions(options)).toThrow(ConfigurationError);
    expect(() => callOptions(options)).toThrow(name);
  });

  test('a signal of another realm → taken', () => {
    const foreign = { aborted: false, addEventListener: () => {}, removeEventListener: () => {} };
    expect(callOptions({ signal: foreign }).signal).toBe(foreign);
  });

  test("retry fields of the call → over the client's", () => {
    const { retry } = callOptions({ retry: { retries: 1 } }, { retry: { minDelayMs: 7 } });
    expect(retry).toMatchObject({ retries: 1, minDelayMs: 7 });
  });

  test('a client without retries, a call with → also those after a 429', () => {
    expect(callOptions({ retry: { retries: 2 } }, { retry: false }).retry).toMatchObject({
      retries: 2,
      maxRateLimitRetries: 20,
    });
  });
});

describe('names of options', () => {
  const { client, requests } = makeClient();
  const number = 'LA680658838NL';

  test.each([null, 'trackerId'])('%j instead of options → ConfigurationError', async (options) => {
    expect(await rejectionOf(client.couriers.list(untyped(options)))).toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringMatching(/^Expected `options` to be an object, got /),
    });
  });

  test.each([
    ['timeout', () => client.couriers.list(untyped({ timeout: 5000 })), 'timeoutMs'],
    ['searchby', () => client.trackers.get('id', untyped({ searchby: 'clientTrackerId' })), 'searchBy'],
    ['pge', () => client.trackers.list(untyped({ pge: 2 })), 'page'],
    ['Limit', () => client.trackers.list(untyped({ Limit: 10 })), 'limit'],
    [
      'idempotant',
      () => client.request({ method: 'POST', path: '/a', ...untyped({ idempotant: true }) }),
      'idempotent',
    ],
  ])('%s → refused with the list of known ones', async (given, call, meant) => {
    expect(await rejectionOf(call())).toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringMatching(`got \`${given}\`; known are .*${meant}`),
    });
  });

  test.each([
    [
      'searchBy of couriers.list',
      () => client.couriers.list(untyped({ searchBy: 'clientTrackerId' })),
      'searchBy',
    ],
    [
      'searchBy of resultsByTrackingNumber',
      () => client.trackers.resultsByTrackingNumber(number, untyped({ searchBy: 'trackerId' })),
      'searchBy',
    ],
    [
      'retryAmbiguous of create',
      () => client.trackers.create({ trackingNumber: number }, untyped({ retryAmbiguous: true })),
      'retryAmbiguous',
    ],
    ['page of get', () => client.trackers.get('id', untyped({ page: 2 })), 'page'],
  ])('%s, which knows no such option → ConfigurationError, nothing is sent', async (_what, call, name) => {
    expect(await rejectionOf(call())).toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringContaining(`got \`${name}\``),
    });
    expect(requests).toHaveLength(0);
  });
});

describe('switches of a call', () => {
  test.each(['false', 1, null])('retryAmbiguous: %j → ConfigurationError, nothing is sent', async (value) => {
    const { client, requests } = makeClient();
    const options = { retryAmbiguous: value } as unknown as RequestOptions;
    const call = client.trackers.createBulk([{ trackingNumber: 'LA680658838NL' }], options);
    expect(await rejectionOf(call)).toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringMatching(/^Expected `retryAmbiguous` to be true or false, got /),
    });
    expect(requests).toHaveLength(0);
  });
});
