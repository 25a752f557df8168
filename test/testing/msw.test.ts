import { HttpResponse, http } from 'msw';
import { setupServer } from 'msw/node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { ENDPOINT_NAMES } from '../../src/endpoints.ts';
import { createFakeTrackingService } from '../../src/testing/index.ts';
import { trackingHandlers } from '../../src/testing/msw.ts';
import { sampleCalls } from './make-fake.ts';
import { itFailsAlike } from './transports/failure-kinds.ts';

const BASE_URL = 'https://api.example.test/tracking/v1';
const headers = { authorization: 'Bearer key' };

describe('trackingHandlers', () => {
  it.each([
    [{ baseUrl: 'localhost:4010/v1' }, '`baseUrl` to be a URL that begins with http:// or https://'],
    [{ baseURL: 'https://a.test' }, /^Unknown option `baseURL`; known options: /],
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
    ['the global fetch', undefined],
    ['an option `fetch` that calls it', (url: string, init: RequestInit) => fetch(url, init)],
  ])('HttpResponse.error(), %s → a connection error that is retried', async (_what, option) => {
    server.use(http.get(`${BASE_URL}/couriers`, () => HttpResponse.error()));
    const client = new TrackingClient({
      baseUrl: BASE_URL,
      apiKey: 'key',
      fetch: option,
      logLevel: 'silent',
      rateLimit: false,
      retry: { retries: 1, maxBackoffMs: 1 },
    });
    expect(await client.couriers.list().catch((error: unknown) => error)).toMatchObject({
      name: 'ConnectionError',
      attempts: 2,
      isPermanent: false,
    });
  });

  it.each([
    ['no base URL', undefined, 'https://tracking.test/public/v1'],
    ['a trailing slash', new URL('https://api.example.test/v1/'), 'https://api.example.test/v1'],
    ['no version segment', 'https://api.example.test/tracking', 'https://api.example.test/tracking'],
  ])('%s → served below $2', async (_, baseUrl, served) => {
    server.use(...trackingHandlers(createFakeTrackingService(), baseUrl === undefined ? {} : { baseUrl }));
    expect((await fetch(`${served}/couriers`, { headers })).status).toBe(200);
  });

  it.each(ENDPOINT_NAMES)(
    '%s → recorded under its name, also with a handler of its own only',
    async (name) => {
      const fake = createFakeTrackingService({ limits: false, plans: { perCall: true } });
      const handlers = trackingHandlers(fake, { baseUrl: BASE_URL });
      server.use(...handlers.slice(0, -1));
      const [method, path, body] = sampleCalls[name]('some-id');
      const json = { ...headers, 'content-type': 'application/json' };
      await fetch(BASE_URL + path, {
        method,
        headers: json,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      expect(fake.requests).toMatchObject([{ endpoint: name }]);
    },
  );

  it.each([
    ['GET', '/nothing', 404],
    ['DELETE', '/trackers', 405],
  ])('%s %s → %i of the fake, recorded', async (method, path, status) => {
    const fake = serve();
    expect((await fetch(BASE_URL + path, { method, headers })).status).toBe(status);
    expect(fake.requests).toMatchObject([{ status, path: `/tracking/v1${path}` }]);
  });

  it('a handler of the test for one endpoint → used for that endpoint only', async () => {
    const fake = serve();
    server.use(http.get(`${BASE_URL}/trackers/:trackerId`, () => new HttpResponse(null, { status: 418 })));
    const paths = ['/trackers/t1', '/trackers/t1/results', '/couriers'];
    const statuses = [];
    for (const path of paths) statuses.push((await fetch(BASE_URL + path, { headers })).status);
    expect([statuses, fake.requests.length]).toEqual([[418, 404, 200], 2]);
  });

  it('an id with an encoded slash → reaches the fake as one segment', async () => {
    const fake = serve();
    await fetch(`${BASE_URL}/trackers/a%2Fb`, { headers });
    expect(fake.requests).toMatchObject([{ endpoint: 'trackers.get', path: '/tracking/v1/trackers/a%2Fb' }]);
  });
});
