import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { createWebhookHandler } from '../../src/webhooks/index.ts';
import { HOSTS, type Host, MIB } from './webhook-hosts.ts';
import { buildPayload, connectClient, SECRET, type Sent } from './webhook-loopback.ts';

// Hono replaces these classes for the whole process, and srvx, which h3 2 uses, does not know the other `Response`.
const { Request, Response } = globalThis;
afterAll(() => {
  Object.defineProperty(globalThis, 'Request', { value: Request });
  Object.defineProperty(globalThis, 'Response', { value: Response });
});

async function receiver({ start }: Host) {
  const handled: unknown[] = [];
  const webhooks = createWebhookHandler({
    secret: SECRET,
    onError: () => {},
    onRefused: () => {},
    onEvent: ({ eventId }) => handled.push(eventId),
  });
  const { send } = connectClient(await start(webhooks));
  return { send, handled };
}

describe.each(HOSTS)('$name', (host) => {
  test.each([
    ['with a declared length', true],
    ['in chunks that split characters', false],
  ])('a webhook %s → 200 with JSON, handled', async (_title, isDeclared) => {
    const { send, handled } = await receiver(host);
    const bytes = Buffer.from(buildPayload('é1'));
    const count = Math.ceil(bytes.length / 7);
    const chunks = Array.from({ length: count }, (_, index) => bytes.subarray(index * 7, index * 7 + 7));
    const declared = { chunks: [bytes], headers: { 'content-length': String(bytes.length) } };
    const response = await send(isDeclared ? declared : { chunks });
    expect([response.status, JSON.parse(response.text)]).toEqual([200, { success: true, outcome: 'done' }]);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(handled).toEqual(['é1']);
  });

  test('HEAD → 200, empty', async () => {
    const { send } = await receiver(host);
    const response = await send({ method: 'HEAD', headers: { authorization: '' } });
    expect([response.status, response.text]).toEqual([200, '']);
  });

  // The body begins with JSON, because a host with a parser would refuse it as malformed otherwise.
  const long = Buffer.alloc(10 * MIB + 1, ' ');
  long.write(buildPayload('e1'));
  test.each<[string, Sent, number]>([
    ['malformed JSON', { chunks: ['{"trackings":['] }, 400],
    ['PUT', { method: 'PUT', chunks: [buildPayload('e1')] }, 405],
    [
      'a wrong bearer and a long body',
      { headers: { authorization: 'Bearer wrong' }, chunks: [long.subarray(0, 2 * MIB)] },
      401,
    ],
    [
      '10 MiB + 1 byte, with its true length',
      { chunks: [long], headers: { 'content-length': String(long.length) } },
      413,
    ],
  ])('%s → refused, and the connection serves the next request', async (_title, sent, status) => {
    const { send, handled } = await receiver(host);
    expect((await send(sent)).status).toBe(status);
    expect((await send({ chunks: [buildPayload('e2')] })).status).toBe(200);
    expect(handled).toEqual(['e2']);
  });
});

// Without hosts that parse: they read the whole body first, so their own rules apply.
describe.each(HOSTS.filter(({ parses }) => !parses))('$name, which does not read the body', (host) => {
  test('gzip → 415', async () => {
    const { send, handled } = await receiver(host);
    const headers = { 'content-encoding': 'gzip' };
    expect((await send({ headers, chunks: [gzipSync(buildPayload('e1'))] })).status).toBe(415);
    expect(handled).toEqual([]);
  });

  test('10 MiB + 1 byte in chunks → 413, and the next request is served', async () => {
    const { send, handled } = await receiver(host);
    const chunks = [buildPayload('e1'), ...Array.from({ length: 11 }, () => Buffer.alloc(MIB, ' '))];
    expect((await send({ chunks })).status).toBe(413);
    // Hono closes a connection whose body was read in part.
    expect((await send({ chunks: [buildPayload('e2')], fresh: true })).status).toBe(200);
    expect(handled).toEqual(['e2']);
  });
});
