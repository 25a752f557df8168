import { HttpResponse, http } from 'msw';
import { setupServer } from 'msw/node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createFakeTrackingService } from '../../src/testing/index.ts';
import { trackingHandlers } from '../../src/testing/msw.ts';
import { itFailsAlike } from './transport/failure-kinds.ts';

const BASE_URL = 'https://api.example.test/tracking/v1';
const headers = { authorization: 'Bearer key' };

describe('trackingHandlers', () => {
  it.each([
    [{ baseUrl: '' }, 'Expected `baseUrl` to be an absolute URL, got an empty string'],
    [{ baseURL: 'https://a.test' }, /^Expected `options` to hold known options only, got `baseURL`/],
    [null, 'Expected `options` to be an object, got null'],
  ])('options %j → ConfigurationError', (options, message) => {
    const give = () => Reflect.apply(trackingHandlers, undefined, [createFakeTrackingService(), options]);
    expect(give).toThrow(
      expect.objectContaining({ name: 'ConfigurationError', message: expect.stringMatching(message) }),
    );
  });

  const server = setupServer();
  beforeAll(() => server.listen({ onUnhandledRequest: 'error' }));
  afterEach(() => server.resetHandlers());
  afterAll(() => server.close());

  function serve(baseUrl: string | URL | undefined = BASE_URL) {
    const fake = createFakeTrackingService({ limits: false });
    server.use(...trackingHandlers(fake, baseUrl === undefined ? {} : { baseUrl }));
    return fake;
  }

  itFailsAlike(() => ({ fake: serve(), fetch: globalThis.fetch, baseUrl: BASE_URL }));

  it('no base URL → that of the fake', async () => {
    const fake = createFakeTrackingService();
    server.use(...trackingHandlers(fake));
    expect((await fetch(`${fake.baseUrl}/couriers`, { headers })).status).toBe(200);
  });

  it('a base URL with a trailing slash → served below it', async () => {
    serve(new URL('https://api.example.test/v1/'));
    expect((await fetch('https://api.example.test/v1/couriers', { headers })).status).toBe(200);
  });

  it('a base URL without a version segment → served below it', async () => {
    serve('https://api.example.test/tracking');
    expect((await fetch('https://api.example.test/tracking/couriers', { headers })).status).toBe(200);
  });

  it('a path that the table has not → 404 of the fake', async () => {
    const fake = serve();
    expect((await fetch(`${BASE_URL}/nothing`, { headers })).status).toBe(404);
    expect(fake.requests).toMatchObject([{ status: 404, path: '/tracking/v1/nothing' }]);
  });

  it('a handler of the test put in front → wins', async () => {
    serve();
    server.use(http.get(`${BASE_URL}/couriers`, () => new HttpResponse(null, { status: 418 })));
    expect((await fetch(`${BASE_URL}/couriers`, { headers })).status).toBe(418);
  });

  it('an id with an encoded slash → reaches the fake undivided', async () => {
    const fake = serve();
    await fetch(`${BASE_URL}/trackers/a%2Fb`, { headers });
    expect(fake.requests).toMatchObject([{ endpoint: 'trackers.get', path: '/tracking/v1/trackers/a%2Fb' }]);
  });
});
