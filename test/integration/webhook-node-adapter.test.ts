import { once } from 'node:events';
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { bodyParser } from '@koa/bodyparser';
import express from 'express';
import Koa from 'koa';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createWebhookHandler, type NodeHandler, toNodeHandler } from '../../src/webhooks/index.ts';
import { buildPayload, connectClient, listening, SECRET } from './webhook-loopback.ts';

async function serving(listener: RequestListener) {
  return connectClient(await listening(createServer(listener)));
}

function makeWebhooks() {
  const handled: unknown[] = [];
  const webhooks = createWebhookHandler({
    secret: SECRET,
    onRefused: () => {},
    onEvent: (event) => handled.push(event.eventId),
  });
  return { handled, webhooks };
}

test.each<[string, (listener: RequestListener) => RequestListener, Record<string, string>]>([
  ['a Host header that no URL can hold', (listener) => listener, { host: 'not a host' }],
  [
    'an empty object that a parser left beside an unread body',
    (listener) => (request, response) => listener(Object.assign(request, { body: {} }), response),
    {},
  ],
  [
    'bytes that a parser stored as `raw`',
    (listener) => {
      const verify = (request: object, _response: unknown, raw: Buffer) => Object.assign(request, { raw });
      return express().post('/webhooks', express.json({ verify }), listener);
    },
    {},
  ],
  [
    'rawBody beside another parsed body',
    (listener) => {
      const verify = (request: object, _response: unknown, rawBody: Buffer) =>
        Object.assign(request, { rawBody });
      const app = express().use(express.json({ verify }), (request, _response, next) => {
        request.body = { trackings: [] };
        next();
      });
      return app.post('/webhooks', listener);
    },
    {},
  ],
])('%s → the event is handled, 200', async (_title, wrap, headers) => {
  const { webhooks, handled } = makeWebhooks();
  const { send } = await serving(wrap(toNodeHandler(webhooks)));
  expect((await send({ headers, chunks: [buildPayload('e1')] })).status).toBe(200);
  expect(handled).toEqual(['e1']);
});

test('gzip that express.json() unpacked → 200, handled', async () => {
  const { webhooks, handled } = makeWebhooks();
  const app = express().use(express.json());
  app.post('/webhooks', toNodeHandler(webhooks));
  const { send } = await serving(app);
  const response = await send({
    headers: { 'content-encoding': 'gzip' },
    chunks: [gzipSync(buildPayload('e1'))],
  });
  expect([response.status, handled]).toEqual([200, ['e1']]);
});

test.each<[string, (handler: NodeHandler) => RequestListener]>([
  ['a path that Express has mounted', (handler) => express().use('/hooks', handler)],
  [
    'a router below a mounted path',
    (handler) => express().use('/hooks', express.Router().use('/:account', handler)),
  ],
  ['a route of Express', (handler) => express().all('/hooks/:account', handler)],
  ['node:http', (handler) => handler],
])(
  'a `secret` function behind %s → gets the whole path, and the callback gets the account',
  async (_title, wrap) => {
    const handled: unknown[] = [];
    const webhooks = createWebhookHandler({
      secret: ({ url }) => {
        const { pathname, searchParams } = new URL(url);
        return searchParams.get('v') === '1' && pathname === '/hooks/acme'
          ? { secret: SECRET, account: pathname.slice('/hooks/'.length) }
          : undefined;
      },
      onRefused: () => {},
      onEvent: (_event, { account }) => void handled.push(account),
    });
    const { port } = await serving(wrap(toNodeHandler(webhooks)));
    const post = async (path: string) => {
      const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
      const url = `http://127.0.0.1:${port}${path}`;
      return (await fetch(url, { method: 'POST', headers, body: buildPayload('e1') })).status;
    };
    expect([await post('/hooks/acme?v=1'), await post('/hooks/bolt?v=1'), handled]).toEqual([
      200,
      401,
      ['acme'],
    ]);
  },
);

test('Koa whose body parser keeps the body to itself → 500, and one line in the log of the handler', async () => {
  const error = vi.fn();
  const logger = { debug() {}, info() {}, warn() {}, error };
  const webhooks = createWebhookHandler({ secret: SECRET, onEvent() {}, logger });
  const app = new Koa().use(bodyParser()).use(({ req, res }) => toNodeHandler(webhooks)(req, res));
  const { send } = await serving(app.callback());
  const responses = [
    await send({ chunks: [buildPayload('e1')] }),
    await send({ chunks: [buildPayload('e1')] }),
  ];
  expect(responses.map(({ status, text }) => [status, JSON.parse(text)])).toEqual(
    Array(2).fill([500, { success: false, outcome: 'failed' }]),
  );
  expect(error).toHaveBeenCalledExactlyOnceWith(
    expect.stringContaining('The request body was read before the webhook handler was called'),
    expect.anything(),
  );
});

test('middleware that restores the secret and corrects the content type → 200', async () => {
  const { webhooks, handled } = makeWebhooks();
  const app = express().use((request, _response, next) => {
    request.headers.authorization = `Bearer ${request.get('x-forwarded-secret')}`;
    request.headers['content-type'] = 'application/json';
    next();
  });
  app.post('/webhooks', toNodeHandler(webhooks));
  const { send } = await serving(app);
  const headers = { authorization: 'proxy', 'content-type': 'text/plain', 'x-forwarded-secret': SECRET };
  expect((await send({ headers, chunks: [buildPayload('e1')] })).status).toBe(200);
  expect(handled).toEqual(['e1']);
});

test('a server of HTTP/2, whose requests have pseudo-headers → handled', async () => {
  const { webhooks, handled } = makeWebhooks();
  const listener = toNodeHandler(webhooks);
  // Node's own compatibility layer: request and response of HTTP/2 with the interface of HTTP/1.
  const server = createHttp2Server((request, response) => void listener(request as never, response as never));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Sound: a server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  onTestFinished(() => void server.close());
  onTestFinished(() => session.close());
  const stream = session.request({
    ':method': 'POST',
    ':path': '/webhooks',
    authorization: `Bearer ${SECRET}`,
  });
  stream.end(buildPayload('e1'));
  const [headers] = await once(stream, 'response');
  expect([headers[':status'], handled]).toEqual([200, ['e1']]);
});

test('a request → a web-standard request with the same path, query and headers', async () => {
  let seen: Request | undefined;
  const { port } = await serving(
    toNodeHandler(async (request) => {
      seen = request;
      return new Response(null);
    }),
  );
  await new Promise((resolve) => {
    const path = '/hooks/a?b=c';
    httpRequest({ port, path, headers: { 'x-twice': ['1', '2'] } }, resolve).end();
  });
  expect(seen?.url).toBe(`http://localhost:${port}/hooks/a?b=c`);
  expect(seen?.headers.get('x-twice')).toBe('1, 2');
});
