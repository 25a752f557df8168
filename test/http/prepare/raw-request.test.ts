import { describe, expect, test } from 'vitest';
import type { RawRequest } from '../../../src/http/prepare.ts';
import { EVERY_CALL } from '../../support/calls.ts';
import { catchRejection, makeClient } from '../../support/make-client.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';

const OK = { body: { anything: [1] } };

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;
const METHOD_RULE = 'to be one of GET, HEAD, POST, PUT, PATCH, DELETE';
const PATH_RULE = 'to be a path that starts with one "/" and has no query, fragment, space or backslash';
const QUERY_RULE = 'to be a plain object, as in { page: 2 }';

describe('a request that breaks a rule', () => {
  test.each<[field: string, value: unknown, rule: string]>([
    ...['TRACE', 'get', '', undefined].map((value): [string, unknown, string] => [
      'method',
      value,
      METHOD_RULE,
    ]),
    ...['//evil.test/a', '/\\evil.test', '/a?b=c', '/a#b', '/a b', '/a\r\nb', 'a', '', 'https://evil.test/a']
      .concat('@evil.test', '.evil.test')
      .map((value): [string, unknown, string] => ['path', value, PATH_RULE]),
    ...[undefined, null, 5, ['/a']].map((value): [string, unknown, string] => ['path', value, PATH_RULE]),
    ...['/../admin', '/..', '/.', '/a/../../b', '/a/./b', '/%2e%2e/admin', '/%2E./admin', '/a/%2e%2e']
      .concat('/%252e%252e/admin', '/..%2fadmin', '/a%2f..%2f..%2fadmin', '/..%5cadmin')
      .map((value): [string, unknown, string] => [
        'path',
        value,
        'to have no path segment `.` or `..`, even percent-encoded',
      ]),
    ['query', new URLSearchParams('a=1'), QUERY_RULE],
    ['query', 'a=1', QUERY_RULE],
    ['query', null, QUERY_RULE],
    ['idempotent', 'false', 'to be true or false'],
  ])('%s: %o → RequestValidationError, nothing is sent', async (field, value, rule) => {
    const { client, requests } = makeClient(OK);
    // A caller without types could pass this.
    const request = { method: 'POST', path: '/a', [field]: value } as unknown as RawRequest;
    expect(await catchRejection(client.request(request))).toMatchObject({
      name: 'RequestValidationError',
      message: expect.stringMatching(`^Expected \`${field}\` ${rule.replace(/[()]/g, '.')}, got `),
      issues: [{ path: [field] }],
    });
    expect(requests).toHaveLength(0);
  });

  test.each([
    [cycle, 'remove any BigInt and any circular reference'],
    [5n, 'it is a bigint'],
    [() => 1, 'it is a function'],
  ])('a body that JSON cannot hold: %o → RequestValidationError, nothing is sent', async (body, reason) => {
    const { client, requests } = makeClient(OK);
    expect(await catchRejection(client.request({ method: 'POST', path: '/a', body }))).toMatchObject({
      name: 'RequestValidationError',
      message: `\`body\` cannot be written as JSON; ${reason}`,
      issues: [{ path: ['body'] }],
    });
    expect(requests).toHaveLength(0);
  });

  test.each([[{}], [[1]], [Object.create(null)]])(
    'a query with the value %o → RequestValidationError that names the field',
    async (value) => {
      const { client, requests } = makeClient(OK);
      // A caller without types could pass this.
      const request = { method: 'GET', path: '/a', query: { ok: 1, a: value } } as unknown as RawRequest;
      expect(await catchRejection(client.request(request))).toMatchObject({
        name: 'RequestValidationError',
        message: expect.stringMatching(/^Expected `query.a` to be a string, number or boolean, got an /),
        issues: [{ path: ['query', 'a'] }],
      });
      expect(requests).toHaveLength(0);
    },
  );

  test.each(['GET', 'HEAD'] as const)('%s with a body → RequestValidationError', async (method) => {
    const { client, requests } = makeClient(OK);
    expect(await catchRejection(client.request({ method, path: '/a', body: {} }))).toMatchObject({
      name: 'RequestValidationError',
      message: 'Expected `body` to be left out of a GET or HEAD request, got an object',
    });
    expect(requests).toHaveLength(0);
  });

  test.each([null, undefined])('%s → RequestValidationError', async (request) => {
    // @ts-expect-error: a program without types gives anything.
    expect(await catchRejection(makeClient(OK).client.request(request))).toMatchObject({
      name: 'RequestValidationError',
    });
  });
});

describe('a request that is sent', () => {
  test('a query → appended to the URL, without undefined and null', async () => {
    const { client, requests } = makeClient(OK);
    const query = { page: 2, 'a b': 'c&d', flag: true, none: undefined, nil: null };
    expect(await client.request({ method: 'GET', path: '/reports/monthly', query })).toEqual(OK.body);
    expect(requests[0]).toMatchObject({
      method: 'GET',
      url: 'https://api.example.test/public/v1/reports/monthly?page=2&a+b=c%26d&flag=true',
      body: '',
    });
  });

  test.each([
    ['POST', { a: [1, null] }],
    ['PUT', null],
    ['PATCH', ''],
    ['DELETE', 0],
  ] as const)('%s with the body %j → JSON', async (method, body) => {
    const { client, requests } = makeClient(OK);
    await client.request({ method, path: '/reports', body });
    expect(requests[0]).toMatchObject({ method, body: JSON.stringify(body) });
    expect(requests[0]?.headers.get('content-type')).toBe('application/json');
  });

  test('no body → no body and no content type are sent', async () => {
    const { client, requests } = makeClient(OK);
    await client.request({ method: 'POST', path: '/reports' });
    expect(requests[0]?.body).toBe('');
    expect(requests[0]?.headers.has('content-type')).toBe(false);
  });

  test.each(['/a%2Fb%3Fc', '/...', '/a..b', '/..a', '/%2e%2ea', '/.well-known/x', '/%'])(
    'the path %s → sent unchanged',
    async (path) => {
      const { client, requests } = makeClient(OK);
      await client.request({ method: 'GET', path });
      expect(requests[0]?.target).toBe(path);
    },
  );

  test.each([
    ['GET', undefined, 5],
    ['HEAD', undefined, 5],
    ['POST', undefined, 1],
    ['DELETE', undefined, 1],
    ['POST', true, 5],
    ['GET', false, 1],
  ] as const)('%s, idempotent %s, always 500 → %d requests', async (method, idempotent, count) => {
    const { client, requests } = makeClient({ status: 500 });
    await settleInVirtualTime(() => catchRejection(client.request({ method, path: '/a', idempotent })));
    expect(requests).toHaveLength(count);
  });

  test('options of the call → respected, and a 429 to a POST is repeated', async () => {
    const { client, requests } = makeClient({ status: 429, headers: { 'retry-after': '0' } });
    const options = { headers: { 'x-a': 'b' }, retry: { retries: 1 } };
    await settleInVirtualTime(() =>
      catchRejection(client.request({ method: 'POST', path: '/a', ...options })),
    );
    expect(requests).toHaveLength(2);
    expect(requests[0]?.headers.get('x-a')).toBe('b');
  });
});

describe('responses', () => {
  test.each([
    ['/couriers', 'couriers.list', 1],
    ['/trackers/a/results', 'trackers.results', 10],
  ] as const)('HEAD %s → waits for the limit of %s', async (path, endpoint, limit) => {
    const { client } = makeClient({ status: 200 }, { rateLimit: {} });
    const calls = Array.from({ length: limit + 1 }, () => client.request({ method: 'HEAD', path }));
    expect(client.rateLimits()[endpoint].queued).toBe(1);
    await settleInVirtualTime(() => Promise.all(calls));
  });

  test('HEAD → an empty object, and a response with its headers', async () => {
    const { client } = makeClient({ headers: { 'x-total': '7', 'content-type': 'application/json' } });
    const { data, response } = await client.request({ method: 'HEAD', path: '/a' }).withResponse();
    expect(data).toEqual({});
    expect(response.headers.get('x-total')).toBe('7');
  });

  test.each([
    [204, ''],
    [205, ''],
    // A stub of `fetch` can have a body where a real response has none.
    [204, '\n'],
  ])('%d with the text %j → an empty object, and the response', async (status, text) => {
    const response = Object.defineProperty(new Response(null, { status }), 'text', {
      value: async () => text,
    });
    const { client } = makeClient(() => response);
    const { data, ...others } = await client.request({ method: 'DELETE', path: '/a' }).withResponse();
    expect(data).toEqual({});
    expect(others.response.status).toBe(status);
  });

  test('a 404 at the path of an endpoint → an error that shows the path template and no id', async () => {
    const { client } = makeClient({ status: 404 });
    expect(await catchRejection(client.request({ method: 'GET', path: '/trackers/abc' }))).toMatchObject({
      path: '/trackers/{trackerId}',
      message: expect.not.stringContaining('abc'),
    });
  });
});

describe('the bucket', () => {
  const findBucket = async (method: RawRequest['method'], path: string) => {
    const buckets: string[] = [];
    const { client } = makeClient(OK, { hooks: { onRequest: ({ endpoint }) => buckets.push(endpoint) } });
    await client.request({ method, path });
    return buckets[0];
  };

  test.each(
    EVERY_CALL.map(([name, { method, target }]) => [method, target.replace(/\?.*/, ''), name] as const),
  )('%s %s → the bucket of %s', async (method, path, endpoint) => {
    // Sound: no endpoint has another method than those of a raw request.
    expect(await findBucket(method as RawRequest['method'], path)).toBe(endpoint);
  });

  test.each([
    ['GET', '/trackers/search/AB%2F1/results', 'trackers.resultsByTrackingNumber'],
    ['GET', '/couriers/us-post', 'request'],
    ['POST', '/couriers', 'request'],
    ['GET', '/trackers/abc/results/more', 'request'],
  ] as const)('%s %s → the bucket of %s', async (method, path, endpoint) => {
    expect(await findBucket(method, path)).toBe(endpoint);
  });
});
