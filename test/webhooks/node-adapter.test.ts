import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { toNodeHandler } from '../../src/webhooks/index.ts';
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

test.each<[string, unknown]>([
  ['text', 'é'.repeat(51)],
  ['bytes', new Uint8Array(101)],
])('101 bytes and more that the host has read as %s, no declared length → 413', async (_title, body) => {
  const incoming = incomingPost();
  incoming.push(null);
  incoming.resume();
  await once(incoming, 'end');
  const response = new ServerResponse(incoming);
  await toNodeHandler(makeHandler({ maxBodyBytes: 100 }))(Object.assign(incoming, { body }), response);
  expect(response.statusCode).toBe(413);
});

test('a sender that has gone, and a body that the host has read → handled all the same', async () => {
  const incoming = incomingPost();
  incoming.push(null);
  incoming.resume();
  await once(incoming, 'end');
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
