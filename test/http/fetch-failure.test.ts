import { describe, expect, test, vi } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import type { FetchInit } from '../../src/options.ts';
import { EVERY_CALL } from '../support/calls.ts';
import { API_KEY, BASE_URL, catchRejection, makeClient, networkFailure } from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

const once = { retry: false } as const;
const input = { trackingNumber: 'LA680658838NL' };

describe('failures of fetch', () => {
  const cause = Object.assign(new AggregateError([new Error('a'), new Error('b')]), { code: 'ECONNREFUSED' });

  test.each<[what: string, failure: unknown, neverSent: boolean, words: string]>([
    ['a refused connection', networkFailure('ECONNREFUSED'), true, 'socket: ECONNREFUSED'],
    ['refused on every address of a name', new TypeError('fetch failed', { cause }), true, 'ECONNREFUSED'],
    [
      'no message, and a number as code',
      Object.assign(new TypeError(''), { code: 20 }),
      false,
      'the function of the option `fetch` threw TypeError: 20; correct that function',
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
const DENO_CONNECT = 'error sending request for url (https://a.test/): client error (Connect)';
const DENO_RESET =
  'error sending request from 127.0.0.1:2 for http://127.0.0.1:1/ (127.0.0.1:1): client error (SendRequest): connection closed before message completed';

describe('a failure that no retry can mend', () => {
  const tunnel = (status: number) =>
    new TypeError('fetch failed', {
      cause: Object.assign(new DOMException('Request was cancelled.'), {
        cause: coded('UND_ERR_ABORTED', {
          message: `Proxy response (${status}) !== 200 when HTTP Tunneling`,
        }),
      }),
    });
  const byMessage = (message: string) => new TypeError('fetch failed', { cause: new Error(message) });
  type Row = [what: string, failure: Error, advice: RegExp];
  const codes = (advice: RegExp, ...list: string[]) =>
    list.map((code): Row => [code, networkFailure(code), advice]);
  const messages = (advice: RegExp, ...list: string[]) =>
    list.map((message): Row => [message, byMessage(message), advice]);
  const PLAIN_PORT = /; the port does not speak TLS; .* http: and set `allowInsecureHttp`/;
  const CLOCK = /; check the clock of this machine, or /;
  const UNTRUSTED = /; if you .* NODE_EXTRA_CA_CERTS /;
  const PROXY = /; check the URL of the proxy, and its user name and password/;

  test.each<Row>([
    ...codes(
      UNTRUSTED,
      ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
      ...['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_GET_ISSUER_CERT', 'CERT_UNTRUSTED', 'CERT_REVOKED'],
      ...['INVALID_CA', 'INVALID_PURPOSE', 'PATH_LENGTH_EXCEEDED', 'CERT_CHAIN_TOO_LONG'],
      ...['CRL_HAS_EXPIRED', 'ERROR_IN_CERT_NOT_BEFORE_FIELD', 'UNABLE_TO_DECRYPT_CERT_SIGNATURE'],
      ...['UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY', 'UNKNOWN_CERTIFICATE_VERIFICATION_ERROR'],
    ),
    ...codes(CLOCK, 'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'),
    ...codes(
      /; check the host in `baseUrl`/,
      ...['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH', 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME'],
    ),
    ...codes(
      PLAIN_PORT,
      ...['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'ERR_SSL_HTTP_REQUEST'],
      'ERR_SSL_UNKNOWN_PROTOCOL',
    ),
    ...codes(
      /no common version/,
      ...['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'ERR_SSL_UNSUPPORTED_PROTOCOL'],
      ...['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE'],
    ),
    ...codes(/; take `fetch` and the dispatcher from the same version of undici/, 'UND_ERR_INVALID_ARG'),
    [
      'TLS to a plain port, EPROTO',
      coded('EPROTO', {
        message: 'write EPROTO 80:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:a.c:3:\n',
      }),
      /: wrong version number; the port does not speak TLS/,
    ],
    // These failures have no code.
    ...messages(
      PLAIN_PORT,
      'error:0A00009C:SSL routines:ssl3_get_record:http request',
      'error:0A00009C:SSL routines:ssl3_get_record:packet length too long',
      '80BEerror:0A00010B:SSL routines::wrong version number',
    ),
    ...messages(CLOCK, 'certificate has expired', 'certificate is not yet valid; check the clock'),
    ...messages(
      UNTRUSTED,
      ...['self signed certificate', 'self-signed certificate', 'unable to get issuer certificate'],
      ...['self-signed certificate in certificate chain', 'unable to get local issuer certificate'],
      'unable to verify the first certificate; if the root CA is installed locally, try --use-system-ca',
    ),
    ...messages(/`fetch` blocks this port \(bad port\); use another port/, 'bad port'),
    ['a tunnel, 407', tunnel(407), PROXY],
    ['a tunnel, 403', tunnel(403), PROXY],
    [
      'a tunnel of the package `tunnel`',
      coded('ECONNRESET', { message: 'tunneling socket could not be established, statusCode=407' }),
      PROXY,
    ],
    [
      'a tunnel of Node 24',
      coded('ERR_PROXY_TUNNEL', {
        message: 'Failed to establish tunnel to a:1 via http://b:2: HTTP/1.1 407 No',
      }),
      PROXY,
    ],
  ])('%s → one attempt, never sent, and advice', async (_what, failure, advice) => {
    const { client, requests } = makeClient(() => Promise.reject(failure));
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({ name: 'ConnectionError', neverSent: true, isPermanent: true, attempts: 1 });
    expect(error).toMatchObject({ message: expect.stringMatching(advice) });
    expect(requests).toHaveLength(1);
  });

  test.each([
    ['http://plain.test/v1', '; if the port expects TLS, begin `baseUrl` with https:'],
    ['https://tls.test/v1', 'other side closed'],
  ])(
    'a server that closes the connection at once, base URL %s → the message ends with %j',
    async (baseUrl, end) => {
      const closed = new TypeError('fetch failed', { cause: new Error('other side closed') });
      const { client } = makeClient(() => Promise.reject(closed), {
        baseUrl,
        allowInsecureHttp: true,
        retry: false,
      });
      const { message } = Object(await catchRejection(client.couriers.list()));
      expect(message.endsWith(end)).toBe(true);
    },
  );

  test.each<[what: string, failure: Error]>([
    ['a tunnel, 502', tunnel(502)],
    ['a tunnel, 429', tunnel(429)],
    ...[
      'tunneling socket could not be established, statusCode=503',
      'tunneling socket could not be established, cause=connect ETIMEDOUT 10.0.0.1:8080',
      'tunneling socket could not be established, cause=socket hang up',
      'got illegal response body from proxy',
    ].map((message): [string, Error] => [
      `${message}, of the package \`tunnel\``,
      coded('ECONNRESET', { message }),
    ]),
    ['a silent proxy, of the package hpagent', coded('EPROXYTIMEOUT')],
    [
      'a proxy that closes the connection, of Node 24',
      coded('ERR_PROXY_TUNNEL', { message: 'Connection to establish proxy tunnel ended unexpectedly' }),
    ],
    [
      'a connection that ends in the handshake',
      coded('ECONNRESET', {
        message: 'Client network socket disconnected before secure TLS connection was established',
      }),
    ],
  ])('%s → never sent, and retried even if each request is paid for', async (_what, failure) => {
    const { client, requests } = makeClient(() => Promise.reject(failure), {
      retry: { retries: 2, maxBackoffMs: 1 },
    });
    expect(await settleInVirtualTime(() => catchRejection(client.tracking.search(input)))).toMatchObject({
      neverSent: true,
      isPermanent: false,
    });
    expect(requests).toHaveLength(3);
  });

  const MESSAGES = [
    'answered 502: "self-signed certificate"',
    'upstream: self-signed certificate',
    'self-signed certificates are refused',
    'upstream: certificate has expired',
    'certificate has expired upstream',
    'upstream: error:0A00010B:SSL routines:ssl3_get_record:wrong version number',
    'upstream said: Proxy response (407) !== 200 when HTTP Tunneling',
    'bad port 443',
    'upstream: bad port',
    'upstream: Client network socket disconnected before secure TLS connection was established',
  ];

  test.each([
    ...MESSAGES.map((message): [string, Error] => [`the text of a gateway, ${message}`, new Error(message)]),
    ...['X_CERT_REVOKED', 'INVALID_CA_FILE', 'PATH_LENGTH_EXCEEDED_BY_PROXY'].map((code): [string, Error] => [
      `the unknown code ${code}`,
      coded(code),
    ]),
    [
      'the text of a gateway about a socket',
      coded('ECONNRESET', { message: 'upstream: tunneling socket could not be established, statusCode=407' }),
    ],
    [
      'the text of Deno about a certificate, outside of Deno',
      denoFailure(`${DENO_CONNECT}: invalid peer certificate: NotValidForName`),
    ],
  ])('%s → proves nothing', async (_what, failure) => {
    expect(await wasNeverSent(new TypeError('fetch failed', { cause: failure }))).toBe(false);
  });
});

describe('an AggregateError, which has an error for each address', () => {
  const silent = coded('ETIMEDOUT', { syscall: 'connect' });
  const refused = coded('ECONNREFUSED', { syscall: 'connect' });
  const reset = coded('ECONNRESET', { syscall: 'read' });
  const untrusted = coded('CERT_UNTRUSTED');
  const all = (errors: unknown[], code?: string) =>
    new TypeError('fetch failed', { cause: Object.assign(new AggregateError(errors), code && { code }) });

  test.each<[what: string, failure: unknown, neverSent: boolean, isPermanent: boolean]>([
    ['the first silent, the second refuses', all([silent, refused], 'ETIMEDOUT'), true, false],
    ['both silent', all([silent, silent], 'ETIMEDOUT'), true, false],
    ['one that was reset after sending', all([refused, reset], 'ECONNREFUSED'), false, false],
    ['one without a code', all([refused, new Error('?')]), false, false],
    ['one that is not an error', all([refused, 'oops']), false, false],
    ['none', all([], 'ETIMEDOUT'), false, false],
    ['an AggregateError inside', all([silent, new AggregateError([refused, silent])]), true, false],
    [
      'causes inside, as of `Promise.any`',
      new AggregateError([all([refused]), networkFailure('ENOTFOUND')]),
      true,
      false,
    ],
    ['no address that is trusted', all([untrusted, untrusted]), true, true],
    ['one address that is trusted', all([untrusted, refused]), true, false],
  ])('%s → neverSent %s', async (_what, failure, neverSent, isPermanent) => {
    const { client } = makeClient(() => Promise.reject(failure), once);
    expect(await catchRejection(client.couriers.list())).toMatchObject({ neverSent, isPermanent });
  });
});

describe('an error of the option `fetch`', () => {
  const boom = new TypeError('x is not a function');

  test.each<[what: string, failure: unknown]>([
    ['an error of the program', boom],
    ['an error without a code', new Error('no route')],
    ['a wrong URL', new TypeError('Failed to parse URL', { cause: coded('ERR_INVALID_URL') })],
  ])('%s → one attempt, and a message that names the option', async (_what, failure) => {
    const { client, requests } = makeClient(() => Promise.reject(failure));
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      isPermanent: true,
      message: expect.stringMatching(
        / the function of the option `fetch` threw \w+: .*; correct that function$/,
      ),
    });
    expect(requests).toHaveLength(1);
  });

  test.each<[what: string, failure: unknown]>([
    ['a network error of MSW', new TypeError('Failed to fetch', { cause: Response.error() })],
    ['a network error of a mock', new TypeError('fetch failed')],
    ['a timeout of its own', new DOMException('too late', 'TimeoutError')],
    ['an abort of its own', new DOMException('aborted', 'AbortError')],
    ['a code of the system', coded('ECONNRESET')],
    ['a code of a library', coded('UND_ERR_SOCKET')],
  ])('%s → retried', async (_what, failure) => {
    const { client, requests } = makeClient(() => Promise.reject(failure), {
      retry: { retries: 1, maxBackoffMs: 1 },
    });
    const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(error).toMatchObject({ isPermanent: false });
    expect(error).not.toMatchObject({ message: expect.stringContaining('`fetch`') });
    expect(requests).toHaveLength(2);
  });

  test.each([
    ['Deno', () => vi.stubGlobal('Deno', {})],
    ['a Cloudflare Worker', () => vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })],
  ])('in %s, whose errors have no codes → retried', async (_where, stub) => {
    stub();
    const { client, requests } = makeClient(() => Promise.reject(boom), {
      retry: { retries: 1, maxBackoffMs: 1 },
    });
    await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(requests).toHaveLength(2);
  });

  test('the global fetch that was stubbed → retried, because no option names it', async () => {
    const fetch = vi.fn(() => Promise.reject(boom));
    vi.stubGlobal('fetch', fetch);
    const client = new TrackingClient({
      baseUrl: BASE_URL,
      apiKey: API_KEY,
      logLevel: 'silent',
      retry: { retries: 1 },
    });
    await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(fetch).toHaveBeenCalledTimes(2);
  });
});

describe('the limits of 300 s that the `fetch` of Node has', () => {
  const late = (code: string) => new TypeError('fetch failed', { cause: coded(code) });

  test('no headers → retried, and the message names headersTimeout', async () => {
    const { client, requests } = makeClient(late('UND_ERR_HEADERS_TIMEOUT'), {
      retry: { retries: 1, maxBackoffMs: 1 },
    });
    const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(error).toMatchObject({
      isPermanent: false,
      neverSent: false,
      message: expect.stringMatching(
        / got no response: socket; Node's `fetch` waits 300 s for the headers .*`headersTimeout`$/,
      ),
    });
    expect(requests).toHaveLength(2);
  });

  test('a body that pauses → the message names bodyTimeout', async () => {
    const pull = (stream: ReadableStreamDefaultController) => stream.error(late('UND_ERR_BODY_TIMEOUT'));
    const { client } = makeClient(() => new Response(new ReadableStream({ pull })), once);
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      message: expect.stringMatching(
        / got an incomplete response: socket; Node's `fetch` waits 300 s .*`bodyTimeout`$/,
      ),
    });
  });
});

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
  ['code -104 with a refused cause', Object.assign(networkFailure('ECONNREFUSED'), { code: -104 }), true],
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

test.each([
  ['NotValidForName', '; check the host in `baseUrl`'],
  ['certificate not valid for name "a.test"', '; check the host in `baseUrl`'],
  ['Expired', "; check the clock of this machine, or have the server's certificate renewed"],
  ['certificate expired: verification time 1 (UNIX)', '; check the clock of this machine, '],
  ['certificate not valid yet: verification time 1', '; check the clock of this machine, '],
  ['UnknownIssuer', '; if you trust it, set '],
])('on Deno, a certificate that is refused with %j → permanent, and advice', async (reason, advice) => {
  vi.stubGlobal('Deno', {});
  const failure = denoFailure(`${DENO_CONNECT}: invalid peer certificate: ${reason}`);
  const { client } = makeClient(() => Promise.reject(failure), once);
  expect(await catchRejection(client.couriers.list())).toMatchObject({
    neverSent: true,
    isPermanent: true,
    message: expect.stringContaining(advice),
  });
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

  test('a request with a body → fetch gets a URL and plain options', async () => {
    const fetch = vi.fn(async (_url: string, _init: FetchInit) => Response.json({ data: [] }));
    const { client } = makeClient({}, { fetch, headers: { 'X-Source': 'shop' } });
    await client.tracking.search(input);
    const headers = {
      accept: 'application/json',
      'user-agent': expect.stringMatching(/^tracking-client\//),
      'x-source': 'shop',
      'content-type': 'application/json',
      authorization: `Bearer ${API_KEY}`,
    };
    const body = JSON.stringify(input);
    expect(fetch.mock.calls).toEqual([
      [
        `${BASE_URL}/tracking/search`,
        { method: 'POST', headers, body, redirect: 'manual', signal: expect.any(AbortSignal) },
      ],
    ]);
    expect(Object.getPrototypeOf(fetch.mock.calls[0]?.[1].headers)).toBe(Object.prototype);
  });

  test('a request without a body → fetch gets no body and no content type', async () => {
    const fetch = vi.fn(async (_url: string, _init: FetchInit) => Response.json({ data: [] }));
    await makeClient({}, { fetch })
      .client.trackers.get('ä/1')
      .catch(() => {});
    const [url, init] = fetch.mock.calls[0] ?? [];
    expect(url).toBe(`${BASE_URL}/trackers/%C3%A4%2F1`);
    expect(init).not.toHaveProperty('body');
    expect(init?.headers).not.toHaveProperty('content-type');
  });

  test.each(EVERY_CALL)('%s → only the options of `FetchInit`, so no `cache`', async (_name, { call }) => {
    const fetch = vi.fn(async (_url: string, _init: FetchInit) => Response.json({ data: [] }));
    await Promise.resolve(call(makeClient({}, { fetch }).client)).catch(() => {});
    const [[, { body: _body, ...init } = {}] = []] = fetch.mock.calls;
    expect(Object.keys(init).sort()).toEqual(['headers', 'method', 'redirect', 'signal']);
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
