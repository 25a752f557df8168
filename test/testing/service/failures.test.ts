import { describe, expect, it } from 'vitest';
import { TrackingClient } from '../../../src/client.ts';
import { ConfigurationError } from '../../../src/errors.ts';
import { makeFake, NUMBER, readCode, START_MS } from '../make-fake.ts';

describe('fake.fail with a status', () => {
  const readStatuses = async ({ call }: ReturnType<typeof makeFake>, count: number) => {
    const statuses = [];
    for (let sent = 0; sent < count; sent += 1) statuses.push((await call('GET', '/couriers')).status);
    return statuses;
  };

  it.each([
    ['no times', [503, 200, 200], {}],
    ['times 2', [503, 503, 200], { times: 2 }],
    ['times Infinity', [503, 503, 503], { times: Number.POSITIVE_INFINITY }],
  ])('%s → statuses %j', async (_, statuses, times) => {
    const made = makeFake();
    made.fake.fail('couriers.list', { status: 503, ...times });
    expect(await readStatuses(made, 3)).toEqual(statuses);
  });

  it('a failure that is cancelled → further requests succeed', async () => {
    const made = makeFake();
    const planned = made.fake.fail('*', { status: 500, times: 5 });
    expect(await readStatuses(made, 1)).toEqual([500]);
    expect(planned.remaining).toBe(4);
    planned.cancel();
    expect(await readStatuses(made, 1)).toEqual([200]);
  });

  it('three planned failures → those of the endpoint are used in the order of their creation', async () => {
    const made = makeFake();
    const planned = made.fake.fail('trackers.list', { status: 501 });
    made.fake.fail('couriers.list', { status: 500 });
    made.fake.fail('*', { status: 502 });
    expect(await readStatuses(made, 3)).toEqual([500, 502, 200]);
    expect(planned.remaining).toBe(1);
  });

  it('a code and a message → returned in the error envelope of the service', async () => {
    const { fake, call } = makeFake();
    fake.fail('*', { status: 409, code: 'request_conflict', message: 'Busy.' });
    const { status, body } = await call('GET', '/couriers');
    expect(status).toBe(409);
    expect(body).toEqual({ errors: [{ code: 'request_conflict', message: 'Busy.' }], data: null });
  });

  it('402 without a code → an ApiError without a code, because the service documents none', async () => {
    const { fake } = makeFake();
    fake.fail('*', { status: 402 });
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    const error: unknown = await client.couriers.list().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'ApiError', status: 402, code: undefined });
  });

  it('a failure of the bulk endpoint → returned in its own envelope', async () => {
    const { fake, call } = makeFake();
    fake.fail('trackers.createBulk', { status: 403, code: 'quota_limit_reached' });
    const { body } = await call('POST', '/trackers/bulk', [{ trackingNumber: NUMBER }]);
    expect(body).toMatchObject({ status: 'error', data: null, error: { code: 'quota_limit_reached' } });
  });

  it.each([
    [404, 'tracker_not_found'],
    [422, 'validation_error'],
    [500, 'processing_error'],
  ])('%i without a code → the code %s', async (status, code) => {
    const { fake, call } = makeFake();
    fake.fail('*', { status });
    expect(readCode(await call('GET', '/couriers'))).toBe(code);
  });

  it.each([
    ['no retryAfterMs', {}, 1],
    ['a retryAfterMs of 6,001', { retryAfterMs: 6_001 }, 7],
  ])(
    '429 with %s → $2 seconds in Retry-After and both header sets, in plain text',
    async (_, wait, seconds) => {
      const { fake, call } = makeFake({ limits: { 'trackers.list': 5 } });
      fake.fail('trackers.list', { status: 429, ...wait });
      const { headers, text } = await call('GET', '/trackers?page=1&limit=1');
      expect(Object.fromEntries(headers)).toMatchObject({
        'retry-after': String(seconds),
        'ratelimit-limit': '5',
        'ratelimit-remaining': '0',
        'ratelimit-reset': String(seconds),
        'x-ratelimit-reset': String(START_MS / 1000 + seconds),
      });
      expect(text).not.toContain('{');
    },
  );

  it.each([
    [429, {}, '1'],
    [503, { retryAfterMs: 2_000 }, '2'],
    [503, {}, null],
  ])(
    '%i with %j in a fake without limits → Retry-After %s and no limit headers',
    async (status, wait, expected) => {
      const { fake, call } = makeFake({ limits: false });
      fake.fail('couriers.list', { status, ...wait });
      const { headers } = await call('GET', '/couriers');
      expect([...headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
      expect(headers.get('retry-after')).toBe(expected);
    },
  );

  it('headers and a body → sent unchanged, and they replace Retry-After and Date', async () => {
    const { fake, call } = makeFake();
    const date = 'Tue, 10 Mar 2026 13:00:00 GMT';
    fake.fail('*', {
      status: 429,
      body: 'null',
      headers: { 'X-Odd': '1', Date: date, 'Retry-After': 'soon' },
    });
    const { headers, text } = await call('GET', '/couriers');
    expect(text).toBe('null');
    expect(Object.fromEntries(headers)).toMatchObject({ 'x-odd': '1', date, 'retry-after': 'soon' });
  });
});

describe('fake.fail with invalid arguments', () => {
  it.each([
    ['an unknown endpoint', 'trackers.nothing', { status: 500 }],
    ['an unknown kind', '*', { kind: 'explode' }],
    ['neither status nor kind', '*', {}],
    ['a status above 599', '*', { status: 600 }],
    ['0 times', '*', { status: 500, times: 0 }],
    ['a negative retryAfterMs', '*', { status: 500, retryAfterMs: -1 }],
    ['a header that is a number', '*', { status: 500, headers: { 'retry-after': 1 } }],
    ['a code beside a kind, which has no body of the service', '*', { kind: 'reset', code: 'x' }],
  ])('%s → ConfigurationError', (_, endpoint, failure) => {
    const { fake } = makeFake();
    // A caller without types could pass this.
    const fail = fake.fail as (endpoint: string, failure: object) => unknown;
    expect(() => fail(endpoint, failure)).toThrow(ConfigurationError);
  });

  it('a misspelt field → ConfigurationError that names it and the known fields', () => {
    const fail = () => Reflect.apply(makeFake().fake.fail, undefined, ['*', { status: 500, retryAfter: 1 }]);
    expect(fail).toThrow(/`failure.retryAfter`.*status, code, message, retryAfterMs, headers, body, times/);
  });
});
