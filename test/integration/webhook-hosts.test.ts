import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createWebhookHandler, MemoryDedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';
import { HOSTS, type Host, MIB } from './webhook-hosts.ts';
import { makeClient, payloadOf, SECRET } from './webhook-loopback.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function receiver({ start }: Host, handle: (eventId: unknown) => unknown = () => {}) {
  const handled: unknown[] = [];
  const webhooks = createWebhookHandler({
    secret: SECRET,
    inbox: new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} }),
    onEvent: async (event) => {
      await handle(event.eventId);
      handled.push(event.eventId);
    },
  });
  const running = await start(webhooks);
  const client = makeClient(running.port);
  cleanUps.push(
    () => running.close(),
    () => client.close(),
  );
  return { send: client.send, handled };
}

describe.each(HOSTS)('$name', (host) => {
  test('a webhook with a declared length → 200, handled', async () => {
    const { send, handled } = await receiver(host);
    const body = payloadOf('e1');
    const answer = await send({
      chunks: [body],
      headers: { 'content-length': String(Buffer.byteLength(body)) },
    });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { success: true, outcome: 'done' }]);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(handled).toEqual(['e1']);
  });

  test('a webhook in chunks that split characters → 200, handled', async () => {
    const { send, handled } = await receiver(host);
    const bytes = Buffer.from(payloadOf('é1'));
    const chunks = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, index) =>
      bytes.subarray(index * 7, index * 7 + 7),
    );
    expect((await send({ chunks })).status).toBe(200);
    expect(handled).toEqual(['é1']);
  });

  test('the same webhook twice → 200 both times, handled once', async () => {
    const { send, handled } = await receiver(host);
    expect((await send({ chunks: [payloadOf('e1')] })).status).toBe(200);
    expect((await send({ chunks: [payloadOf('e1')] })).status).toBe(200);
    expect(handled).toEqual(['e1']);
  });

  test('a handler that fails once → 500, then 200 for the redelivery', async () => {
    let calls = 0;
    const { send, handled } = await receiver(host, () => {
      calls += 1;
      if (calls === 1) throw new Error('no database');
    });
    expect((await send({ chunks: [payloadOf('e1')] })).status).toBe(500);
    expect((await send({ chunks: [payloadOf('e1')] })).status).toBe(200);
    expect(handled).toEqual(['e1']);
  });

  test('an unknown field nested 20,000 levels deep → 200, handled', async () => {
    const { send, handled } = await receiver(host);
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const body = `{"trackerId":"t1","events":[{"eventId":"e1"}],"deep":${deep}}`;
    expect((await send({ chunks: [body] })).status).toBe(200);
    expect(handled).toEqual(['e1']);
  });

  test('HEAD → 200, empty', async () => {
    const { send } = await receiver(host);
    const answer = await send({ method: 'HEAD', headers: { authorization: '' } });
    expect([answer.status, answer.text]).toEqual([200, '']);
  });

  test('PUT → 405 with Allow, and the connection serves the next request', async () => {
    const { send } = await receiver(host);
    const answer = await send({ method: 'PUT', chunks: [payloadOf('e1')] });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'HEAD, POST']);
    expect((await send({ chunks: [payloadOf('e1')] })).status).toBe(200);
  });

  test('a wrong bearer and a long body → 401, and the next request is served', async () => {
    const { send, handled } = await receiver(host);
    const answer = await send({
      headers: { authorization: 'Bearer wrong' },
      chunks: [payloadOf('e1'), Buffer.alloc(2 * MIB, ' ')],
    });
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    expect((await send({ chunks: [payloadOf('e2')] })).status).toBe(200);
    expect(handled).toEqual(['e2']);
  });

  test('malformed JSON → 400', async () => {
    const { send } = await receiver(host);
    expect((await send({ chunks: ['{"trackings":['] })).status).toBe(400);
  });

  test('10 MiB + 1 byte, with its true length → 413, and the next request is served', async () => {
    const { send, handled } = await receiver(host);
    const body = Buffer.concat([Buffer.from(payloadOf('e1')), Buffer.alloc(10 * MIB, ' ')]).subarray(
      0,
      10 * MIB + 1,
    );
    const answer = await send({ chunks: [body], headers: { 'content-length': String(body.length) } });
    expect(answer.status).toBe(413);
    expect((await send({ chunks: [payloadOf('e2')] })).status).toBe(200);
    expect(handled).toEqual(['e2']);
  });
});

// A host that parses holds the whole body before it calls us, so its own rules come first there.
describe.each(HOSTS.filter(({ parses }) => !parses))('$name, which leaves the body to us', (host) => {
  test('10 MiB + 1 byte in chunks → 413, and the next request is served', async () => {
    const { send, handled } = await receiver(host);
    const chunks = [payloadOf('e1'), ...Array.from({ length: 11 }, () => Buffer.alloc(MIB, ' '))];
    expect((await send({ chunks })).status).toBe(413);
    // Hono closes a connection whose body was read in part.
    expect((await send({ chunks: [payloadOf('e2')], fresh: true })).status).toBe(200);
    expect(handled).toEqual(['e2']);
  });

  test('a byte order mark → 200, handled', async () => {
    const { send, handled } = await receiver(host);
    expect((await send({ chunks: [`\uFEFF${payloadOf('e1')}`] })).status).toBe(200);
    expect(handled).toEqual(['e1']);
  });

  test('invalid UTF-8 → 400', async () => {
    const { send } = await receiver(host);
    const bytes = Buffer.from(payloadOf('e1'));
    bytes[bytes.indexOf(0xc3)] = 0xff;
    expect((await send({ chunks: [bytes] })).status).toBe(400);
  });

  test('gzip → 415', async () => {
    const { send, handled } = await receiver(host);
    const answer = await send({
      headers: { 'content-encoding': 'gzip' },
      chunks: [gzipSync(payloadOf('e1'))],
    });
    expect(answer.status).toBe(415);
    expect(handled).toEqual([]);
  });

  test('content type text/plain → 415', async () => {
    const { send } = await receiver(host);
    expect(
      (await send({ headers: { 'content-type': 'text/plain' }, chunks: [payloadOf('e1')] })).status,
    ).toBe(415);
  });

  test('an empty body → 400', async () => {
    const { send } = await receiver(host);
    expect((await send({})).status).toBe(400);
  });
});
