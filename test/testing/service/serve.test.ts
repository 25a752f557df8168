import { describe, expect, it } from 'vitest';
import { codeOf, makeFake, NUMBER } from '../make-fake.ts';

describe('every response', () => {
  it('any request → an x-request-id of its own, and the Date of the clock of the fake', async () => {
    const { call } = makeFake();
    const [first, second] = [await call('GET', '/couriers'), await call('GET', '/couriers')];
    expect(first.headers.get('x-request-id')).not.toBe(second.headers.get('x-request-id'));
    expect(first.headers.get('date')).toBe('Tue, 10 Mar 2026 12:00:00 GMT');
  });

  it('an unknown path → 404 in the error shape of the service', async () => {
    const { call } = makeFake();
    const { status, body } = await call('GET', '/nothing');
    expect([status, body]).toEqual([
      404,
      { errors: [{ code: expect.any(String), message: expect.any(String) }], data: null },
    ]);
  });

  it('a method the path has not → 405 with Allow', async () => {
    const { call } = makeFake();
    const { status, headers } = await call('DELETE', '/couriers');
    expect([status, headers.get('allow')]).toEqual([405, 'GET']);
  });

  it('broken percent-encoding in the path → 400 parsing_error', async () => {
    const { call } = makeFake();
    const response = await call('GET', '/trackers/%zz');
    expect([response.status, codeOf(response)]).toEqual([400, 'parsing_error']);
  });

  it('a refusal by the handler → has the limit headers too', async () => {
    const { call } = makeFake({ limits: {} });
    const { headers } = await call('GET', '/trackers/nobody');
    expect(headers.get('ratelimit-remaining')).toBe('9');
  });

  it('a request too many → 429 in plain text with Retry-After', async () => {
    const { call } = makeFake({ limits: {} });
    await call('GET', '/couriers');
    const { status, headers } = await call('GET', '/couriers');
    expect([status, headers.get('retry-after'), headers.get('content-type')]).toEqual([
      429,
      '1',
      'text/plain; charset=utf-8',
    ]);
  });

  it('limits false → no limit headers', async () => {
    const { call } = makeFake();
    expect((await call('GET', '/couriers')).headers.has('ratelimit-limit')).toBe(false);
  });

  it('a base URL of its own without a version → served below it', async () => {
    const { call } = makeFake({ baseUrl: 'https://host.test/api/' });
    expect((await call('GET', '/couriers')).status).toBe(200);
  });

  it('any other host and prefix that ends with a version → served too', async () => {
    const { fake } = makeFake();
    const headers = { authorization: 'Bearer key' };
    expect((await fake.fetch('https://elsewhere.test/v1/couriers', { headers })).status).toBe(200);
  });
});

describe('fake.requests', () => {
  it('a request → endpoint, method, path, query, parsed body, status and request id', async () => {
    const { fake, call } = makeFake();
    const { headers } = await call('POST', '/trackers?debug=1', { trackingNumber: NUMBER });
    expect(fake.requests).toEqual([
      {
        endpoint: 'trackers.create',
        method: 'POST',
        path: '/public/v1/trackers',
        query: { debug: '1' },
        body: { trackingNumber: NUMBER },
        headers: expect.any(Object),
        receivedAtMs: Date.UTC(2026, 2, 10, 12),
        requestId: headers.get('x-request-id'),
        status: 201,
        failure: undefined,
      },
    ]);
  });

  it('the headers of a request → kept without the key', async () => {
    const { fake, call } = makeFake();
    await call('GET', '/couriers', undefined, { 'x-trace': '7' });
    expect(fake.requests[0]?.headers).toMatchObject({ 'x-trace': '7' });
    expect(JSON.stringify(fake.requests)).not.toContain(fake.apiKey);
  });

  it('no endpoint at the path → recorded with endpoint undefined and its status', async () => {
    const { fake, call } = makeFake();
    await call('GET', '/nothing');
    expect(fake.requests[0]).toMatchObject({ endpoint: undefined, status: 404 });
  });

  it('a body that is no JSON → kept as text', async () => {
    const { fake, call } = makeFake();
    await call('POST', '/trackers', '{');
    expect(fake.requests[0]?.body).toBe('{');
  });

  it('a broken connection → status null, and how it failed', async () => {
    const { fake, call } = makeFake();
    fake.fail('couriers.list', { kind: 'reset' });
    await call('GET', '/couriers').catch(() => {});
    expect(fake.requests[0]).toMatchObject({ status: null, failure: 'reset' });
  });
});
