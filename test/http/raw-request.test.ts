import { inspect } from 'node:util';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { z as zod3 } from 'zod/v3';
import type { StandardSchema } from '../../src/common/validation.ts';
import type { RawRequest } from '../../src/http/prepare.ts';
import { EVERY_CALL } from '../support/calls.ts';
import { API_KEY, catchRejection, makeClient } from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

const OK = { body: { anything: [1] } };

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;
const METHOD_RULE = 'to be one of GET, HEAD, POST, PUT, PATCH, DELETE';
const PATH_RULE = 'to be a path that starts with one "/" and has no query';
const QUERY_RULE = 'to be an object of texts, numbers and booleans';
const SCHEMA_RULE = 'to be a Standard Schema (zod 3.24 or later, valibot, arktype)';

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
      .map((value): [string, unknown, string] => ['path', value, 'to have no dot segments']),
    ['query', { a: {} }, QUERY_RULE],
    ['query', { a: [1] }, QUERY_RULE],
    ['query', { a: Object.create(null) }, QUERY_RULE],
    ['query', new URLSearchParams('a=1'), QUERY_RULE],
    ['query', 'a=1', QUERY_RULE],
    ['query', null, QUERY_RULE],
    ['body', cycle, 'to be a JSON value'],
    ['body', 5n, 'to be a JSON value'],
    ['body', () => 1, 'to be a JSON value'],
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

  test.each(['GET', 'HEAD'] as const)('%s with a body → RequestValidationError', async (method) => {
    const { client, requests } = makeClient(OK);
    expect(await catchRejection(client.request({ method, path: '/a', body: {} }))).toMatchObject({
      name: 'RequestValidationError',
      message: 'Expected `body` to be left out of a GET or HEAD request, got an object',
    });
    expect(requests).toHaveLength(0);
  });

  test.each([{}, 'Tracker', null, { parse: () => 1 }, { '~standard': 1 }, () => {}])(
    'schema: %j → ConfigurationError',
    async (schema) => {
      const { client, requests } = makeClient(OK);
      // A caller without types could pass this.
      const request = { method: 'GET', path: '/a', schema } as unknown as RawRequest;
      expect(await catchRejection(client.request(request))).toMatchObject({
        name: 'ConfigurationError',
        message: expect.stringContaining(`Expected \`schema\` ${SCHEMA_RULE}, got `),
      });
      expect(requests).toHaveLength(0);
    },
  );

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

describe('a schema of the caller', () => {
  type Validate = StandardSchema<number>['~standard']['validate'];
  /** A Standard Schema of no library in particular. */
  const buildSchema = (validate: Validate): StandardSchema<number> => ({
    '~standard': { version: 1, vendor: 'test', validate },
  });
  const requestWith = (schema: StandardSchema, body: unknown = { total: '5' }) =>
    makeClient({ body }).client.request({ method: 'GET', path: '/a', schema });

  test.each([
    ['zod', z.object({ total: z.coerce.number() }), { total: 5 }],
    ['zod, with a promise', z.object({ total: z.string().refine(async () => true) }), { total: '5' }],
    ['zod 3', zod3.object({ total: zod3.coerce.number() }), { total: 5 }],
    ['valibot', v.object({ total: v.string() }), { total: '5' }],
    ['arktype', type({ total: 'string' }), { total: '5' }],
    ['any library', buildSchema((value) => ({ value: Number(Object(value).total) })), 5],
    ['any library, with a promise', buildSchema(async () => ({ value: 7 })), 7],
  ])('%s → the output of the schema', async (_what, schema, output) => {
    expect(await requestWith(schema)).toEqual(output);
  });

  test.each([
    ['zod', z.object({ total: z.number() }), ['total']],
    [
      'any library, with a symbol in the path',
      buildSchema(() => ({ issues: [{ message: 'no', path: [Symbol('a')] }] })),
      ['Symbol(a)'],
    ],
    [
      'any library',
      buildSchema(() => ({ issues: [{ message: 'no', path: ['total', { key: 0 }] }] })),
      ['total', 0],
    ],
    ['any library, without a path', buildSchema(() => ({ issues: [{ message: 'no' }] })), []],
  ])(
    '%s that rejects the body → ResponseValidationError, whatever invalidResponse is',
    async (_what, schema, path) => {
      const error = await catchRejection(requestWith(schema));
      expect(error).toMatchObject({ name: 'ResponseValidationError', status: 200, issues: [{ path }] });
      const words = ` responded with an unexpected \`${path[0] ?? 'data'}`;
      expect(error).toHaveProperty('message', expect.stringContaining(words));
    },
  );

  test('a body with a hundred issues → the first 20 issues', async () => {
    const error = await catchRejection(requestWith(z.array(z.string()), Array(100).fill(5)));
    expect(error).toMatchObject({ issues: { length: 20 } });
  });

  test('the key in a message or a path → masked', async () => {
    const issues = [{ message: `got ${API_KEY}`, path: [API_KEY] }];
    const error = await catchRejection(requestWith(buildSchema(() => ({ issues }))));
    expect(error).toMatchObject({ issues: [{ message: 'got [redacted]', path: ['[redacted]'] }] });
    expect(inspect(error)).not.toContain(API_KEY);
  });

  test('a schema that never settles → TimeoutError on time, in phase body', async () => {
    const schema = buildSchema(() => new Promise<never>(() => {}));
    const { client } = makeClient({ body: {} }, { retry: false, timeoutMs: 50 });
    const call = () => catchRejection(client.request({ method: 'GET', path: '/a', schema }));
    expect(await settleInVirtualTime(call)).toMatchObject({ name: 'TimeoutError', phase: 'body' });
  });

  test('a schema that throws → rejects with its error', async () => {
    const failure = new Error('no such unit');
    const throws = () => {
      throw failure;
    };
    expect(await catchRejection(requestWith(buildSchema(throws)))).toBe(failure);
    expect(await catchRejection(requestWith(z.unknown().refine(throws)))).toBe(failure);
  });
});

describe('responses', () => {
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
