import { describe, expect, test, vi } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { API_KEY, BASE_URL, catchRejection, makeClient, networkFailure } from '../support/make-client.ts';

const once = { retry: false } as const;
const input = { trackingNumber: 'LA680658838NL' };

describe('failures of fetch', () => {
  const cause = Object.assign(new AggregateError([new Error('a'), new Error('b')]), { code: 'ECONNREFUSED' });

  test.each<[what: string, failure: unknown, neverSent: boolean, words: string]>([
    ['a refused connection', networkFailure('ECONNREFUSED'), true, 'socket: ECONNREFUSED'],
    ['refused on every address of a name', new TypeError('fetch failed', { cause }), true, 'ECONNREFUSED'],
    [
      'a port that `fetch` blocks',
      new TypeError('fetch failed', { cause: new Error('bad port') }),
      true,
      '`fetch` blocks this port (bad port); use another port',
    ],
    [
      'no message, and a number as code',
      Object.assign(new TypeError(''), { code: 20 }),
      false,
      'the function of the option `fetch` threw TypeError: TypeError; correct that function',
    ],
    [
      'a string',
      'oops',
      false,
      'the function of the option `fetch` threw a string of 4 characters instead of an Error; correct that function',
    ],
    [
      'nothing',
      undefined,
      false,
      'the function of the option `fetch` threw undefined instead of an Error; correct that function',
    ],
    [
      'an object',
      { code: 'ECONNREFUSED' },
      false,
      'the function of the option `fetch` threw an object instead of an Error; correct that function',
    ],
  ])('%s → ConnectionError that gives the reason', async (_what, failure, neverSent, words) => {
    const { client } = makeClient(() => Promise.reject(failure), once);
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent,
      message: `GET https://api.example.test/public/v1/couriers got no response: ${words}`,
    });
  });

  test('a failure of fetch → a cause that copies its name and code', async () => {
    const failure = networkFailure('ECONNRESET');
    const { client } = makeClient(failure, once);
    const error = await catchRejection(client.couriers.list());
    expect(Object(error).cause).not.toBe(failure);
    expect(error).toMatchObject({ cause: { name: 'TypeError', cause: { code: 'ECONNRESET' } } });
  });

  test('a body that breaks with ECONNREFUSED → neverSent is false', async () => {
    const broken = () => {
      const pull = (stream: ReadableStreamDefaultController) => stream.error(networkFailure('ECONNREFUSED'));
      return new Response(new ReadableStream({ pull }));
    };
    const { client, requests } = makeClient(broken);
    expect(await catchRejection(client.tracking.search(input))).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
      message:
        'POST https://api.example.test/public/v1/tracking/search got an incomplete response: socket: ECONNREFUSED',
    });
    expect(requests).toHaveLength(1);
  });
});

const coded = (code: unknown, fields: object = {}) => Object.assign(new Error('socket'), { code, ...fields });
/** Wraps an error in others, `depth` times. */
const wrap = (error: Error, depth: number): Error =>
  depth === 0 ? error : new Error('outer', { cause: wrap(error, depth - 1) });
const round = new Error('round');
round.cause = round;

/** Builds the error of Deno 2, whose message has this form. */
const denoFailure = (what: string) => new TypeError('fetch failed', { cause: new Error(what) });
const DENO_REFUSED =
  'error sending request for url (http://127.0.0.1:1/a(b)c): client error (Connect): tcp connect error: Connection refused (os error 111)';
const DENO_UNKNOWN_HOST =
  'error sending request for url (http://nonexistent.invalid/): client error (Connect): dns error: failed to lookup address information';
const DENO_RESET =
  'error sending request from 127.0.0.1:2 for http://127.0.0.1:1/ (127.0.0.1:1): client error (SendRequest): connection closed before message completed';

/** Returns whether a failure of `fetch` proves that nothing was sent. */
async function wasNeverSent(failure: unknown): Promise<boolean> {
  const { client } = makeClient(() => Promise.reject(failure), once);
  return Object(await catchRejection(client.couriers.list())).neverSent;
}

test.each<[what: string, failure: unknown, isProof: boolean]>([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT', 'ConnectionRefused']
    .concat('FailedToOpenSocket')
    .map((code): [string, unknown, boolean] => [code, networkFailure(code), true]),
  ['EHOSTUNREACH of connect', coded('EHOSTUNREACH', { syscall: 'connect' }), true],
  ['ECONNRESET of connect', coded('ECONNRESET', { syscall: 'connect' }), true],
  ['ENODATA of getaddrinfo', coded('ENODATA', { syscall: 'getaddrinfo' }), true],
  ['ECONNRESET', networkFailure('ECONNRESET'), false],
  ['UND_ERR_SOCKET', networkFailure('UND_ERR_SOCKET'), false],
  ['EHOSTUNREACH of write', coded('EHOSTUNREACH', { syscall: 'write' }), false],
  ['ECONNRESET of read', coded('ECONNRESET', { syscall: 'read' }), false],
  ['a refused connection around a reset', coded('ECONNREFUSED', { cause: coded('ECONNRESET') }), false],
  ['a code that is a number, as of a DOMException', coded(20), false],
  ['code 20 with a refused cause', Object.assign(networkFailure('ECONNREFUSED'), { code: 20 }), true],
  ['a refused connection inside 5 errors', wrap(coded('ECONNREFUSED'), 5), true],
  ['a refused connection inside 6 errors', wrap(coded('ECONNREFUSED'), 6), false],
  ['a cause that is its own cause', round, false],
  ['the message of a gateway', new Error('answered 502: upstream said "connection refused"'), false],
  ['the message of Deno outside of Deno', denoFailure(DENO_REFUSED), false],
])('%s → neverSent $2', async (_what, failure, isProof) => {
  expect(await wasNeverSent(failure)).toBe(isProof);
});

test.each<[what: string, failure: unknown, isProof: boolean]>([
  ['a refused connection', denoFailure(DENO_REFUSED), true],
  ['an unknown host', denoFailure(DENO_UNKNOWN_HOST), true],
  ['a refused connection, one error deeper', wrap(denoFailure(DENO_REFUSED), 1), true],
  ['a reset', denoFailure(DENO_RESET), false],
  ['the message of Deno inside a longer text', denoFailure(`upstream said: ${DENO_REFUSED}`), false],
  ['a different message', denoFailure('connection refused'), false],
  ['a string', DENO_REFUSED, false],
  ['a reset with a code', networkFailure('ECONNRESET'), false],
  ['a refused connection with a code', networkFailure('ECONNREFUSED'), true],
])('on Deno, which has no codes, %s → neverSent $2', async (_what, failure, isProof) => {
  vi.stubGlobal('Deno', {});
  expect(await wasNeverSent(failure)).toBe(isProof);
});

describe('the fetch option', () => {
  test('no fetch option → the global fetch at the time of the call, so that later mocks work', async () => {
    const client = new TrackingClient({ baseUrl: BASE_URL, apiKey: API_KEY });
    const fetch = vi.fn(async () => Response.json({ data: [] }));
    vi.stubGlobal('fetch', fetch);
    expect(await client.couriers.list()).toEqual([]);
    expect(fetch).toHaveBeenCalledOnce();
  });

  test('a fetch of the caller → called without a `this`, because the one of a runtime would refuse it', async () => {
    const seen: unknown[] = [];
    async function fetch(this: unknown) {
      seen.push(this);
      return Response.json({ data: [] });
    }
    const { client } = makeClient({}, { fetch });
    await client.couriers.list();
    expect(seen).toEqual([undefined]);
  });

  test('a request → fetch gets URL, method, headers, body, signal and `redirect: manual`', async () => {
    const seen: unknown[] = [];
    const fetch = async (outgoing: RequestInfo | URL, init?: RequestInit) => {
      const request = new Request(outgoing, init);
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

  test('a timeout → the signal of fetch is aborted with our TimeoutError', async () => {
    let signal: AbortSignal | null | undefined;
    const fetch = (_url: unknown, init?: RequestInit) => {
      signal = init?.signal;
      return new Promise<Response>(() => {});
    };
    const { client } = makeClient({}, { ...once, fetch });
    const error = await catchRejection(client.couriers.list({ timeoutMs: 5 }));
    expect(error).toMatchObject({ name: 'TimeoutError' });
    expect(signal?.reason).toBe(error);
  });
});
