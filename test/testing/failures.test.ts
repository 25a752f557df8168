import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { makeFake, NUMBER, readCode } from './make-fake.ts';

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

  it('a failure of the bulk endpoint → returned in its own envelope', async () => {
    const { fake, call } = makeFake();
    fake.fail('trackers.createBulk', { status: 403, code: 'quota_limit_reached' });
    const { body } = await call('POST', '/trackers/bulk', [{ trackingNumber: NUMBER }]);
    expect(body).toMatchObject({ status: 'error', data: null, error: { code: 'quota_limit_reached' } });
  });

  it.each([
    [401, 'auth_invalid_api_key'],
    [404, 'tracker_not_found'],
    [409, 'request_conflict'],
    [422, 'validation_error'],
    [500, 'processing_error'],
  ])('%i without a code → the code %s', async (status, code) => {
    const { fake, call } = makeFake();
    fake.fail('*', { status });
    expect(readCode(await call('GET', '/couriers'))).toBe(code);
  });

  it('429 with retryAfter → Retry-After and both header sets, in plain text', async () => {
    const { fake, call } = makeFake({ limits: { 'trackers.list': 5 } });
    fake.fail('trackers.list', { status: 429, retryAfter: 7 });
    const { headers, text } = await call('GET', '/trackers?page=1&limit=1');
    expect(Object.fromEntries(headers)).toMatchObject({
      'retry-after': '7',
      'ratelimit-limit': '5',
      'ratelimit-remaining': '0',
      'ratelimit-reset': '7',
      'x-ratelimit-reset': String(Date.UTC(2026, 2, 10, 12) / 1000 + 7),
    });
    expect(text).not.toContain('{');
  });

  it('429 without limits → no limit headers, as in the other responses', async () => {
    const { fake, call } = makeFake({ limits: false });
    fake.fail('couriers.list', { status: 429, retryAfter: 7 });
    const { headers } = await call('GET', '/couriers');
    expect([...headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
    expect(headers.get('retry-after')).toBe('7');
  });

  it('custom headers and body → sent unchanged, also a Date header of a clock that is ahead', async () => {
    const { fake, call } = makeFake();
    const headers = { 'x-odd': '1', date: 'Tue, 10 Mar 2026 13:00:00 GMT' };
    fake.fail('*', { status: 200, body: 'null', headers, retryAfter: 'soon' });
    const response = await call('GET', '/couriers');
    expect(response.text).toBe('null');
    expect(Object.fromEntries(response.headers)).toMatchObject({ ...headers, 'retry-after': 'soon' });
  });
});

describe('fake.fail with invalid arguments', () => {
  it.each([
    ['an unknown endpoint', 'trackers.nothing', { status: 500 }],
    ['an unknown kind', '*', { kind: 'explode' }],
    ['neither status nor kind', '*', {}],
    ['a status below 200', '*', { status: 100 }],
    ['a status above 599', '*', { status: 600 }],
    ['0 times', '*', { status: 500, times: 0 }],
    ['a misspelt field', '*', { status: 500, retryafter: 1 }],
    ['a code beside a kind, which has no body of the service', '*', { kind: 'reset', code: 'x' }],
    ['a retryAfter beside a kind', '*', { kind: 'html', retryAfter: 5 }],
  ])('%s → ConfigurationError', (_, endpoint, failure) => {
    const { fake } = makeFake();
    // A caller without types could pass this.
    const fail = fake.fail as (endpoint: string, failure: object) => unknown;
    expect(() => fail(endpoint, failure)).toThrow(ConfigurationError);
  });
});
