import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { type WebhookHandlerOptions, WebhookParseError } from '../../src/webhooks/index.ts';
import { buildStream, makeHandler, post, SECRET, webhook } from './make-handler.ts';
import { E1, proofOfDelivery } from './support.ts';

const TEXT = JSON.stringify(E1);
const LIMIT = 2 * 2 ** 20;

/** Receives one request: its status, the events that were handled, and the errors that `onRefused` got. */
async function receive(request: Request, options: Partial<WebhookHandlerOptions> = {}) {
  const handled: unknown[] = [];
  const refusals: unknown[] = [];
  const onEvent = (event: { eventId?: unknown }) => handled.push(event.eventId);
  const onRefused = (error: unknown) => refusals.push(error);
  const { status } = await makeHandler({ onEvent, onRefused, ...options })(request);
  return { status, handled, refusals };
}

function spaces(length: number): Uint8Array {
  return new Uint8Array(length).fill(0x20);
}

describe('headers of the body', () => {
  test.each([
    ['application/json', 200],
    ['application/json ; charset=utf-8', 200],
    ['application/vnd.tracking+json', 200],
    ['text/json', 200],
    ['text/plain', 415],
    ['application/jsonx', 415],
    ['x-application/json', 415],
  ])('content type %s → %i', async (contentType, status) => {
    expect((await receive(post(TEXT, { 'content-type': contentType }))).status).toBe(status);
  });

  test('no content type → 200', async () => {
    const request = post(TEXT);
    request.headers.delete('content-type');
    expect((await receive(request)).status).toBe(200);
  });

  test.each([
    ['identity', 200],
    ['gzip', 415],
    ['identity, gzip', 415],
  ])('content encoding %s → %i', async (encoding, status) => {
    expect((await receive(post(TEXT, { 'content-encoding': encoding }))).status).toBe(status);
  });

  test('a compressed body → 415 with the encoding to use', async () => {
    const response = await makeHandler()(post(TEXT, { 'content-encoding': 'gzip' }));
    expect([response.status, response.headers.get('accept-encoding')]).toEqual([415, 'identity']);
  });
});

describe('content of the body', () => {
  test('a body that is cut off → 400, onRefused gets WebhookParseError', async () => {
    expect(await receive(post('{"trackings":['))).toEqual({
      status: 400,
      handled: [],
      refusals: [expect.any(WebhookParseError)],
    });
  });

  test('no body → 400, onRefused gets an error that names the empty body', async () => {
    const headers = { authorization: `Bearer ${SECRET}` };
    const result = await receive(new Request('https://app.example.test/', { method: 'POST', headers }));
    expect(result).toMatchObject({
      status: 400,
      refusals: [{ message: expect.stringContaining('(an empty string) is not valid JSON') }],
    });
  });

  test('chunks that split a character → read as one text', async () => {
    const bytes = new TextEncoder().encode(TEXT.replace('"e1"', '"é"'));
    const split = bytes.indexOf(0xc3) + 1;
    const body = buildStream(bytes.subarray(0, split), bytes.subarray(split));
    expect(await receive(post(body))).toMatchObject({ status: 200, handled: ['é'] });
  });

  test('a body that breaks off → 400, nothing handled, onRefused gets the reason', async () => {
    const cause = new Error('socket hang up');
    const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(cause) });
    expect(await receive(post(broken))).toMatchObject({
      status: 400,
      handled: [],
      refusals: [{ name: 'WebhookParseError', cause }],
    });
  });

  test('a request whose body was already read → 500, onRefused is called', async () => {
    const request = webhook('e1');
    await request.text();
    expect(await receive(request)).toMatchObject({
      status: 500,
      refusals: [expect.any(ConfigurationError)],
    });
  });
});

describe('length of the body', () => {
  test('a declared length above the limit → 413, the body is not read', async () => {
    const request = post(TEXT, { 'content-length': String(LIMIT + 1) });
    expect((await receive(request)).status).toBe(413);
    expect(request.bodyUsed).toBe(false);
  });

  test.each([
    ['2 MiB', LIMIT, undefined, 200],
    ['2 MiB, declared', LIMIT, String(LIMIT), 200],
    ['2 MiB + 1 byte, declared as 10 bytes', LIMIT + 1, '10', 413],
  ])('%s → $3', async (_title, length, declared, status) => {
    const request = post(buildStream(TEXT, spaces(length - TEXT.length)), { 'content-length': declared });
    expect(await receive(request)).toMatchObject({ status, handled: status === 200 ? ['e1'] : [] });
  });

  test('an event without id, nested 10,000 levels deep → 422, and the events beside it are handled', async () => {
    const deep = '['.repeat(10_000) + ']'.repeat(10_000);
    const body = `{"trackerId":"t1","events":[{"eventId":"e1"},{"deep":${deep}},{"eventId":"e2"}]}`;
    const result = await receive(post(body), { onError: () => {} });
    expect(result).toMatchObject({ status: 422, handled: ['e1', 'e2'] });
  });

  test('a proof of delivery, nested 10,000 levels deep → 422, and no callback is called', async () => {
    const deep = '['.repeat(10_000) + ']'.repeat(10_000);
    const body = JSON.stringify(proofOfDelivery('t1')).replace('"link"', deep);
    const onProofOfDelivery = vi.fn();
    const result = await receive(post(body), { onProofOfDelivery, onError: () => {} });
    expect([result.status, onProofOfDelivery.mock.calls]).toEqual([422, []]);
  });

  test('an endless body → 413 after maxBodyBytes', async () => {
    const pull = vi.fn((controller: ReadableStreamDefaultController) => controller.enqueue(spaces(1_000)));
    const request = post(new ReadableStream<Uint8Array>({ pull }));
    expect((await receive(request, { maxBodyBytes: 70_000 })).status).toBe(413);
    expect(pull.mock.calls.length).toBeLessThan(80);
    // The rest of the stream is left to the host, to cancel or to read.
    expect(request.body?.locked).toBe(false);
  });
});
