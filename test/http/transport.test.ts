import { afterEach, describe, expect, test, vi } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { API_KEY, BASE_URL, makeClient, networkFailure, rejectionOf } from '../support/make-client.ts';

const once = { retry: false } as const;
const input = { trackingNumber: 'LA680658838NL' };

afterEach(() => {
  vi.unstubAllGlobals();
});

describe('failures of fetch', () => {
  test.each([
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'UND_ERR_CONNECT_TIMEOUT',
    'ConnectionRefused',
    'FailedToOpenSocket',
  ])('%s → ConnectionError, surely nothing was sent', async (code) => {
    const { client } = makeClient(networkFailure(code), once);
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent: true,
      message: `GET https://api.example.test/public/v1/couriers got no response: socket: ${code}`,
    });
  });

  test.each([
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'UND_ERR_SOCKET',
    'UND_ERR_HEADERS_TIMEOUT',
    'HPE_INVALID_CONSTANT',
  ])('%s → ConnectionError, it may have been sent', async (code) => {
    const { client } = makeClient(networkFailure(code), once);
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
    });
  });

  test('refused on every address of a name → surely nothing was sent, its code in the message', async () => {
    const cause = Object.assign(new AggregateError([new Error('a'), new Error('b')]), {
      code: 'ECONNREFUSED',
    });
    const { client } = makeClient(new TypeError('fetch failed', { cause }), once);
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      neverSent: true,
      message: 'GET https://api.example.test/public/v1/couriers got no response: ECONNREFUSED',
    });
  });

  test('a failure without words, whose code is a number → its name in the message', async () => {
    const { client } = makeClient(Object.assign(new TypeError(''), { code: 20 }), once);
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      message: 'GET https://api.example.test/public/v1/couriers got no response: TypeError',
    });
  });

  test('the failure of fetch → a copy of it as the cause, with name, code and stack', async () => {
    const failure = networkFailure('ECONNRESET');
    const { client } = makeClient(failure, once);
    const error = await rejectionOf(client.couriers.list());
    expect(Object(error).cause).not.toBe(failure);
    expect(error).toMatchObject({
      cause: {
        name: 'TypeError',
        stack: failure.stack?.split('\n').slice(0, 6).join('\n'),
        cause: { code: 'ECONNRESET' },
      },
    });
  });

  test('a body that breaks with the code of a refused connection → it may have been sent', async () => {
    const broken = () => {
      const pull = (stream: ReadableStreamDefaultController) => stream.error(networkFailure('ECONNREFUSED'));
      return new Response(new ReadableStream({ pull }));
    };
    const { client, requests } = makeClient(broken);
    expect(await rejectionOf(client.tracking.search(input))).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
      message:
        'POST https://api.example.test/public/v1/tracking/search got a response that broke off: socket: ECONNREFUSED',
    });
    expect(requests).toHaveLength(1);
  });

  test.each([
    ['a string', 'oops'],
    ['nothing', undefined],
    ['an object', { code: 'ECONNREFUSED' }],
  ])('fetch rejects with %s → ConnectionError', async (_what, reason) => {
    const { client } = makeClient(() => Promise.reject(reason), once);
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
      message: 'GET https://api.example.test/public/v1/couriers got no response: unknown failure',
    });
  });

  test('fetch throws at once → ConnectionError', async () => {
    const fetch = () => {
      throw new TypeError('no such protocol');
    };
    const { client } = makeClient({}, { ...once, fetch });
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      message: 'GET https://api.example.test/public/v1/couriers got no response: no such protocol',
    });
  });

  test.each([undefined, null, 'response', {}])(
    'fetch gives %j instead of a response → a typed error',
    async (value) => {
      // What a broken stub in a consumer's test could give.
      const fetch = (async () => value) as unknown as typeof globalThis.fetch;
      const { client } = makeClient({}, { ...once, fetch });
      expect(await rejectionOf(client.couriers.list())).toMatchObject({ name: 'ConnectionError' });
    },
  );
});

describe('the fetch that is used', () => {
  test('none given → the global one at the time of the call, so that mocks installed later work', async () => {
    const client = new TrackingClient({ baseUrl: BASE_URL, apiKey: API_KEY });
    const fetch = vi.fn(async () => Response.json({ data: [] }));
    vi.stubGlobal('fetch', fetch);
    expect(await client.couriers.list()).toEqual([]);
    expect(fetch).toHaveBeenCalledOnce();
  });

  test('one given → called once for one attempt, without a `this` of ours', async () => {
    const seen: unknown[] = [];
    async function fetch(this: unknown) {
      seen.push(this);
      return Response.json({ data: [] });
    }
    const { client } = makeClient({}, { fetch });
    await client.couriers.list();
    expect(seen).toEqual([undefined]);
  });

  test('its arguments → URL, method, headers, body, signal and no redirects', async () => {
    const seen: unknown[] = [];
    const fetch = async (given: RequestInfo | URL, init?: RequestInit) => {
      const request = new Request(given, init);
      const { url, method, redirect } = request;
      seen.push({ url, method, redirect, body: await request.json(), signal: init?.signal });
      return Response.json({ data: [] });
    };
    const { client } = makeClient({}, { fetch });
    await client.tracking.search(input);
    expect(seen).toEqual([
      {
        url: `${BASE_URL}/tracking/search`,
        method: 'POST',
        redirect: 'manual',
        body: input,
        signal: expect.any(AbortSignal),
      },
    ]);
  });

  test('a timeout → its signal is aborted with our TimeoutError', async () => {
    let signal: AbortSignal | null | undefined;
    const fetch = (_url: unknown, init?: RequestInit) => {
      signal = init?.signal;
      return new Promise<Response>(() => {});
    };
    const { client } = makeClient({}, { ...once, fetch });
    const error = await rejectionOf(client.couriers.list({ timeoutMs: 5 }));
    expect(error).toMatchObject({ name: 'TimeoutError' });
    expect(signal?.reason).toBe(error);
  });
});
