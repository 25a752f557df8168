import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { toNodeHandler } from '../../src/webhooks/index.ts';
import { settled } from '../support/settled.ts';
import { makeHandler, SECRET } from './make-handler.ts';

function makeIncoming(method = 'POST', headers = { authorization: `Bearer ${SECRET}` }): IncomingMessage {
  const incoming = new IncomingMessage(new Socket());
  return Object.assign(incoming, { method, url: '/', headers, rawHeaders: Object.entries(headers).flat() });
}

/** A request whose body the host has read. */
async function readRequest(): Promise<IncomingMessage> {
  const incoming = makeIncoming();
  incoming.push(null);
  incoming.resume();
  await once(incoming, 'end');
  return incoming;
}

/** Hands a request to an adapted handler; returns what the handler wrote to the host's response. */
async function receive(incoming: IncomingMessage, handler: (request: Request) => Promise<Response>) {
  const response = new ServerResponse(incoming);
  await toNodeHandler(handler)(incoming, response);
  return response;
}

/** Hands a request to an adapted handler as Express does, and waits until nothing happens any more. */
async function receiveWithNext(incoming: IncomingMessage, handler: (request: Request) => Promise<Response>) {
  const response = new ServerResponse(incoming);
  const next = vi.fn();
  const returned: unknown = toNodeHandler(handler)(incoming, response, next);
  await settled();
  return { response, next, returned };
}

describe('the stream of a body', () => {
  test('a reader that cancels early → the rest is discarded, and nothing is added to the closed stream', async () => {
    const incoming = makeIncoming();
    const read: unknown[] = [];
    await receive(incoming, async (request) => {
      const reader = request.body?.getReader();
      incoming.push('first');
      read.push(Buffer.from((await reader?.read())?.value ?? []).toString());
      await reader?.cancel();
      incoming.push('second');
      incoming.push(null);
      await once(incoming, 'end');
      read.push(await reader?.read());
      return new Response();
    });
    expect(read).toEqual(['first', { done: true, value: undefined }]);
  });

  test('a body that the handler does not read → not read until the response', async () => {
    const incoming = makeIncoming();
    incoming.push('first');
    let isTouched: boolean | undefined;
    await receive(incoming, async () => {
      await settled();
      isTouched = incoming.readableDidRead;
      return new Response();
    });
    expect(isTouched).toBe(false);
  });

  test.each([
    ['before', 0],
    ['while', 1],
  ])('the connection closes %s the handler reads → the read rejects', async (_title, chunkCount) => {
    const incoming = makeIncoming();
    let reading: Promise<unknown> | undefined;
    await receive(incoming, async (request) => {
      const reader = request.body?.getReader();
      if (chunkCount > 0) {
        incoming.push('{"trackings"');
        await reader?.read();
      }
      incoming.destroy();
      await once(incoming, 'close');
      reading = reader?.read();
      await reading?.catch(() => {});
      return new Response();
    });
    await expect(reading).rejects.toThrow('Premature close');
  });

  test('the handler responds during a read → the read goes on to the end, and nothing goes to next', async () => {
    const incoming = makeIncoming();
    const next = vi.fn();
    let reading: Promise<string> | undefined;
    const listener = toNodeHandler(async (request) => {
      reading = request.text();
      await settled();
      return new Response('at once');
    });
    await listener(incoming, new ServerResponse(incoming), next);
    incoming.push('all of it');
    incoming.push(null);
    expect(await reading).toBe('all of it');
    expect(next).not.toHaveBeenCalled();
  });

  test('the handler reads a part and responds → the rest is discarded, so that the connection is free', async () => {
    const incoming = makeIncoming();
    incoming.push('first');
    await receive(incoming, async (request) => {
      const reader = request.body?.getReader();
      await reader?.read();
      reader?.releaseLock();
      return new Response();
    });
    incoming.push('second');
    incoming.push(null);
    await once(incoming, 'end');
  });
});

test.each<[string, number, unknown]>([
  ['102 bytes of text', 413, 'é'.repeat(51)],
  ['101 bytes', 413, new Uint8Array(101)],
  ['100 bytes of text', 422, `"${'é'.repeat(49)}"`],
  [
    'an object, whose parser had a limit of its own',
    200,
    { trackerId: 't1', events: [], more: 'x'.repeat(100) },
  ],
])('maxBodyBytes 100, and the host has read %s, no declared length → %i', async (_title, status, body) => {
  const handler = makeHandler({ maxBodyBytes: 100, onRefused: () => {}, onError: () => {} });
  const response = await receive(Object.assign(await readRequest(), { body }), handler);
  expect(response.statusCode).toBe(status);
});

test('an empty body that a parser turned into an object → 400, as for the empty body itself', async () => {
  const incoming = Object.assign(await readRequest(), { body: {} });
  incoming.headers['content-length'] = '0';
  const response = await receive(incoming, makeHandler({ onRefused: () => {} }));
  expect(response.statusCode).toBe(400);
});

describe('a body that other code has read and not kept', () => {
  const isMisread = expect.objectContaining({
    name: 'ConfigurationError',
    message: expect.stringMatching(
      /^The request body was read before the webhook handler was called; .*rawBody/,
    ),
  });

  test('a host with next → the error goes to onRefused and to next', async () => {
    const incoming = await readRequest();
    const onRefused = vi.fn();
    const { response, next } = await receiveWithNext(incoming, makeHandler({ onRefused }));
    expect(response.headersSent).toBe(false);
    expect(next).toHaveBeenCalledExactlyOnceWith(isMisread);
    expect(onRefused).toHaveBeenCalledExactlyOnceWith(isMisread, expect.any(Request));
  });

  test('a host without next → 500 with JSON, and one line a minute', async () => {
    const error = vi.fn();
    const handler = makeHandler({ logger: { debug() {}, info() {}, warn() {}, error } });
    const responses = [];
    for (let count = 0; count < 3; count += 1) responses.push(await receive(await readRequest(), handler));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([500, 500, 500]);
    expect(responses[0]?.getHeader('content-type')).toBe('application/json');
    expect(error).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining('Responded to a webhook with 500: The request body was read before'),
      expect.objectContaining({ err: isMisread }),
    );
  });

  test('a wrong secret → 401, because the body does not matter', async () => {
    const incoming = await readRequest();
    const handler = makeHandler({ secret: 'another', onRefused: () => {} });
    const { response, next } = await receiveWithNext(incoming, handler);
    expect([response.statusCode, next.mock.calls]).toEqual([401, []]);
  });

  test('another handler that does not read the body → its response is sent', async () => {
    const incoming = await readRequest();
    const { response } = await receiveWithNext(incoming, async () => new Response(null, { status: 204 }));
    expect(response.statusCode).toBe(204);
  });
});

describe('headers', () => {
  test.each<[string, object, object]>([
    [
      'a host that leaves `rawHeaders` empty → as in `headers`',
      { rawHeaders: [] },
      { 'x-a': '1', 'x-b': '1, 2' },
    ],
    [
      'middleware that changes `headers` → the changed ones',
      { headers: { 'x-a': 'changed', 'x-new': 'new' } },
      { 'x-a': 'changed', 'x-new': 'new' },
    ],
    [
      'values that no header can contain → left out',
      {
        headers: {
          'x-a': '1',
          ':path': '/',
          'x-emoji': '📦',
          'x-line': 'a\nb',
          'x-none': undefined,
          'a b': '1',
        },
      },
      { 'x-a': '1' },
    ],
    [
      'values of other types → their text',
      { headers: { 'x-a': 5, 'x-b': [true, 'b'] } },
      { 'x-a': '5', 'x-b': 'true, b' },
    ],
  ])('%s', async (_title, changes, expected) => {
    const incoming = makeIncoming('GET');
    Object.assign(incoming, { headers: { 'x-a': '1', 'x-b': '1, 2' }, rawHeaders: ['X-A', 'raw'] }, changes);
    let seen: Headers | undefined;
    await receive(incoming, async ({ headers }) => {
      seen = headers;
      return new Response();
    });
    expect(Object.fromEntries(seen ?? [])).toEqual(expected);
  });
});

test.each([
  [{ url: '/hooks/a?b=c' }, 'http://shop.test:3000/hooks/a?b=c'],
  [{ url: '/', originalUrl: '/hooks/acme?b=c' }, 'http://shop.test:3000/hooks/acme?b=c'],
  [{ url: '//evil.test/a' }, 'http://shop.test:3000//evil.test/a'],
  [{ url: '/a/../b' }, 'http://shop.test:3000/b'],
  [{ url: 'http://user:pw@evil.test/a?b' }, 'http://shop.test:3000/a?b'],
  [{ url: 'http://[' }, 'http://shop.test:3000/'],
  [{ url: '/a', headers: {} }, 'http://localhost/a'],
  [{ url: '/a', headers: { host: 'not a host' } }, 'http://localhost/a'],
  [{ url: '/a', headers: { host: 'user:pw@x' } }, 'http://user/a'],
  [{ url: '/a', headers: { host: 'x:99999' } }, 'http://x/a'],
  [{ url: '/a', headers: { host: '@' } }, 'http://localhost/a'],
  [{ url: '/a', headers: { host: 'x.test/b?c' } }, 'http://x.test/a'],
  [{ url: '/a', headers: { ':authority': 'shop.test' } }, 'http://shop.test/a'],
])('the request %j → the URL %s', async (fields, url) => {
  const incoming = Object.assign(makeIncoming('GET'), { headers: { host: 'shop.test:3000' } }, fields);
  let seen: string | undefined;
  await receive(incoming, async (request) => {
    seen = request.url;
    return new Response();
  });
  expect(seen).toBe(url);
});

test.each<[string, unknown, string]>([
  ['text', 'a "text"', 'a "text"'],
  ['bytes', new TextEncoder().encode('bytes'), 'bytes'],
  ['an object', { a: 1 }, '{"a":1}'],
])(
  'a host that has parsed the body as %s → a handler of your own reads the same text',
  async (_title, body, text) => {
    let seen: string | undefined;
    await receive(Object.assign(await readRequest(), { body }), async (request) => {
      seen = await request.text();
      return new Response();
    });
    expect(seen).toBe(text);
  },
);

test('HEAD → the request has no body', async () => {
  let seen: unknown;
  const response = await receive(makeIncoming('HEAD'), async (request) => {
    seen = request.body;
    return new Response();
  });
  expect([response.statusCode, seen]).toEqual([200, null]);
});

describe('a handler that throws', () => {
  const failing = () => Promise.reject(new Error('bug'));

  test('a host with next → the error goes to next, nothing is sent, and no promise is returned', async () => {
    const { response, next, returned } = await receiveWithNext(makeIncoming(), failing);
    expect(returned).toBeUndefined();
    expect(next.mock.calls).toEqual([[new Error('bug')]]);
    expect(response.headersSent).toBe(false);
  });

  test('a host without next → 500', async () => {
    expect(await receive(makeIncoming(), failing)).toMatchObject({ statusCode: 500, headersSent: true });
  });
});

// No web-standard request can hold TRACE.
test.each(['GET', 'TRACE'])('%s → 405 with Allow', async (method) => {
  const response = await receive(makeIncoming(method), makeHandler());
  expect([response.statusCode, response.getHeader('allow')]).toEqual([405, 'HEAD, POST']);
});

test('a response with two cookies → sent with both and no other header', async () => {
  const headers = new Headers([
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
  ]);
  const response = await receive(makeIncoming('GET'), async () => new Response(null, { headers }));
  expect(response.getHeaders()).toEqual({ 'set-cookie': ['a=1', 'b=2'] });
});

test('a request and a reply of Fastify → the reply is hijacked before the response', async () => {
  const raw = makeIncoming();
  const hijack = vi.fn();
  const listener = toNodeHandler(async () => {
    expect(hijack).toHaveBeenCalledOnce();
    return new Response(null, { status: 204 });
  });
  const response = new ServerResponse(raw);
  await listener({ raw }, { raw: response, hijack });
  expect(response.statusCode).toBe(204);
});

test.each<[string, () => Response]>([
  ['responds', () => new Response(null, { headers: { 'x-late': '1' } })],
  [
    'throws',
    () => {
      throw new Error('too late');
    },
  ],
])(
  'a host that has already timed out, and a handler that %s → no write to the response of the host',
  async (_title, end) => {
    const incoming = makeIncoming();
    const response = new ServerResponse(incoming);
    const listener = toNodeHandler(async () => {
      response.writeHead(504).end();
      return end();
    });
    await expect(listener(incoming, response)).resolves.toBeUndefined();
    expect([response.statusCode, response.getHeaderNames()]).toEqual([504, []]);
  },
);

describe('a sender that has hung up', () => {
  test('a closed connection whose body the host has read → handled', async () => {
    const incoming = await readRequest();
    const response = new ServerResponse(incoming);
    response.destroy();
    const bodies: unknown[] = [];
    const listener = toNodeHandler(async (request) => {
      bodies.push(await request.text());
      return new Response();
    });
    await listener(Object.assign(incoming, { body: '{"trackings":[]}' }), response);
    expect(bodies).toEqual(['{"trackings":[]}']);
  });

  test('a closed connection without a body → no error goes to next, because the host is not at fault', async () => {
    const incoming = await readRequest();
    const response = new ServerResponse(incoming);
    response.destroy();
    const next = vi.fn();
    toNodeHandler(makeHandler())(incoming, response, next);
    await settled();
    expect(next).not.toHaveBeenCalled();
  });
});

test('headers that a hook of Fastify has set → kept beside those of the response', async () => {
  const raw = makeIncoming('GET');
  const response = new ServerResponse(raw);
  const reply = {
    raw: response,
    hijack: () => {},
    getHeaders: () => ({ 'x-request-id': 'r1', 'set-cookie': ['a=1', 'b=2'], allow: 'PUT' }),
  };
  await toNodeHandler(makeHandler())({ raw }, reply);
  expect(response.getHeaders()).toMatchObject({
    'x-request-id': 'r1',
    'set-cookie': ['a=1', 'b=2'],
    allow: 'HEAD, POST',
  });
});
