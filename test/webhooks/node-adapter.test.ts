import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { toNodeHandler } from '../../src/webhooks/index.ts';
import { settled } from '../support/settled.ts';
import { makeHandler, SECRET } from './make-handler.ts';

function incomingPost(): IncomingMessage {
  const headers = { authorization: `Bearer ${SECRET}` };
  const incoming = new IncomingMessage(new Socket());
  return Object.assign(incoming, {
    method: 'POST',
    url: '/',
    headers,
    rawHeaders: Object.entries(headers).flat(),
  });
}

/** A request whose body the host has read. */
async function readPost(): Promise<IncomingMessage> {
  const incoming = incomingPost();
  incoming.push(null);
  incoming.resume();
  await once(incoming, 'end');
  return incoming;
}

test('a reader that cancels with more to come → the rest flows by, and nothing is put into the closed stream', async () => {
  const incoming = incomingPost();
  const read: unknown[] = [];
  const receive = toNodeHandler(async (request) => {
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
  await receive(incoming, new ServerResponse(incoming));
  expect(read).toEqual(['first', { done: true, value: undefined }]);
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
  const incoming = await readPost();
  const response = new ServerResponse(incoming);
  await toNodeHandler(makeHandler({ maxBodyBytes: 100 }))(Object.assign(incoming, { body }), response);
  expect(response.statusCode).toBe(status);
});

test('a body that nobody reads → left alone until the response', async () => {
  const incoming = incomingPost();
  incoming.push('first');
  let isTouched: boolean | undefined;
  const receive = toNodeHandler(async () => {
    await settled();
    isTouched = incoming.readableDidRead;
    return new Response();
  });
  await receive(incoming, new ServerResponse(incoming));
  expect(isTouched).toBe(false);
});

test('a connection that closes before the handler reads → its reader is told', async () => {
  const incoming = incomingPost();
  let reading: Promise<string> | undefined;
  const receive = toNodeHandler(async (request) => {
    incoming.destroy();
    await once(incoming, 'close');
    reading = request.text();
    await reading.catch(() => {});
    return new Response();
  });
  await receive(incoming, new ServerResponse(incoming));
  await expect(reading).rejects.toThrow('closed before the body was complete');
});

test('an answer with headers → sent with them and no others', async () => {
  const incoming = Object.assign(incomingPost(), { method: 'GET' });
  const response = new ServerResponse(incoming);
  await toNodeHandler(makeHandler())(incoming, response);
  expect(response.getHeaders()).toEqual({ 'content-type': 'application/json', allow: 'HEAD, POST' });
});

test('a request and a reply of Fastify → the reply is hijacked before the answer', async () => {
  const raw = incomingPost();
  const hijack = vi.fn();
  const receive = toNodeHandler(async () => {
    expect(hijack).toHaveBeenCalledOnce();
    return new Response(null, { status: 204 });
  });
  const response = new ServerResponse(raw);
  await receive({ raw }, { raw: response, hijack });
  expect(response.statusCode).toBe(204);
});

describe('a host that has answered meanwhile, as one with a timeout does', () => {
  test('the handler answers → its answer is dropped, and nothing goes to next', async () => {
    const incoming = incomingPost();
    const response = new ServerResponse(incoming);
    const next = vi.fn();
    const receive = toNodeHandler(async () => {
      response.writeHead(504).end();
      return new Response(null, { headers: { 'x-late': '1' } });
    });
    await receive(incoming, response, next);
    expect(response.statusCode).toBe(504);
    expect(next).not.toHaveBeenCalled();
  });

  test('the handler throws, no next → the listener does not', async () => {
    const incoming = incomingPost();
    const response = new ServerResponse(incoming);
    const receive = toNodeHandler(async () => {
      response.writeHead(504).end();
      throw new Error('too late');
    });
    await expect(receive(incoming, response)).resolves.toBeUndefined();
    expect(response.statusCode).toBe(504);
  });
});

test('a sender that has gone, and a body that the host has read → handled all the same', async () => {
  const incoming = await readPost();
  const response = new ServerResponse(incoming);
  response.destroy();
  const bodies: unknown[] = [];
  const receive = toNodeHandler(async (request) => {
    bodies.push(await request.text());
    return new Response();
  });
  await receive(Object.assign(incoming, { body: '{"trackings":[]}' }), response);
  expect(bodies).toEqual(['{"trackings":[]}']);
});
