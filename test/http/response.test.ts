import { describe, expect, test, vi } from 'vitest';
import { ResponseValidationError, ResultsNotReadyError } from '../../src/errors.ts';
import { TRACKER } from '../contract/support/samples.ts';
import { API_KEY, catchRejection, makeClient, type StubResponse } from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

const COURIERS = JSON.stringify({ data: { couriers: [] } });
const list = (response: StubResponse) => makeClient(response).client.couriers.list();

describe('content type', () => {
  test.each(['Application/JSON; charset=utf-8', 'application/problem+json;charset=utf-8', 'text/json'])(
    '%s → read as JSON',
    async (type) => {
      expect(await list({ body: COURIERS, headers: { 'content-type': type } })).toEqual([]);
    },
  );

  test.each(['text/html', 'application/jsonp', 'multipart/related; type="application/json"', ''])(
    '%j → ResponseValidationError, although the body is JSON',
    async (type) => {
      expect(
        await catchRejection(list({ body: COURIERS, headers: { 'content-type': type } })),
      ).toBeInstanceOf(ResponseValidationError);
    },
  );

  test('a byte order mark before the JSON, in any success → read as JSON', async () => {
    expect(await list({ status: 299, body: `\ufeff${COURIERS}` })).toEqual([]);
  });

  test('no content type → read as JSON', async () => {
    const { client } = makeClient(() => new Response(new TextEncoder().encode(COURIERS)));
    expect(await client.couriers.list()).toEqual([]);
  });

  test('another content type → read as JSON only if it is an attachment, whatever its file name', async () => {
    const listAs = (disposition: string) =>
      list({ body: COURIERS, headers: { 'content-type': 'a/b', 'content-disposition': disposition } });
    expect(await listAs('attachment; filename="history.json"')).toEqual([]);
    expect(await catchRejection(listAs('inline; filename="attachment.json"'))).toBeInstanceOf(
      ResponseValidationError,
    );
  });
});

describe('messages', () => {
  test.each([
    [{ body: 'null' }, 'null instead of an object with `data`'],
    [{ body: {} }, 'an object without `data`'],
    [{ body: '' }, 'an empty body instead of JSON'],
    [{ body: '{"data":' }, 'a body that is not valid JSON'],
    [
      { body: '<p>', headers: { 'content-type': 'text/html; charset=x' } },
      'text/html instead of JSON; check the base URL',
    ],
  ])('%j → %s', async (response, words) => {
    expect(await catchRejection(list(response))).toMatchObject({
      name: 'ResponseValidationError',
      message: `GET https://api.example.test/public/v1/couriers responded with ${words}`,
      issues: [{ path: [], code: 'invalid_body', message: expect.stringContaining(words) }],
    });
  });

  test('one wrong field → a message with its path, rule and kind', async () => {
    const body = { data: { tracker: { ...TRACKER, isTracked: 'yes' } } };
    const { client } = makeClient({ body }, { invalidResponse: 'throw' });
    expect(await catchRejection(client.trackers.get('t'))).toMatchObject({
      name: 'ResponseValidationError',
      message:
        "The response of GET https://api.example.test/public/v1/trackers/… is not as documented: Expected `isTracked` to be true or false, got 'yes'",
      issues: [{ path: ['isTracked'], code: 'invalid_type' }],
    });
  });

  test('an invalid response → an error with status, request id and body', async () => {
    const response = { status: 201, body: { data: null }, headers: { 'x-request-id': 'req-1' } };
    expect(await catchRejection(list(response))).toMatchObject({
      status: 201,
      requestId: 'req-1',
      body: null,
    });
  });
});

describe('no results yet', () => {
  test.each([{ data: { trackings: [] } }, { data: [] }])('%j → ResultsNotReadyError', async (body) => {
    const { client } = makeClient({ body, headers: { 'x-request-id': 'req-1' } });
    const error = await catchRejection(client.trackers.results('t'));
    expect(error).toBeInstanceOf(ResultsNotReadyError);
    expect(error).toMatchObject({
      message:
        'GET https://api.example.test/public/v1/trackers/…/results returned no results yet; ask again later',
      status: 200,
      code: undefined,
      requestId: 'req-1',
      attempts: 1,
    });
  });

  test('no results for a tracking number → an empty array', async () => {
    const { client } = makeClient({ body: { data: { trackings: [] } } });
    expect(await client.trackers.resultsByTrackingNumber('LA680658838NL')).toEqual([]);
  });
});

describe('bulk statuses', () => {
  const items = [{ trackingNumber: 'LA680658838NL' }];
  const failed = { status: 'error', summary: null, data: null, error: { code: 'added_later', message: 'm' } };

  test.each([200, 201, 207, 400, 403])('%d with the bulk envelope → resolves to a result', async (status) => {
    const { client } = makeClient({ status, body: failed });
    expect(await client.trackers.createBulk(items)).toEqual(failed);
  });

  test.each([
    [404, failed, 'NotFoundError', 'added_later'],
    [500, failed, 'ServerError', 'added_later'],
    [
      403,
      { errors: [{ code: 'quota_limit_reached' }], data: null },
      'QuotaExceededError',
      'quota_limit_reached',
    ],
    [400, '<html>', 'InvalidRequestError', undefined],
    [403, '', 'PermissionDeniedError', undefined],
    [400, { status: 400, error: 'Bad Request' }, 'InvalidRequestError', undefined],
  ])('%d with %j → %s', async (status, body, name, code) => {
    const { client } = makeClient({ status, body }, { retry: false });
    expect(await catchRejection(client.trackers.createBulk(items))).toMatchObject({ name, status, code });
  });

  test('400 with the bulk envelope from another endpoint → an error', async () => {
    const { client } = makeClient({ status: 400, body: failed });
    expect(await catchRejection(client.trackers.create({ trackingNumber: 'LA680658838NL' }))).toMatchObject({
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

  test.each(['{"data":"', ' [\n"'])(
    '201 to a resend with JSON %j that is too long → accepted, because the status is enough',
    async (beginning) => {
      const body = beginning + 'x'.repeat(2_000);
      const { client } = makeClient({ status: 201, body }, { maxResponseBytes: 1_000 });
      expect(await client.trackers.resendWebhookEvents('t')).toEqual({});
    },
  );

  test.each(['<!doctype html>', 'Sign in '])(
    '200 to a resend with a body %j that is too long → ResponseValidationError, and no retry',
    async (beginning) => {
      const body = beginning + 'x'.repeat(2_000);
      const { client, requests } = makeClient({ status: 200, body }, { maxResponseBytes: 1_000 });
      expect(await catchRejection(client.trackers.resendWebhookEvents('t'))).toMatchObject({
        name: 'ResponseValidationError',
        message: expect.stringContaining('more than 1000 bytes'),
      });
      expect(requests).toHaveLength(1);
    },
  );

  test.each<[string, string, string]>([
    ['the HTML of a login page', 'text/html', '<!doctype html><title>Sign in</title>'],
    ['HTML that claims to be JSON', 'application/json', '<!doctype html>'],
    ['a text', 'text/plain', 'OK'],
    ['cut-off JSON', 'application/json', '{"data":{"summary":'],
  ])('200 to a resend with %s → ResponseValidationError, and no retry', async (_what, type, body) => {
    const { client, requests } = makeClient(() => new Response(body, { headers: { 'content-type': type } }));
    expect(await catchRejection(client.trackers.resendWebhookEvents('t'))).toMatchObject({
      name: 'ResponseValidationError',
      status: 200,
      body,
    });
    expect(requests).toHaveLength(1);
  });

  test.each<[string, string]>([
    ['text/html', ' \n'],
    ['text/html', '{"ok":true}'],
    ['text/plain', '"OK"'],
    ['application/json', 'null'],
  ])('200 to a resend with %s %j → an empty result', async (type, body) => {
    const { client } = makeClient(() => new Response(body, { headers: { 'content-type': type } }));
    expect(await client.trackers.resendWebhookEvents('t')).toEqual({});
  });

  test('500 to a resend with a body that breaks off → ConnectionError', async () => {
    const broken = () => new ReadableStream({ pull: (stream) => stream.error(new Error('cut')) });
    const { client } = makeClient(() => new Response(broken(), { status: 500 }), { retry: false });
    expect(await catchRejection(client.trackers.resendWebhookEvents('t'))).toMatchObject({
      name: 'ConnectionError',
    });
  });

  test('204 from an endpoint whose result is required → ResponseValidationError', async () => {
    const { client } = makeClient({ status: 204 });
    expect(await catchRejection(client.trackers.get('t'))).toBeInstanceOf(ResponseValidationError);
  });
});

test('a redirect without an address → an error that asks to check the base URL', async () => {
  const { client } = makeClient({ status: 302 });
  expect(await catchRejection(client.couriers.list())).toMatchObject({
    message:
      'GET https://api.example.test/public/v1/couriers responded with 302, a redirect, which the client does not follow; check the base URL',
  });
});

test.each([300, 307, 399])('%d → an error that explains why the redirect is not followed', async (status) => {
  const { client, requests } = makeClient({
    status,
    headers: { location: 'https://evil.test/login?token=hunter2' },
  });
  expect(await catchRejection(client.couriers.list())).toMatchObject({
    name: 'ApiError',
    status,
    message: `GET https://api.example.test/public/v1/couriers responded with ${status}, a redirect to https://evil.test, which the client does not follow; set the base URL to the new address`,
  });
  expect(requests).toHaveLength(1);
});

test.each([
  ['http://other.test/a', ' to http://other.test'],
  ['ftp://other.test/a', ''],
  ['httpsx://other.test/a', ''],
  ['xhttps://other.test/a', ''],
])('a redirect to %s → names%s', async (location, origin) => {
  const { client } = makeClient({ status: 302, headers: { location } });
  const { message } = Object(await catchRejection(client.couriers.list()));
  expect(message).toContain(`responded with 302, a redirect${origin}, which the client does not follow`);
});

test.each(['', ' ', '\r\n\t'])(
  'a success whose body is %j → ResponseValidationError about an empty body',
  async (body) => {
    const { client } = makeClient(
      () => new Response(body, { headers: { 'content-type': 'application/json' } }),
    );
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ResponseValidationError',
      message: expect.stringContaining('an empty body instead of JSON'),
    });
  },
);

describe('a success with invalid fields', () => {
  const odd = { ...TRACKER, isTracked: 'yes', createdAt: 5 };
  const response = {
    body: { data: { trackers: [TRACKER, odd, { ...TRACKER, isTracked: 1 }] } },
    headers: { 'x-request-id': 'req-1' },
  };
  const logger = () => ({ debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() });
  const UUID = expect.stringMatching(/^[\da-f-]{36}$/);

  test('withResponse → the unchanged data, and the mismatches', async () => {
    const { client } = makeClient(response);
    const { data, mismatched } = await client.trackers.list().withResponse();
    expect(data.trackers).toEqual(response.body.data.trackers);
    const paths = mismatched.map(({ path }) => path.join('.')).sort();
    expect(paths).toEqual(['1.createdAt', '1.isTracked', '2.isTracked']);
  });

  test('the hook onMismatch → gets endpoint, attempt, request id and mismatches', async () => {
    const onMismatch = vi.fn();
    const { client } = makeClient([{ status: 500 }, response], { hooks: { onMismatch } });
    await settleInVirtualTime(() => client.trackers.list());
    const mismatch = expect.objectContaining({ path: [1, 'isTracked'], code: 'invalid_type' });
    expect(onMismatch).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        endpoint: 'trackers.list',
        attempt: 2,
        requestId: 'req-1',
        mismatched: expect.arrayContaining([mismatch]),
      }),
    );
  });

  test('one wrong field in several items → one warning, with endpoint and request id', async () => {
    const log = logger();
    await makeClient(response, { logger: log, logLevel: 'warn' }).client.trackers.list();
    const fields = log.warn.mock.calls.map(([, { field }]) => field).sort();
    expect(fields).toEqual(['data[].createdAt', 'data[].isTracked']);
    expect(log.warn).toHaveBeenCalledWith(
      expect.stringMatching(
        /^\[tracking-client\] The response of GET \S+\/trackers is not as documented: Expected `data\[1\]\.isTracked` to be .*; the client returns the value unchanged$/,
      ),
      expect.objectContaining({ callId: UUID, status: 200, requestId: 'req-1', field: 'data[].isTracked' }),
    );
  });

  test('the same wrong field again → `debug`; from another endpoint or client → a new warning', async () => {
    const log = logger();
    const options = { logger: log, logLevel: 'debug' } as const;
    const oddTracker = { body: { data: { tracker: { ...TRACKER, isTracked: 'yes' } } } };
    const { client } = makeClient(oddTracker, options);
    await client.trackers.get('t');
    await client.trackers.get('t');
    expect(log.warn).toHaveBeenCalledTimes(1);
    const repeated = log.debug.mock.calls.filter(([line]) => line.includes('isTracked'));
    expect(repeated).toHaveLength(1);
    await client.trackers.update('t', { isSubscribed: false });
    expect(log.warn).toHaveBeenCalledTimes(2);
    await makeClient(oddTracker, options).client.trackers.get('t');
    expect(log.warn).toHaveBeenCalledTimes(3);
  });

  test('the API key as the name of a wrong field → masked', async () => {
    const log = logger();
    const tracker = { ...TRACKER, courierCode: [{ [API_KEY]: 1 }] };
    const { client } = makeClient({ body: { data: { tracker } } }, { logger: log, logLevel: 'debug' });
    const { mismatched } = await client.trackers.get('t').withResponse();
    expect(mismatched).toHaveLength(1);
    expect(JSON.stringify([mismatched, log.warn.mock.calls])).not.toContain(API_KEY);
  });

  test("invalidResponse: 'throw' → ResponseValidationError, no hook call and no log line", async () => {
    const onMismatch = vi.fn();
    const log = logger();
    const options = { invalidResponse: 'throw', hooks: { onMismatch }, logger: log } as const;
    const { client } = makeClient(response, { ...options, logLevel: 'warn' });
    expect(await catchRejection(client.trackers.list())).toBeInstanceOf(ResponseValidationError);
    expect(onMismatch).not.toHaveBeenCalled();
    expect(log.warn).not.toHaveBeenCalled();
  });
});

describe('foreign texts in messages, logs and fields', () => {
  const NAMES = ['x-request-id', 'content-type'] as const;
  const shownFor = async (name: (typeof NAMES)[number], value: string, body = '<p>') => {
    const { client } = makeClient({ body, headers: { [name]: value } });
    const error = Object(await catchRejection(client.couriers.list()));
    return name === 'x-request-id'
      ? error.requestId
      : /responded with (.*) instead of/.exec(error.message)?.[1];
  };

  test.each(NAMES)('%s with the key across the 200th character → masked before it is cut', async (name) => {
    for (const length of [170, 180, 190, 199]) {
      const shown = await shownFor(name, `${'x'.repeat(length)}${API_KEY}`);
      expect(shown).not.toContain(API_KEY.slice(0, 6));
      expect(shown.length).toBeLessThanOrEqual(200);
    }
  });

  test.each(NAMES)('%s of 10 kB with control characters → 200 printable characters', async (name) => {
    const value = `a\u0085\u009b31m\u001b[2J${'x'.repeat(10_000)}`;
    expect(await shownFor(name, value)).toBe(`a 31m [2J${'x'.repeat(190)}…`);
  });
});

test('a page of 10,000 wrong records → 20 issues, and a message that mentions the rest', async () => {
  const couriers = Array.from({ length: 10_000 }, () => ({}));
  const { client } = makeClient({ body: { data: { couriers } } }, { invalidResponse: 'throw' });
  expect(await catchRejection(client.couriers.list())).toMatchObject({
    name: 'ResponseValidationError',
    message: expect.stringMatching(
      / is not as documented: Expected `data\[0\]\.courierCode` .* \(and more problems\)$/,
    ),
    issues: { length: 20 },
  });
});

test.each([
  ['All is well', 'All is well'],
  ['Gr\u{1f600}n', ''],
])('the reason phrase %j → %j, empty if a response cannot hold it', async (phrase, shown) => {
  const headers = { 'content-type': 'application/json' };
  const step = () =>
    Object.defineProperty(new Response(COURIERS, { headers }), 'statusText', { value: phrase });
  const { response } = await makeClient(step).client.couriers.list().withResponse();
  expect(response.statusText).toBe(shown);
});
