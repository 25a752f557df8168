import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RetryPolicy } from '../../src/config/call-options.ts';
import type { RetryClass } from '../../src/endpoints.ts';
import {
  ConfigurationError,
  ConnectionError,
  QueueFullError,
  ResponseValidationError,
  TimeoutError,
  type TrackingError,
} from '../../src/errors.ts';
import { apiErrorOf } from '../../src/http/api-error-of.ts';
import { backoffDelayMs, decideRetry } from '../../src/http/retry.ts';

const policy: RetryPolicy = {
  retries: 3,
  minDelayMs: 0,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 60_000,
  maxRateLimitRetries: 20,
};
const nothingTried = { backoffs: 0, rateLimits: 0 };

function answered(status: number, code?: string, retryAfterMs?: number): TrackingError {
  return apiErrorOf(
    {
      status,
      errors: code === undefined ? [] : [{ code }],
      requestId: undefined,
      method: 'GET',
      path: '/x',
      headers: new Headers(),
      body: null,
      attempts: 1,
      retryAfterMs,
    },
    'GET https://api.example.test/v1/couriers',
  );
}

const refused = new ConnectionError('refused', { neverSent: true });
const reset = new ConnectionError('reset', { neverSent: false });
const timeout = new TimeoutError('timeout', { phase: 'headers', timeoutMs: 1 });

type Column =
  | 'safe'
  | 'bulk'
  | 'bulk with retryAmbiguous'
  | 'billed'
  | 'billed with retryAmbiguous'
  | 'replay';
const COLUMNS: Record<Column, { retryClass: RetryClass; retryAmbiguous: boolean }> = {
  safe: { retryClass: 'safe', retryAmbiguous: false },
  bulk: { retryClass: 'bulk', retryAmbiguous: false },
  'bulk with retryAmbiguous': { retryClass: 'bulk', retryAmbiguous: true },
  billed: { retryClass: 'unsafe', retryAmbiguous: false },
  // No method of such an endpoint takes it; what is paid for is not left to that alone.
  'billed with retryAmbiguous': { retryClass: 'unsafe', retryAmbiguous: true },
  replay: { retryClass: 'unsafe', retryAmbiguous: false },
};
const EVERYONE: Column[] = [
  'safe',
  'bulk',
  'bulk with retryAmbiguous',
  'billed',
  'billed with retryAmbiguous',
  'replay',
];
const REPEATABLE: Column[] = ['safe', 'bulk with retryAmbiguous'];

const ROWS: [what: string, error: TrackingError, kind: string, repeatedBy: Column[]][] = [
  ['429', answered(429, undefined, 10), 'rate-limited', EVERYONE],
  ['429 without a delay', answered(429), 'rate-limited', EVERYONE],
  ['a refused connection', refused, 'backoff', EVERYONE],
  ['a reset connection', reset, 'backoff', REPEATABLE],
  ['a timeout', timeout, 'backoff', REPEATABLE],
  ['500', answered(500), 'backoff', REPEATABLE],
  ['502', answered(502), 'backoff', REPEATABLE],
  ['503', answered(503), 'backoff', REPEATABLE],
  ['599', answered(599), 'backoff', REPEATABLE],
  ['408', answered(408), 'backoff', REPEATABLE],
  ['409 request_conflict', answered(409, 'request_conflict'), 'backoff', ['safe']],
  ['409 tracker_conflict', answered(409, 'tracker_conflict'), 'backoff', []],
  ['409 without a code', answered(409), 'backoff', []],
  ['400 request_conflict', answered(400, 'request_conflict'), 'backoff', []],
  ['400', answered(400, 'validation_error'), 'backoff', []],
  ['401', answered(401, 'auth_invalid_api_key'), 'backoff', []],
  ['403', answered(403), 'backoff', []],
  ['404', answered(404, 'parcel_not_found'), 'backoff', []],
  ['422', answered(422), 'backoff', []],
  ['a redirect', answered(302), 'backoff', []],
  ['a full queue', new QueueFullError('full'), 'backoff', []],
  ['a missing key', new ConfigurationError('key'), 'backoff', []],
  [
    'an invalid answer',
    new ResponseValidationError('bad', { issues: [], body: null, status: 200, requestId: undefined }),
    'backoff',
    [],
  ],
];

describe.each(ROWS)('%s', (_what, error, kind, repeatedBy) => {
  test.each(Object.entries(COLUMNS))('%s → repeated as the table says', (column, call) => {
    const expected = repeatedBy.some((one) => one === column) ? kind : 'stop';
    expect(decideRetry(error, { ...call, policy }, nothingTried).kind).toBe(expected);
  });
});

describe('caps', () => {
  const safe = COLUMNS.safe;

  test.each([
    [0, 'backoff'],
    [2, 'backoff'],
    [3, 'stop'],
  ])('%d of 3 back-offs used → %s', (backoffs, kind) => {
    expect(decideRetry(reset, { ...safe, policy }, { backoffs, rateLimits: 0 }).kind).toBe(kind);
  });

  test('back-offs used up → a 429 is still waited out', () => {
    const history = { backoffs: 3, rateLimits: 0 };
    expect(decideRetry(answered(429), { ...safe, policy }, history).kind).toBe('rate-limited');
  });

  test('429s used up → stop', () => {
    const history = { backoffs: 0, rateLimits: 20 };
    expect(decideRetry(answered(429), { ...safe, policy }, history).kind).toBe('stop');
  });

  test('429s used up → a reset is still repeated', () => {
    const history = { backoffs: 0, rateLimits: 20 };
    expect(decideRetry(reset, { ...safe, policy }, history).kind).toBe('backoff');
  });

  test.each([answered(429), reset, refused, answered(503)])('no retries at all → stop', (error) => {
    expect(decideRetry(error, { ...safe, policy: { ...policy, retries: 0 } }, nothingTried).kind).toBe(
      'stop',
    );
  });
});

describe('the wait the service asks for', () => {
  const call = { ...COLUMNS.safe, policy };

  test('429 with a delay → that delay', () => {
    expect(decideRetry(answered(429, undefined, 2_500), call, nothingTried)).toEqual({
      kind: 'rate-limited',
      delayMs: 2_500,
    });
  });

  test('503 with Retry-After → at least that delay', () => {
    expect(decideRetry(answered(503, undefined, 2_500), call, nothingTried)).toEqual({
      kind: 'backoff',
      delayMs: 2_500,
    });
  });

  test.each([429, 503])('%d with a delay of exactly the longest allowed → waited for', (status) => {
    expect(decideRetry(answered(status, undefined, 60_000), call, nothingTried)).toMatchObject({
      delayMs: 60_000,
    });
  });

  test.each([429, 503])('%d with a longer delay → stop', (status) => {
    expect(decideRetry(answered(status, undefined, 60_001), call, nothingTried).kind).toBe('stop');
  });
});

describe('back-off', () => {
  const bounds = { ...policy, minDelayMs: 100, maxDelayMs: 1_000 };

  test.each([
    [0, 100],
    [1, 200],
    [2, 400],
    [3, 800],
    [4, 1_000],
    [50, 1_000],
  ])('after %d back-offs → at most %d ms', (backoffs, bound) => {
    expect(backoffDelayMs(bounds, backoffs, () => 0.9999999)).toBe(bound);
  });

  test('the luckiest draw → no wait: full jitter', () => {
    expect(backoffDelayMs(bounds, 3, () => 0)).toBe(0);
  });

  test('any policy and draw → a delay between 0 and the bound', () => {
    fc.assert(
      fc.property(
        fc.nat(60_000),
        fc.nat(60_000),
        fc.nat(100),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (minDelayMs, maxDelayMs, backoffs, draw) => {
          const delay = backoffDelayMs({ ...policy, minDelayMs, maxDelayMs }, backoffs, () => draw);
          expect(delay).toBeGreaterThanOrEqual(0);
          expect(delay).toBeLessThanOrEqual(Math.min(maxDelayMs, minDelayMs * 2 ** backoffs));
          expect(Number.isInteger(delay)).toBe(true);
        },
      ),
    );
  });
});
