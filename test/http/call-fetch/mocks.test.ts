// Requests that the mocks of a test do not expect, with each library that programs mock the network with.
import { HttpResponse, http } from 'msw';
import { setupServer } from 'msw/node';
import nock from 'nock';
import { MockAgent, fetch as undiciFetch } from 'undici';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { TrackingClient, type TrackingClientOptions } from '../../../src/index.ts';
import { API_KEY, BASE_URL, catchRejection } from '../../support/make-client.ts';

// The import of nock activates it.
nock.restore();

const PATTERN =
  /^GET https:\/\/api\.example\.test\/public\/v1\/trackers\/… got no response: no mock expects this request; /;

function makeClient(options: TrackingClientOptions = {}) {
  const attempts: number[] = [];
  const hooks = { onRequest: ({ attempt }: { attempt: number }) => attempts.push(attempt) };
  const retry = { retries: 2, maxBackoffMs: 1 };
  const client = new TrackingClient({
    baseUrl: BASE_URL,
    apiKey: API_KEY,
    rateLimit: false,
    logLevel: 'silent',
    retry,
    hooks,
    ...options,
  });
  return { client, attempts };
}

async function expectUnmocked(options?: TrackingClientOptions): Promise<void> {
  const { client, attempts } = makeClient(options);
  expect(await catchRejection(client.trackers.get('order-7'))).toMatchObject({
    name: 'ConnectionError',
    isPermanent: true,
    neverSent: true,
    message: expect.stringMatching(PATTERN),
  });
  expect(attempts).toEqual([1]);
}

describe('MSW', () => {
  const server = setupServer();
  afterEach(() => {
    server.resetHandlers();
    server.close();
  });
  const silence = () => vi.spyOn(console, 'error').mockImplementation(() => {});

  test('no handler, onUnhandledRequest "error" → one attempt, and the message names the request', async () => {
    silence();
    server.listen({ onUnhandledRequest: 'error' });
    await expectUnmocked();
  });

  test('HttpResponse.error() → retried like a failure of the network', async () => {
    server.listen();
    server.use(http.get('*', () => HttpResponse.error()));
    const { client, attempts } = makeClient();
    expect(await catchRejection(client.couriers.list())).toMatchObject({ isPermanent: false });
    expect(attempts).toEqual([1, 2, 3]);
  });
});

describe('nock', () => {
  afterEach(() => {
    nock.cleanAll();
    nock.enableNetConnect();
    nock.restore();
  });

  test.each([
    ['no interceptor matches', () => nock('https://api.example.test').get('/other').reply(200)],
    ['no interceptor at all', () => {}],
  ])('%s → one attempt, and the message names the request', async (_what, prepare) => {
    nock.activate();
    nock.disableNetConnect();
    prepare();
    await expectUnmocked();
  });
});

test.each([
  ['no interceptor at all', false],
  ['no interceptor matches', true],
])(
  "undici's MockAgent, %s → one attempt, and the message names the request",
  async (_what, hasInterceptor) => {
    const dispatcher = new MockAgent();
    dispatcher.disableNetConnect();
    if (hasInterceptor) dispatcher.get('https://api.example.test').intercept({ path: '/other' }).reply(200);
    await expectUnmocked({ fetch: (url, init) => undiciFetch(url, { ...init, dispatcher }) });
  },
);

/** The messages of several versions of fetch-mock and Polly. */
const UNMOCKED_TEXTS = [
  'fetch-mock: No response or fallback rule to cover get to https://api.example.test/',
  'fetch-mock: No fallback response defined for GET to https://api.example.test/',
  'No response or fallback rule to cover GET to https://api.example.test/',
  'No fallback response defined for GET to https://api.example.test/',
  '[Polly] [adapter:fetch] Recording for the following request is not found and `recordIfMissing` is `false`.\nGET /',
  'Recording for the following request is not found and `recordIfMissing` is `false`.\nGET /',
  '[Polly] [adapter:node-http] Recording for the following request has expired.',
];

test.each(UNMOCKED_TEXTS)(
  'a mock that rejects with %j → one attempt, and the message names the request',
  async (text) => {
    const reject = () => Promise.reject(new Error(text));
    await expectUnmocked({ fetch: reject });
    vi.stubGlobal('fetch', reject);
    await expectUnmocked();
  },
);

test('a global mock that throws instead of rejecting → one attempt, and the message names the request', async () => {
  vi.stubGlobal('fetch', () => {
    throw new Error(UNMOCKED_TEXTS[3]);
  });
  await expectUnmocked();
});

test('a text that only quotes a mock → retried like a failure of the network', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new Error(`The gateway said: ${UNMOCKED_TEXTS[3]}`)));
  const { client, attempts } = makeClient();
  expect(await catchRejection(client.couriers.list())).toMatchObject({ isPermanent: false });
  expect(attempts).toEqual([1, 2, 3]);
});
