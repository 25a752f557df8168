import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import nodeFetch from 'node-fetch';
import { generate } from 'selfsigned';
import { Agent, ProxyAgent, fetch as undiciFetch } from 'undici';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { TrackingClient, type TrackingClientOptions } from '../../src/index.ts';
import { listen } from '../support/listen.ts';
import { catchRejection } from '../support/make-client.ts';

type FetchOption = NonNullable<TrackingClientOptions['fetch']>;

/** The ways in which a program can send requests; undefined is the global `fetch`. */
const FETCHES: readonly (readonly [name: string, fetch: FetchOption | undefined])[] = [
  ['the global fetch', undefined],
  ['the fetch of undici', undiciFetch],
  ['node-fetch', nodeFetch],
];

let certificate: { readonly key: string; readonly cert: string };
beforeAll(async () => {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }]);
  certificate = { key, cert };
});

function respond(request: { url?: string | undefined }, response: { end(body: string): unknown }): void {
  served.push(request.url ?? '');
  response.end('{"data":[]}');
}
let served: string[] = [];
function makeClient(baseUrl: string, fetch: FetchOption | undefined) {
  served = [];
  const attempts: unknown[] = [];
  const client = new TrackingClient({
    baseUrl,
    apiKey: 'key-0123456789',
    fetch,
    logLevel: 'silent',
    rateLimit: false,
    retry: { retries: 2, maxBackoffMs: 1 },
    hooks: { onRequest: () => attempts.push(1) },
  });
  return { client, attempts };
}

const PERMANENT = { name: 'ConnectionError', neverSent: true, isPermanent: true, attempts: 1 };
const says = (text: string | RegExp) => ({ message: expect.stringMatching(text) });

describe.each(FETCHES)('%s', (name, fetch) => {
  test('a service that works → results, also with a body', async () => {
    const bodies: string[] = [];
    const port = await listen(
      createServer(async (request, response) => {
        bodies.push(Buffer.concat(await request.toArray()).toString());
        const { authorization } = request.headers;
        response.setHeader('x-request-id', `${request.method} ${request.url} ${authorization}`);
        response.setHeader('content-type', 'application/json');
        response.end('{"data":{"trackings":[]}}');
      }),
    );
    const { client } = makeClient(`http://127.0.0.1:${port}/public/v1`, fetch);
    const input = { trackingNumber: 'LA680658838NL' };
    const { data, requestId } = await client.tracking.search(input).withResponse();
    expect(data).toEqual([]);
    expect(requestId).toBe('POST /public/v1/tracking/search Bearer key-0123456789');
    expect(bodies).toEqual([JSON.stringify(input)]);
  });

  test('a redirect, an error and a body that is too long → as documented', async () => {
    const port = await listen(
      createServer(({ url }, response) => {
        const status = url === '/couriers' ? 302 : url === '/trackers/a' ? 404 : 200;
        response.writeHead(status, { location: 'https://other.test/' });
        response.end(`{"errors":[{"code":"tracker_not_found"}],"x":"${'x'.repeat(5_000)}"}`);
      }),
    );
    const client = new TrackingClient({
      baseUrl: `http://127.0.0.1:${port}`,
      apiKey: 'key-0123456789',
      fetch,
      maxResponseBytes: 2_000,
    });
    expect(await catchRejection(client.couriers.list())).toMatchObject({ name: 'ApiError', status: 302 });
    expect(await catchRejection(client.trackers.get('a'))).toMatchObject({ name: 'NotFoundError' });
    expect(await catchRejection(client.trackers.get('b'))).toMatchObject({ name: 'ResponseValidationError' });
  });

  test('a certificate that is not trusted → one attempt, never sent, names NODE_EXTRA_CA_CERTS', async () => {
    const port = await listen(createTlsServer(certificate, respond));
    const { client, attempts } = makeClient(`https://localhost:${port}`, fetch);
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({ ...PERMANENT, ...says(/self-signed certificate; .*NODE_EXTRA_CA_CERTS/) });
    expect([attempts, served]).toEqual([[1], []]);
  });

  test('https: to a plain port → one attempt, never sent, names http: and allowInsecureHttp', async () => {
    const port = await listen(createServer(respond));
    const { client, attempts } = makeClient(`https://localhost:${port}`, fetch);
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({
      ...PERMANENT,
      ...says(/the port does not speak TLS; .* http: and set `allowInsecureHttp`/),
    });
    expect([attempts, served]).toEqual([[1], []]);
  });

  test('http: to a TLS port → retried, because the reason is not certain; names https:', async () => {
    const port = await listen(createTlsServer(certificate, respond));
    const { client, attempts } = makeClient(`http://localhost:${port}`, fetch);
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({
      name: 'ConnectionError',
      isPermanent: false,
      ...says('begin `baseUrl` with https:'),
    });
    expect([attempts.length, served]).toEqual([3, []]);
  });

  test.skipIf(name === 'node-fetch')('a port that fetch blocks → one attempt, never sent', async () => {
    const { client, attempts } = makeClient('http://127.0.0.1:6667', fetch);
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      ...PERMANENT,
      ...says('blocks this port'),
    });
    expect(attempts).toEqual([1]);
  });

  test.each([
    ['a body with a length', { 'content-length': '100' }],
    ['a body in chunks', {}],
  ])('%s that breaks off → ConnectionError, retried', async (_what, headers) => {
    const port = await listen(
      createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json', ...headers }).write('{"data":');
        setImmediate(() => response.destroy());
      }),
    );
    const { client, attempts } = makeClient(`http://127.0.0.1:${port}`, fetch);
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({
      name: 'ConnectionError',
      isPermanent: false,
      ...says('an incomplete response'),
    });
    expect(attempts).toHaveLength(3);
  });

  test('a poll of a service whose certificate is not trusted → ends with the first request', async () => {
    const port = await listen(createTlsServer(certificate, respond));
    const { client, attempts } = makeClient(`https://localhost:${port}`, fetch);
    const polls = client.trackers.poll('t', { initialDelayMs: 0 });
    expect(await catchRejection(polls.next())).toMatchObject(PERMANENT);
    expect(attempts).toEqual([1]);
  });
});

describe.each<[name: string, fetch: (dispatcher: ProxyAgent) => FetchOption]>([
  // Safe cast: Node's types of `fetch` come from an older undici, whose dispatchers have other types.
  ['the global fetch', (dispatcher) => (url, init) => fetch(url, { ...init, dispatcher } as RequestInit)],
  ['the fetch of undici', (dispatcher) => (url, init) => undiciFetch(url, { ...init, dispatcher })],
])('%s through a proxy', (_name, through) => {
  async function makeProxy(status: number) {
    const proxy = createServer();
    let tunnels = 0;
    proxy.on('connect', (_request, socket) => {
      tunnels += 1;
      socket.end(`HTTP/1.1 ${status} No\r\nProxy-Authenticate: Basic\r\n\r\n`);
    });
    const dispatcher = new ProxyAgent(`http://127.0.0.1:${await listen(proxy)}`);
    onTestFinished(() => dispatcher.destroy());
    return { fetch: through(dispatcher), countTunnels: () => tunnels };
  }

  test('CONNECT is answered with 407 → one attempt, never sent, names the proxy', async () => {
    const { fetch, countTunnels } = await makeProxy(407);
    const { client } = makeClient('https://api.example.test', fetch);
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({ ...PERMANENT, ...says(/\(407\).*; check the URL of the proxy/) });
    expect(countTunnels()).toBe(1);
  });

  test('CONNECT is answered with 407, createMany → outcome error, because nothing was sent', async () => {
    const { fetch } = await makeProxy(407);
    const { client } = makeClient('https://api.example.test', fetch);
    const outcomes = [];
    for await (const outcome of client.trackers.createMany([{ trackingNumber: 'LA680658838NL' }]))
      outcomes.push(outcome);
    expect(outcomes).toMatchObject([{ status: 'error', errors: [{ code: 'connection_failed' }] }]);
  });

  test('CONNECT is answered with 502 → never sent, and retried', async () => {
    const { fetch, countTunnels } = await makeProxy(502);
    const { client } = makeClient('https://api.example.test', fetch);
    expect(await catchRejection(client.tracking.search({ trackingNumber: 'LA680658838NL' }))).toMatchObject({
      neverSent: true,
      isPermanent: false,
      attempts: 3,
    });
    expect(countTunnels()).toBe(3);
  });
});

test('two addresses, the first is silent and the second refuses → never sent', async () => {
  const server = createServer();
  const port = await listen(server);
  server.close();
  const addresses = ['10.255.255.1', '127.0.0.1'].map((address) => ({ address, family: 4 }));
  const dispatcher = new Agent({
    connect: {
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: 100,
      lookup: (_host, _options, callback) => callback(null, addresses),
    },
  });
  onTestFinished(() => dispatcher.destroy());
  const fetch: FetchOption = (url, init) => undiciFetch(url, { ...init, dispatcher });
  const { client, attempts } = makeClient(`http://service.localhost:${port}`, fetch);
  const error = await catchRejection(client.couriers.list());
  expect(error).toMatchObject({ name: 'ConnectionError', neverSent: true, isPermanent: false, attempts: 3 });
  expect(attempts).toHaveLength(3);
});
