import { describe, expect, test } from 'vitest';
import type { RetryClass } from '../../src/endpoints.ts';
import {
  ConfigurationError,
  ConnectionError,
  QueueFullError,
  ResponseValidationError,
  TimeoutError,
  type TrackingError,
} from '../../src/errors.ts';
import { isRetryable, mayHaveBeenCarriedOut } from '../../src/http/execute.ts';
import { createApiError } from '../../src/http/response.ts';

const MAX_RETRY_AFTER_MS = 60_000;

function respondedWith(status: number, code?: string, retryAfterMs?: number): TrackingError {
  const details = {
    status,
    errors: code === undefined ? [] : [{ code }],
    requestId: undefined,
    method: 'GET',
    path: '/x',
    headers: new Headers(),
    body: null,
    attempts: 1,
    retryAfterMs,
  };
  return createApiError(details, 'GET https://api.example.test/v1/couriers');
}

const refused = new ConnectionError('refused', { neverSent: true });
const reset = new ConnectionError('reset', { neverSent: false });
const timeout = new TimeoutError('timeout', { phase: 'headers', timeoutMs: 1 });
const unreadable = { issues: [], body: null, status: 200, requestId: undefined };

const COLUMNS = {
  safe: { retryClass: 'safe', retryAmbiguous: false },
  bulk: { retryClass: 'bulk', retryAmbiguous: false },
  'bulk with retryAmbiguous': { retryClass: 'bulk', retryAmbiguous: true },
  unsafe: { retryClass: 'unsafe', retryAmbiguous: false },
  // No method of such an endpoint takes the option; the class says no all the same.
  'unsafe with retryAmbiguous': { retryClass: 'unsafe', retryAmbiguous: true },
} satisfies Record<string, { retryClass: RetryClass; retryAmbiguous: boolean }>;
type Column = keyof typeof COLUMNS;
const EVERYONE = Object.keys(COLUMNS);
const REPEATABLE: Column[] = ['safe', 'bulk with retryAmbiguous'];

const ROWS: [what: string, error: unknown, repeatedBy: string[], isPerhapsDone: boolean][] = [
  ['429', respondedWith(429, undefined, 10), EVERYONE, false],
  ['429 without a delay', respondedWith(429), EVERYONE, false],
  ['429 with a code of something else', respondedWith(429, 'request_conflict'), EVERYONE, false],
  ['429 quota_limit_reached', respondedWith(429, 'quota_limit_reached'), [], false],
  ['a refused connection', refused, EVERYONE, false],
  ['a reset connection', reset, REPEATABLE, true],
  ['a timeout', timeout, REPEATABLE, true],
  ['500', respondedWith(500), REPEATABLE, true],
  ['502', respondedWith(502), REPEATABLE, true],
  ['503', respondedWith(503), REPEATABLE, true],
  ['599', respondedWith(599), REPEATABLE, true],
  ['408', respondedWith(408), REPEATABLE, true],
  ['409 request_conflict', respondedWith(409, 'request_conflict'), ['safe'], false],
  ['409 tracker_conflict', respondedWith(409, 'tracker_conflict'), [], false],
  ['409 without a code', respondedWith(409), [], false],
  ['400 request_conflict', respondedWith(400, 'request_conflict'), [], false],
  ['400', respondedWith(400, 'validation_error'), [], false],
  ['401', respondedWith(401, 'auth_invalid_api_key'), [], false],
  ['403', respondedWith(403), [], false],
  ['404', respondedWith(404, 'parcel_not_found'), [], false],
  ['422', respondedWith(422), [], false],
  ['a redirect', respondedWith(302), [], false],
  ['an unreadable success', new ResponseValidationError('bad', unreadable), [], true],
  ['a reason of the caller', 'enough', [], true],
  ['a full queue', new QueueFullError('full'), [], true],
  ['a missing key', new ConfigurationError('key'), [], true],
];

describe.each(ROWS)('%s', (_what, error, repeatedBy, isPerhapsDone) => {
  test.each(Object.entries(COLUMNS))('%s → repeated as the table says', (column, rules) => {
    expect(isRetryable(error, { ...rules, maxRetryAfterMs: MAX_RETRY_AFTER_MS })).toBe(
      repeatedBy.includes(column),
    );
  });

  test('after it was sent → perhaps carried out as the table says', () => {
    expect(mayHaveBeenCarriedOut(error)).toBe(isPerhapsDone);
  });
});

describe('a wait that the service asks for', () => {
  test.each([
    [429, 60_000, true],
    [429, 60_001, false],
    [503, 60_000, true],
    [503, 60_001, false],
  ])('%d with %d ms of at most 60,000 → repeated: %j', (status, retryAfterMs, isRepeated) => {
    const rules = { ...COLUMNS.safe, maxRetryAfterMs: MAX_RETRY_AFTER_MS };
    expect(isRetryable(respondedWith(status, undefined, retryAfterMs), rules)).toBe(isRepeated);
  });
});
