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

  function serve() {
    const fake = createFakeTrackingService({ limits: false });
    server.use(...trackingHandlers(fake, { baseUrl: BASE_URL }));
    return fake;
  }

  itFailsAlike(() => ({ fake: serve(), fetch: globalThis.fetch, baseUrl: BASE_URL }));

  it.each([
    ['no base URL', undefined, 'https://tracking.test/public/v1'],
    ['a trailing slash', new URL('https://api.example.test/v1/'), 'https://api.example.test/v1'],
    ['no version segment', 'https://api.example.test/tracking', 'https://api.example.test/tracking'],
  ])('%s → served below $2', async (_, baseUrl, served) => {
    server.use(...trackingHandlers(createFakeTrackingService(), baseUrl === undefined ? {} : { baseUrl }));
    expect((await fetch(`${served}/couriers`, { headers })).status).toBe(200);
  });

  it('a path of no endpoint → 404 of the fake', async () => {
    const fake = serve();
    expect((await fetch(`${BASE_URL}/nothing`, { headers })).status).toBe(404);
    expect(fake.requests).toMatchObject([{ status: 404, path: '/tracking/v1/nothing' }]);
  });

  it("a handler that the test puts first → used before the fake's handlers", async () => {
    serve();
    server.use(http.get(`${BASE_URL}/couriers`, () => new HttpResponse(null, { status: 418 })));
    expect((await fetch(`${BASE_URL}/couriers`, { headers })).status).toBe(418);
  });

  it('an id with an encoded slash → reaches the fake as one segment', async () => {
    const fake = serve();
    await fetch(`${BASE_URL}/trackers/a%2Fb`, { headers });
    expect(fake.requests).toMatchObject([{ endpoint: 'trackers.get', path: '/tracking/v1/trackers/a%2Fb' }]);
  });
});
