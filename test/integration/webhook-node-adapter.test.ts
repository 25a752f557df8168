import { once } from 'node:events';
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import express from 'express';
import { afterEach, expect, test } from 'vitest';
import { createWebhookHandler, toNodeHandler } from '../../src/webhooks/index.ts';
import { deferred } from '../support/deferred.ts';
import { settled } from '../support/settled.ts';
import { listening, makeClient, payloadOf, SECRET } from './webhook-loopback.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function serving(listener: RequestListener) {
  const running = await listening(createServer(listener));
  const client = makeClient(running.port);
  cleanUps.push(
    () => running.close(),
    () => client.close(),
  );
  return { port: running.port, send: client.send };
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

test('a handler that answers while it waits for more of the body → its reader is told that no more comes', async () => {
  const told = deferred<unknown>();
  const listener = toNodeHandler(async ({ body }) => {
    const reader = body?.getReader();
    void (async () => {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read());
    })().catch(told.resolve);
    return new Response('at once');
  });
  const { port } = await serving(listener);
  const outgoing = httpRequest({ port, method: 'POST' });
  outgoing.on('error', () => {}); // Nobody waits for the rest of it.
  outgoing.write('{"trackings"');
  expect(await told.promise).toMatchObject({ message: expect.stringContaining('answered before') });
  outgoing.destroy();
});

test('TRACE, which no web-standard request can hold → 405 with Allow', async () => {
  const { send } = await serving(toNodeHandler(makeWebhooks().webhooks));
  const answer = await send({ method: 'TRACE' });
  expect([answer.status, answer.headers.allow]).toEqual([405, 'HEAD, POST']);
});

test('a host that destroys the request while we read → the work ends, so that close resolves', async () => {
  const { webhooks, handled } = makeWebhooks();
  const listener = toNodeHandler(webhooks);
  const destroyed = deferred();
  const { port } = await serving((request, response) => {
    void listener(request, response);
    request.once('data', () => {
      setTimeout(() => {
        request.destroy();
        destroyed.resolve();
      }, 50);
    });
  });
  const headers = { authorization: `Bearer ${SECRET}`, 'content-length': '500' };
  const outgoing = httpRequest({ port, method: 'POST', headers });
  outgoing.on('error', () => {}); // The connection is gone, as the test wants it.
  outgoing.write('{"trackings"');
  await destroyed.promise;
  await webhooks.close();
  expect(handled).toEqual([]);
});

test('a body that someone read and left nowhere → the error goes to next', async () => {
  const app = express();
  app.use((request, _response, next) => {
    request.resume().on('end', () => next());
  });
  app.post('/webhooks', toNodeHandler(makeWebhooks().webhooks));
  let caught: unknown;
  app.use(((error, _request, response, _next) => {
    caught = error;
    response.status(599).end();
  }) satisfies express.ErrorRequestHandler);
  const { send } = await serving(app);
  expect((await send({ chunks: [payloadOf('e1')] })).status).toBe(599);
  expect(caught).toMatchObject({ name: 'ConfigurationError' });
});

test('a sender that hangs up while a middleware waits → no error, for that is no mistake of the host', async () => {
  const errors: unknown[] = [];
  const hasHungUp = deferred();
  const app = express();
  app.use((request, _response, next) => {
    request.once('close', () => {
      next();
      hasHungUp.resolve();
    });
    socket.destroy();
  });
  app.post('/webhooks', toNodeHandler(makeWebhooks().webhooks));
  app.use(((error, _request, _response, _next) => errors.push(error)) satisfies express.ErrorRequestHandler);
  const { port } = await serving(app);
  const socket = connect(port, '127.0.0.1', () => {
    socket.write(
      `POST /webhooks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${SECRET}\r\nContent-Length: 500\r\n\r\n{`,
    );
  });
  await hasHungUp.promise;
  await settled();
  expect(errors).toEqual([]);
});

test.each<[string, (listener: RequestListener) => RequestListener, Record<string, string>]>([
  ['a Host header that no URL can hold', (listener) => listener, { host: 'not a host' }],
  [
    'an empty object that a parser left beside an unread body',
    (listener) => (request, response) => listener(Object.assign(request, { body: {} }), response),
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
  [
    'a body parsed as text',
    (listener) =>
      express()
        .use(express.text({ type: () => true }))
        .post('/webhooks', listener),
    {},
  ],
])('%s → the event is handled, 200', async (_title, wrap, headers) => {
  const { webhooks, handled } = makeWebhooks();
  const { send } = await serving(wrap(toNodeHandler(webhooks)));
  expect((await send({ headers, chunks: [payloadOf('e1')] })).status).toBe(200);
  expect(handled).toEqual(['e1']);
});

test('gzip that express.json() unpacked → 415 all the same', async () => {
  const { webhooks, handled } = makeWebhooks();
  const app = express().use(express.json());
  app.post('/webhooks', toNodeHandler(webhooks));
  const { send } = await serving(app);
  const answer = await send({ headers: { 'content-encoding': 'gzip' }, chunks: [gzipSync(payloadOf('e1'))] });
  expect([answer.status, handled]).toEqual([415, []]);
});

test('any other handler after express.json() → reads the body from the request', async () => {
  const app = express().use(express.json());
  app.post(
    '/webhooks',
    toNodeHandler(async (request) => Response.json({ echo: await request.json() }, { status: 202 })),
  );
  const { send } = await serving(app);
  const answer = await send({ chunks: ['{"a":[1,"é"]}'] });
  expect([answer.status, JSON.parse(answer.text)]).toEqual([202, { echo: { a: [1, 'é'] } }]);
});

test('a server of HTTP/2, whose requests have headers that no web-standard request can hold → handled', async () => {
  const { webhooks, handled } = makeWebhooks();
  const listener = toNodeHandler(webhooks);
  // Node's own compatibility layer: request and response of HTTP/2 with the interface of HTTP/1.
  const server = createHttp2Server((request, response) => void listener(request as never, response as never));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Sound: a server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  cleanUps.push(
    () => server.close(),
    () => session.close(),
  );
  const stream = session.request({
    ':method': 'POST',
    ':path': '/webhooks',
    authorization: `Bearer ${SECRET}`,
  });
  stream.end(payloadOf('e1'));
  const [headers] = await once(stream, 'response');
  expect([headers[':status'], handled]).toEqual([200, ['e1']]);
});

test('an answer with two cookies → two Set-Cookie headers', async () => {
  const headers = new Headers([
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
  ]);
  const { send } = await serving(toNodeHandler(async () => new Response(null, { status: 204, headers })));
  const answer = await send({ method: 'GET' });
  expect([answer.status, answer.headers['set-cookie']]).toEqual([204, ['a=1', 'b=2']]);
});

test('a request → seen with its own path, query and headers', async () => {
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
