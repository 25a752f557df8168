import { describe, expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { createApiError, excerpt, readErrorItems } from '../../src/http/response.ts';
import { KNOWN_ERROR_CODES, type KnownErrorCode } from '../../src/schemas/api-error.ts';
import { API_KEY, makeClient, rejectionOf } from '../support/make-client.ts';

function errorOf(status: number, code?: string, rest: Partial<errors.ApiErrorDetails> = {}) {
  const details = {
    status,
    errors: code === undefined ? [] : [{ code, message: 'words of the service' }],
    requestId: undefined,
    method: 'POST',
    path: '/trackers',
    headers: new Headers(),
    body: undefined,
    attempts: 1,
    retryAfterMs: undefined,
    ...rest,
  };
  return createApiError(details, 'POST https://api.example.test/v1/trackers');
}

/** Every code of the specification and the public contract, with a status it comes with, and its class. */
const CODES: Record<KnownErrorCode, [status: number, className: string]> = {
  validation_error: [422, 'InvalidRequestError'],
  missing_mandatory_field: [400, 'InvalidRequestError'],
  parsing_error: [400, 'InvalidRequestError'],
  shipping_date_outdated: [400, 'ShippingDateOutdatedError'],
  tracker_conflict: [400, 'ConflictError'],
  request_conflict: [409, 'ConflictError'],
  tracker_not_found: [404, 'NotFoundError'],
  parcel_not_found: [404, 'ResultsNotReadyError'],
  tracker_not_updatable: [400, 'InvalidRequestError'],
  no_active_subscription: [422, 'NoActiveSubscriptionError'],
  quota_limit_reached: [405, 'QuotaExceededError'],
  bulk_create_limit_exceeded: [403, 'QuotaExceededError'],
  processing_error: [500, 'ServerError'],
  webhook_url_missing: [400, 'InvalidRequestError'],
  auth_missing_header: [400, 'AuthenticationError'],
  auth_invalid_header: [400, 'AuthenticationError'],
  auth_invalid_api_key: [401, 'AuthenticationError'],
};

describe('by code', () => {
  test.each(Object.entries(CODES))('%s → %j', (code, [status, className]) => {
    expect(errorOf(status, code).name).toBe(className);
  });

  test.each(KNOWN_ERROR_CODES.filter((code) => code !== 'processing_error'))(
    '%s with a status that says otherwise → the code decides',
    (code) => {
      expect(errorOf(500, code).name).toBe(CODES[code][1]);
    },
  );

  test('quota_limit_reached with 403 → QuotaExceededError', () => {
    expect(errorOf(403, 'quota_limit_reached').name).toBe('QuotaExceededError');
  });

  test.each(['auth_key_expired', 'auth_'])('%s, unknown → AuthenticationError by its prefix', (code) => {
    expect(errorOf(400, code).name).toBe('AuthenticationError');
  });

  test.each(['toString', '__proto__', 'constructor'])('%s as a code → its status decides', (code) => {
    expect(errorOf(404, code).name).toBe('NotFoundError');
  });

  test('several errors → the first one decides', () => {
    const found = errorOf(400, undefined, {
      errors: [{ code: 'tracker_conflict' }, { code: 'validation_error' }],
    });
    expect(found).toBeInstanceOf(errors.ConflictError);
    expect(found.code).toBe('tracker_conflict');
  });
});

const STATUSES: [status: number, className: string][] = [
  [302, 'ApiError'],
  [400, 'InvalidRequestError'],
  [401, 'AuthenticationError'],
  [402, 'ApiError'],
  [403, 'PermissionDeniedError'],
  [404, 'NotFoundError'],
  [405, 'ApiError'],
  [408, 'ApiError'],
  [409, 'ConflictError'],
  [410, 'ApiError'],
  [413, 'ApiError'],
  [418, 'ApiError'],
  [422, 'InvalidRequestError'],
  [429, 'RateLimitError'],
  [500, 'ServerError'],
  [502, 'ServerError'],
  [503, 'ServerError'],
  [599, 'ServerError'],
];

describe('by status', () => {
  test.each(STATUSES)('%d without a code → %s', (status, className) => {
    expect(errorOf(status).name).toBe(className);
  });

  test.each(STATUSES)('%d with a code added later → %s, the code kept', (status, className) => {
    const error = errorOf(status, 'added_later');
    expect(error.name).toBe(className);
    expect(error.code).toBe('added_later');
  });

  test('processing_error, which says nothing → the status decides', () => {
    expect(errorOf(400, 'processing_error').name).toBe('InvalidRequestError');
  });
});

describe('message', () => {
  test('code and message → both, and the request id', () => {
    expect(errorOf(404, 'tracker_not_found', { requestId: 'req-1' }).message).toBe(
      'POST https://api.example.test/v1/trackers responded with 404: tracker_not_found: words of the service (request req-1)',
    );
  });

  test('a code added later before a known one → the known one, which decides', () => {
    const all = [
      { code: 'added_later', message: 'm' },
      { code: 'shipping_date_outdated', message: 'too old' },
    ];
    expect(errorOf(400, undefined, { errors: all }).message).toContain('shipping_date_outdated: too old');
  });

  test('a code without a message → the code', () => {
    expect(errorOf(404, undefined, { errors: [{ code: 'tracker_not_found' }] }).message).toBe(
      'POST https://api.example.test/v1/trackers responded with 404: tracker_not_found',
    );
  });

  test('a 404 that is not of the service → asks about the base URL', () => {
    expect(errorOf(404, undefined, { body: 'Cannot POST /trackers' }).message).toBe(
      'POST https://api.example.test/v1/trackers responded with 404: Cannot POST /trackers; is the base URL right?',
    );
  });

  test('no errors, an empty body → the status', () => {
    expect(errorOf(503, undefined, { body: '' }).message).toBe(
      'POST https://api.example.test/v1/trackers responded with 503',
    );
  });

  test('no errors, plain text → the text', () => {
    expect(errorOf(429, undefined, { body: 'Too Many Requests\n' }).message).toBe(
      'POST https://api.example.test/v1/trackers responded with 429: Too Many Requests',
    );
  });

  test.each(['', '\n', '\r\n '])('a page of HTML after %j → its size only', (start) => {
    expect(errorOf(502, undefined, { body: `${start}<html>${'x'.repeat(50_000)}` }).message).toBe(
      `POST https://api.example.test/v1/trackers responded with 502: an HTML page of ${50_006 + start.length} characters`,
    );
  });

  test('a text with a < in it → the text, which is no page of HTML', () => {
    expect(errorOf(502, undefined, { body: 'weight < 0' }).message).toBe(
      'POST https://api.example.test/v1/trackers responded with 502: weight < 0',
    );
  });

  test('a very long text → cut to 500 characters', () => {
    const { message } = errorOf(500, undefined, { body: 'x'.repeat(50_000) });
    expect(message).toBe(`POST https://api.example.test/v1/trackers responded with 500: ${'x'.repeat(499)}…`);
  });

  test('a very long message of the service → cut as well', () => {
    const { message } = errorOf(500, undefined, { errors: [{ code: 'c', message: 'x'.repeat(50_000) }] });
    expect(message.length).toBeLessThan(600);
  });
});

describe('excerpt', () => {
  test('500 characters → all of them', () => {
    expect(excerpt('x'.repeat(500))).toBe('x'.repeat(500));
  });

  test('a word behind 2,000 spaces → nothing: only the beginning is read', () => {
    expect(excerpt(`${' '.repeat(2000)}x`)).toBe('');
  });

  test('line breaks and runs of spaces → single spaces', () => {
    expect(excerpt(' a\n\n  b\tc ')).toBe('a b c');
  });

  test('JSON → its text', () => {
    expect(excerpt({ a: [1] })).toBe('{"a":[1]}');
  });

  test('nothing → nothing', () => {
    expect(excerpt(undefined)).toBe('');
  });

  test('JSON nested a hundred thousand deep → a short text, no RangeError', () => {
    const deep: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(excerpt(deep).length).toBeLessThanOrEqual(500);
  });
});

describe('readErrorItems', () => {
  test('the usual envelope → code and message of each', () => {
    const body = { errors: [{ code: 'a', message: 'm' }, { code: 'b' }], data: null };
    expect(readErrorItems(body, API_KEY)).toEqual([
      { code: 'a', message: 'm' },
      { code: 'b', message: undefined },
    ]);
  });

  test('the bulk envelope → its one error', () => {
    expect(
      readErrorItems({ status: 'error', data: null, error: { code: 'a', message: 'm' } }, API_KEY),
    ).toEqual([{ code: 'a', message: 'm' }]);
  });

  test('fields added later → kept', () => {
    expect(readErrorItems({ errors: [{ code: 'a', field: 'x' }] }, API_KEY)).toEqual([
      { code: 'a', field: 'x', message: undefined },
    ]);
  });

  test('a message that is no string → left out', () => {
    expect(readErrorItems({ errors: [{ code: 'a', message: { deep: 1 } }] }, API_KEY)).toEqual([
      { code: 'a', message: undefined },
    ]);
  });

  test.each([
    null,
    'text',
    5,
    [],
    {},
    { errors: null },
    { errors: {} },
    { errors: ['a', null, {}, { code: 5 }] },
    { error: 'a' },
  ])('%j → none', (body) => {
    expect(readErrorItems(body, API_KEY)).toEqual([]);
  });
});

describe('a text of the service with line breaks and terminal codes', () => {
  test('in a message → one line without them', async () => {
    const errors = [{ code: 'validation_error', message: 'a\n[ERROR] forged line\u001b[2J\u0000b' }];
    const { client } = makeClient({ status: 400, body: { errors } });
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      message:
        'GET https://api.example.test/public/v1/couriers responded with 400: validation_error: a [ERROR] forged line [2J b',
    });
  });
});
