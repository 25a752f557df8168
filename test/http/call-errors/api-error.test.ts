import { describe, expect, test } from 'vitest';
import type { KnownErrorCode } from '../../../src/schemas/api-error.ts';
import { catchRejection, makeClient, type StubResponse } from '../../support/make-client.ts';

const TITLE = 'GET https://api.example.test/public/v1/couriers';

const HINT = '; check the base URL https://api.example.test/public/v1: its path is usually /public/v1';

/** Makes a call that gets this response, and returns its error. */
function failWith(response: StubResponse): Promise<unknown> {
  return catchRejection(makeClient(response, { retry: false }).client.couriers.list());
}

function failWithCodes(status: number, ...codes: readonly string[]): Promise<unknown> {
  const errors = codes.map((code) => ({ code, message: 'words of the service' }));
  return failWith({ status, body: { errors, data: null } });
}

/** Every known code (docs/service.md 7.6) with a status and its class. */
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

describe('the class of an error', () => {
  test.each(Object.entries(CODES))('%s → an error with status and class %j', async (code, [status, name]) => {
    expect(await failWithCodes(status, code)).toMatchObject({ name, code, status });
    // The code decides, even with a status of another class.
    expect(await failWithCodes(500, code)).toMatchObject({ name });
  });

  test.each([
    [400, 'auth_key_expired', 'AuthenticationError'],
    [400, 'auth_', 'AuthenticationError'],
    [404, 'toString', 'NotFoundError'],
    [404, '__proto__', 'NotFoundError'],
    [400, 'processing_error', 'InvalidRequestError'],
  ])('%d %s, which has no class of its own → %s', async (status, code, name) => {
    expect(await failWithCodes(status, code)).toMatchObject({ name, code });
  });

  test.each([
    [['added_later', 'tracker_conflict', 'validation_error'], 'tracker_conflict'],
    [['added_later', 'auth_added_later'], 'auth_added_later'],
    [['added_later', 'added_even_later'], 'added_later'],
  ])('the codes %j → %s decides', async (codes, code) => {
    expect(await failWithCodes(400, ...codes)).toMatchObject({
      code,
      message: `${TITLE} responded with 400: ${code}: words of the service`,
    });
  });

  test.each([
    [302, 'ApiError'],
    [400, 'InvalidRequestError'],
    [401, 'AuthenticationError'],
    [403, 'PermissionDeniedError'],
    [404, 'NotFoundError'],
    [408, 'ApiError'],
    [409, 'ConflictError'],
    [418, 'ApiError'],
    [422, 'InvalidRequestError'],
    [429, 'RateLimitError'],
    [500, 'ServerError'],
    [599, 'ServerError'],
  ])('%d without a known code → %s', async (status, name) => {
    expect(await failWith({ status })).toMatchObject({ name, code: undefined });
    expect(await failWithCodes(status, 'added_later')).toMatchObject({ name, code: 'added_later' });
  });
});

describe('the message of an error', () => {
  const long = 'x'.repeat(50_000);
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  const forged = { code: 'c', message: 'a\n[ERROR] forged line\u001b[2J\u0000b' };

  test.each<[what: string, status: number, body: unknown, words: string]>([
    ['a code without a message', 404, { errors: [{ code: 'tracker_not_found' }] }, ': tracker_not_found'],
    ['a 404 of another server', 404, 'Cannot GET /', `: Cannot GET /${HINT}`],
    ['a 404 of a gateway with a code', 404, { error: { code: 'no_route' } }, `: no_route${HINT}`],
    ['a 404 for an unknown path', 404, { errors: [{ code: 'path_not_found' }] }, `: path_not_found${HINT}`],
    ['an empty body', 503, '', ''],
    ['plain text', 429, 'Too Many\n\n  Requests\n', ': Too Many Requests'],
    ['JSON without errors', 500, { a: [1] }, ': {"a":[1]}'],
    ['a page of HTML', 502, `\r\n <html>${long}`, ': an HTML page of 50009 characters'],
    ['a text with a < in it', 502, 'weight < 0', ': weight < 0'],
    ['500 characters', 500, 'x'.repeat(500), `: ${'x'.repeat(500)}`],
    ['a longer text', 500, long, `: ${'x'.repeat(499)}…`],
    ['a long message', 500, { errors: [{ code: 'c', message: long }] }, `: c: ${'x'.repeat(496)}…`],
    ['a word behind 2,000 spaces', 500, `${' '.repeat(2_000)}x`, ''],
    ['JSON nested deeper than the stack', 500, deep, ''],
    ['line breaks and terminal codes', 400, { errors: [forged] }, ': c: a [ERROR] forged line [2J b'],
  ])('%s → a message of one short line, with $3 at its end', async (_what, status, body, words) => {
    expect(await failWith({ status, body })).toHaveProperty(
      'message',
      `${TITLE} responded with ${status}${words}`,
    );
  });

  test.each(['https://api.example.test', 'https://api.example.test/v1', 'http://127.0.0.1:4010/public'])(
    '404 without a known code, with the base URL %s → the message names it, and its usual path',
    async (baseUrl) => {
      const hint = `; check the base URL ${baseUrl}: its path is usually /public/v1`;
      for (const body of ['Not Found', '', { errors: [{ code: 'path_not_found' }] }]) {
        const { client } = makeClient({ status: 404, body }, { retry: false, baseUrl });
        for (const call of [client.trackers.get('t1'), client.request({ method: 'GET', path: '/later' })])
          expect(await catchRejection(call)).toMatchObject({
            name: 'NotFoundError',
            message: expect.stringMatching(new RegExp(`^GET ${baseUrl}/\\S+ responded with 404.*${hint}$`)),
          });
      }
    },
  );

  test('a response with a request id → the message contains it', async () => {
    expect(await failWith({ status: 503, headers: { 'x-request-id': 'req-1' } })).toMatchObject({
      message: `${TITLE} responded with 503 (request id req-1)`,
      requestId: 'req-1',
    });
  });
});

describe('the errors that a body lists', () => {
  test.each([
    [
      'several errors',
      { errors: [{ code: 'a', message: 'm' }, { code: 'b' }] },
      [{ code: 'a', message: 'm' }, { code: 'b' }],
    ],
    ['the error of the bulk envelope', { error: { code: 'a', message: 'm' } }, [{ code: 'a', message: 'm' }]],
    ['an error with an unknown field', { errors: [{ code: 'a', field: 'x' }] }, [{ code: 'a', field: 'x' }]],
    ['an error whose message is no text', { errors: [{ code: 'a', message: { deep: 1 } }] }, [{ code: 'a' }]],
  ])('%s → the errors of the response', async (_what, body, errors) => {
    expect(await failWith({ status: 400, body })).toMatchObject({ errors });
  });

  test.each([
    'null',
    'text',
    // A row of its own, because vitest spreads an array.
    [[]],
    {},
    { errors: null },
    { errors: {} },
    { errors: ['a', null, {}, { code: 5 }] },
    { error: 'a' },
  ])('%j → no errors', async (body) => {
    expect(await failWith({ status: 400, body })).toMatchObject({ errors: [], code: undefined });
  });
});

test.each([
  [403, 'quota_limit_reached', 'wait until your quota is renewed, or choose a larger plan in the dashboard'],
  [429, 'quota_limit_reached', 'wait until your quota is renewed, or choose a larger plan in the dashboard'],
  [403, 'bulk_create_limit_exceeded', 'send at most 100 items in one request, as `trackers.createMany` does'],
  [422, 'no_active_subscription', 'subscribe to the plan of this endpoint in the dashboard'],
])('%d %s → the message says what to do', async (status, code, advice) => {
  const { client } = makeClient({ status, body: { errors: [{ code, message: 'No.' }], data: null } });
  const error = await catchRejection(client.couriers.list({ retry: false }));
  expect(error).toMatchObject({ code, message: expect.stringContaining(`: ${code}: No.; ${advice}`) });
});
