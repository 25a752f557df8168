import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { ResponseValidationError, ResultsNotReadyError } from '../../src/errors.ts';
import { TRACKER } from '../support/calls.ts';
import { type Answer, API_KEY, makeClient, rejectionOf } from '../support/make-client.ts';

const COURIERS = JSON.stringify({ data: { couriers: [] } });
const list = (answer: Answer) => makeClient(answer).client.couriers.list();

describe('content type', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/vnd.api+json',
    'application/problem+json;charset=utf-8',
    'text/json',
  ])('%s → read as JSON', async (type) => {
    expect(await list({ body: COURIERS, headers: { 'content-type': type } })).toEqual([]);
  });

  test.each([
    'text/html',
    'text/plain',
    'application/xml',
    'application/octet-stream',
    'application/jsonp',
    'multipart/related; type="application/json"',
    '',
  ])('%j → ResponseValidationError, although the body is JSON', async (type) => {
    expect(await rejectionOf(list({ body: COURIERS, headers: { 'content-type': type } }))).toBeInstanceOf(
      ResponseValidationError,
    );
  });

  test('none at all → read as JSON', async () => {
    const { client } = makeClient(() => new Response(new TextEncoder().encode(COURIERS)));
    expect(await client.couriers.list()).toEqual([]);
  });

  test('another type, shown inline under a name like attachment → ResponseValidationError', async () => {
    const headers = {
      'content-type': 'application/octet-stream',
      'content-disposition': 'inline; filename="attachment.json"',
    };
    expect(await rejectionOf(list({ body: COURIERS, headers }))).toBeInstanceOf(ResponseValidationError);
  });

  test('a JSON attachment of another type → read as JSON', async () => {
    const headers = {
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="history.json"',
    };
    const { client } = makeClient({ body: { metadata: {}, webhooks: [] }, headers });
    expect(await client.trackers.webhookHistory('t')).toEqual({ metadata: {}, webhooks: [] });
  });
});

describe('messages', () => {
  test.each([
    [{ body: 'null' }, 'got null where an object with `data` was due'],
    [{ body: {} }, 'got an object where an object with `data` was due'],
    [{ body: '' }, 'got an empty body'],
    [{ body: ' \n' }, 'got an empty body'],
    [{ body: '{"data":' }, 'got a body that is not valid JSON'],
    [{ body: '<p>', headers: { 'content-type': 'text/html' } }, 'got content of type text/html'],
    [
      { body: '<p>', headers: { 'content-type': 'text/html; charset=utf-8' } },
      'got content of type text/html',
    ],
    [
      { body: '<p>', headers: { 'content-type': `text/${'x'.repeat(200)}` } },
      `got content of type text/${'x'.repeat(95)}`,
    ],
  ])('%j → %s', async (answer, words) => {
    expect(await rejectionOf(list(answer))).toMatchObject({
      name: 'ResponseValidationError',
      message: `Expected GET https://api.example.test/public/v1/couriers to answer with its documented JSON, ${words}`,
      issues: [{ path: [], code: 'invalid_body', message: expect.stringContaining(words) }],
    });
  });

  test('one wrong field → its path, rule and kind', async () => {
    const body = { data: { tracker: { ...TRACKER, isTracked: 'yes' } } };
    const { client } = makeClient({ body }, { invalidResponse: 'throw' });
    expect(await rejectionOf(client.trackers.get('t'))).toMatchObject({
      name: 'ResponseValidationError',
      message:
        'GET https://api.example.test/public/v1/trackers/{trackerId} was answered with an unexpected `isTracked`: Expected `isTracked` to be a boolean, got a string of 3 characters',
      issues: [{ path: ['isTracked'], code: 'invalid_type' }],
    });
  });

  test('several wrong fields → the first one, and how many more', async () => {
    const { client } = makeClient({ body: { data: { tracker: {} } } });
    const error = await rejectionOf(client.trackers.get('t'));
    expect(error).toMatchObject({
      message: expect.stringMatching(/unexpected `trackerId`.* \(and 2 more\)$/),
    });
  });

  test('an invalid answer → status, request id and body are kept', async () => {
    const answer = { status: 201, body: { data: null }, headers: { 'x-request-id': 'req-1' } };
    expect(await rejectionOf(list(answer))).toMatchObject({ status: 201, requestId: 'req-1', body: null });
  });

  test('an answer that is no JSON → the text is kept', async () => {
    expect(await rejectionOf(list({ body: 'oops' }))).toMatchObject({ body: 'oops' });
  });

  test('an error that is no JSON → the text is kept, and shown', async () => {
    expect(await rejectionOf(list({ status: 400, body: 'oops' }))).toMatchObject({
      body: 'oops',
      message: 'GET https://api.example.test/public/v1/couriers was answered with 400: oops',
    });
  });
});

describe('no results yet', () => {
  test.each([{ data: { trackings: [] } }, { data: [] }])('%j → ResultsNotReadyError', async (body) => {
    const { client } = makeClient({ body, headers: { 'x-request-id': 'req-1' } });
    const error = await rejectionOf(client.trackers.results('t'));
    expect(error).toBeInstanceOf(ResultsNotReadyError);
    expect(error).toMatchObject({
      message:
        'GET https://api.example.test/public/v1/trackers/{trackerId}/results has no results yet; ask again later',
      status: 200,
      code: undefined,
      requestId: 'req-1',
      attempts: 1,
    });
  });

  test('parcel_not_found → ResultsNotReadyError with that code', async () => {
    const { client, requests } = makeClient({
      status: 404,
      body: { errors: [{ code: 'parcel_not_found' }], data: null },
    });
    expect(await rejectionOf(client.trackers.results('t'))).toMatchObject({
      name: 'ResultsNotReadyError',
      code: 'parcel_not_found',
    });
    expect(requests).toHaveLength(1);
  });

  test('no results for a tracking number → an empty array', async () => {
    const { client } = makeClient({ body: { data: { trackings: [] } } });
    expect(await client.trackers.resultsByTrackingNumber('LA680658838NL')).toEqual([]);
  });
});

describe('bulk statuses', () => {
  const items = [{ trackingNumber: 'LA680658838NL' }];
  const failed = { status: 'error', summary: null, data: null, error: { code: 'added_later', message: 'm' } };

  test.each([200, 201, 207, 400, 403])('%d with the bulk envelope → a result', async (status) => {
    const { client } = makeClient({ status, body: failed });
    expect(await client.trackers.createBulk(items)).toEqual(failed);
  });

  test.each([
    [401, 'AuthenticationError'],
    [404, 'NotFoundError'],
    [405, 'ApiError'],
    [422, 'InvalidRequestError'],
    [429, 'RateLimitError'],
    [500, 'ServerError'],
    [503, 'ServerError'],
  ])('%d with the bulk envelope → %s with its code', async (status, name) => {
    const { client } = makeClient({ status, body: failed }, { retry: false });
    expect(await rejectionOf(client.trackers.createBulk(items))).toMatchObject({
      name,
      code: 'added_later',
      status,
    });
  });

  test('403 quota_limit_reached in the bulk envelope → a result that says so', async () => {
    const body = { ...failed, error: { code: 'quota_limit_reached' } };
    const { client } = makeClient({ status: 403, body });
    expect(await client.trackers.createBulk(items)).toMatchObject({ error: { code: 'quota_limit_reached' } });
  });

  test.each([
    [400, { errors: [{ code: 'validation_error' }], data: null }, 'InvalidRequestError'],
    [403, { errors: [{ code: 'quota_limit_reached' }], data: null }, 'QuotaExceededError'],
    [400, '<html>', 'InvalidRequestError'],
    [403, '', 'PermissionDeniedError'],
    [400, { status: 400, error: 'Bad Request' }, 'InvalidRequestError'],
  ])('%d with another body (%j) → %s', async (status, body, name) => {
    const { client } = makeClient({ status, body });
    expect(await rejectionOf(client.trackers.createBulk(items))).toMatchObject({ name, status });
  });

  test('400 with the bulk envelope from another endpoint → an error', async () => {
    const { client } = makeClient({ status: 400, body: failed });
    expect(await rejectionOf(client.trackers.create({ trackingNumber: 'LA680658838NL' }))).toMatchObject({
      name: 'InvalidRequestError',
      code: 'added_later',
    });
  });
});

describe('empty successes', () => {
  test.each([204, 205])('%d to a resend → an empty result', async (status) => {
    const { client } = makeClient({ status });
    expect(await client.trackers.resendWebhookEvents('t')).toEqual({});
  });

  test.each([
    ['breaks off', () => new ReadableStream({ pull: (stream) => stream.error(new Error('cut')) })],
    ['is too long', () => 'x'.repeat(2_000)],
  ])('201 to a resend with a body that %s → accepted all the same', async (_what, body) => {
    const { client } = makeClient(() => new Response(body(), { status: 201 }), { maxAnswerBytes: 1_000 });
    expect(await client.trackers.resendWebhookEvents('t')).toEqual({});
  });

  test.each([
    ['a resend that fails', 500, 'trackers.resendWebhookEvents'],
    ['a tracker', 200, 'trackers.get'],
  ])('a body that breaks off, of %s → ConnectionError', async (_what, status, method) => {
    const broken = () => new ReadableStream({ pull: (stream) => stream.error(new Error('cut')) });
    const { client } = makeClient(() => new Response(broken(), { status }), { retry: false });
    const { trackers } = client;
    const call = method === 'trackers.get' ? trackers.get('t') : trackers.resendWebhookEvents('t');
    expect(await rejectionOf(call)).toMatchObject({ name: 'ConnectionError' });
  });

  test('204 to an endpoint that has something to say → ResponseValidationError', async () => {
    const { client } = makeClient({ status: 204 });
    expect(await rejectionOf(client.trackers.get('t'))).toBeInstanceOf(ResponseValidationError);
  });
});

describe('redirects', () => {
  test.each([300, 301, 302, 303, 307, 308, 399])(
    '%d → an error that says why it is not followed',
    async (status) => {
      const { client, requests } = makeClient({ status, headers: { location: 'https://evil.test/' } });
      expect(await rejectionOf(client.couriers.list())).toMatchObject({
        name: 'ApiError',
        status,
        message: `GET https://api.example.test/public/v1/couriers was answered with a redirect (${status}), which is never followed: the key would travel with it`,
      });
      expect(requests).toHaveLength(1);
    },
  );
});

test('the error response of the platform, which has no status → an ApiError, not taken for a redirect', async () => {
  expect(await rejectionOf(makeClient(() => Response.error()).client.couriers.list())).toMatchObject({
    name: 'ApiError',
    status: 0,
    message: 'GET https://api.example.test/public/v1/couriers was answered with 0',
  });
});

describe('a success with odd fields', () => {
  const odd = { ...TRACKER, isTracked: 'yes', [API_KEY]: 1 };
  const body = { data: { trackers: [TRACKER, odd, { trackingNumber: 'x' }] } };
  const issueOf = (path: readonly (string | number)[]) => ({ path, code: 'invalid_type' });

  test('withResponse → what came, and what breaks the schema', async () => {
    const { client } = makeClient({ body });
    const { data, mismatched } = await client.trackers.list().withResponse();
    expect(data.trackers).toEqual([TRACKER, odd, { trackingNumber: 'x' }]);
    expect(mismatched.slice(0, 2)).toMatchObject([issueOf([1, 'isTracked']), issueOf([2, 'trackerId'])]);
  });

  test('the hook onMismatch → endpoint, attempt, request id and what differs', async () => {
    const onMismatch = vi.fn();
    const answer = { body, headers: { 'x-request-id': 'req-1' } };
    await makeClient([{ status: 500 }, answer], { hooks: { onMismatch } }).client.trackers.list();
    expect(onMismatch).toHaveBeenCalledExactlyOnceWith({
      callId: expect.any(String),
      baseUrl: expect.any(String),
      queuedMs: 0,
      endpoint: 'trackers.list',
      method: 'GET',
      path: '/trackers',
      attempt: 2,
      requestId: 'req-1',
      mismatched: expect.arrayContaining([expect.objectContaining(issueOf([1, 'isTracked']))]),
    });
  });

  test('nothing odd → no hook, no line, an empty list', async () => {
    const onMismatch = vi.fn();
    const { client } = makeClient({ body: { data: { tracker: TRACKER } } }, { hooks: { onMismatch } });
    expect((await client.trackers.get('t').withResponse()).mismatched).toEqual([]);
    expect(onMismatch).not.toHaveBeenCalled();
  });

  test('one debug line that names the first field, with the request id', async () => {
    const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const answer = { body, headers: { 'x-request-id': 'req-1' } };
    await makeClient(answer, { logger: log, logLevel: 'debug' }).client.trackers.list();
    const lines = log.debug.mock.calls.filter(([line]) => /unexpected `items\[1\].isTracked`/.test(line));
    expect(lines).toEqual([[expect.any(String), { requestId: 'req-1' }]]);
    expect(log.warn).not.toHaveBeenCalled();
  });

  test('the key as the name of a field that differs → not shown', async () => {
    const tracker = { ...TRACKER, courierCode: [{ [API_KEY]: 1 }] };
    const { client } = makeClient({ body: { data: { tracker } } });
    const { mismatched } = await client.trackers.get('t').withResponse();
    expect(mismatched).toHaveLength(1);
    expect(JSON.stringify(mismatched)).not.toContain(API_KEY);
  });

  test('a schema of your own → strict all the same', async () => {
    const { client } = makeClient({ body: { count: 'many' } });
    const schema = z.object({ count: z.number() });
    expect(await rejectionOf(client.request({ method: 'GET', path: '/stats', schema }))).toMatchObject({
      name: 'ResponseValidationError',
      issues: [{ path: ['count'] }],
    });
  });
});

describe('envelopes', () => {
  test.each([200, 201, 202, 299])('status %d → a success', async (status) => {
    expect(await list({ status, body: COURIERS })).toEqual([]);
  });

  test('a byte order mark before the JSON → read all the same', async () => {
    expect(await list({ body: `\ufeff${COURIERS}` })).toEqual([]);
  });
});

describe('a page without a single good record', () => {
  test('10,000 records → 20 issues, and the message tells of more', async () => {
    const couriers = Array.from({ length: 10_000 }, () => ({}));
    const { client } = makeClient({ body: { data: { couriers } } }, { invalidResponse: 'throw' });
    const error = await rejectionOf(client.couriers.list());
    expect(error).toBeInstanceOf(ResponseValidationError);
    expect(error).toMatchObject({ message: expect.stringMatching(/ \(and 20 more\)$/) });
    expect(error).toHaveProperty('issues.length', 20);
    expect(JSON.stringify(error).length).toBeLessThan(5000);
  });
});
