import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { WebhookParseError } from '../../src/webhooks/index.ts';
import { makeHandler, post, SECRET, streamOf } from './make-handler.ts';
import { payload, tracking } from './support.ts';

describe('body', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json ; charset=utf-8',
    'APPLICATION/JSON',
    'application/vnd.tracking+json',
    'text/json',
    undefined,
  ])('content type %s → 200', async (contentType) => {
    const request = post(JSON.stringify(payload(tracking('t1', 'e1'))), { 'content-type': contentType });
    if (contentType === undefined) request.headers.delete('content-type');
    expect((await makeHandler()(request)).status).toBe(200);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'x-application/json',
  ])('content type %s → 415', async (contentType) => {
    const request = post(JSON.stringify(payload(tracking('t1', 'e1'))), { 'content-type': contentType });
    expect((await makeHandler()(request)).status).toBe(415);
  });

  test.each(['gzip', 'br', 'GZIP', 'identity, gzip'])('content encoding %s → 415', async (encoding) => {
    const request = post(payload(tracking('t1', 'e1')), { 'content-encoding': encoding });
    expect((await makeHandler()(request)).status).toBe(415);
  });

  test('content encoding identity → 200', async () => {
    const request = post(payload(tracking('t1', 'e1')), { 'content-encoding': 'identity' });
    expect((await makeHandler()(request)).status).toBe(200);
  });

  test.each<[string, string | Uint8Array]>([
    ['empty', ''],
    ['cut off', '{"trackings":['],
    ['not JSON', 'trackings=1'],
    ['invalid UTF-8', new Uint8Array([0x22, 0xff, 0x22])],
  ])('body %s → 400, told to onRefused as WebhookParseError', async (_title, body) => {
    const refusals: unknown[] = [];
    const onRefused = (error: unknown) => refusals.push(error);
    expect((await makeHandler({ onRefused })(post(body))).status).toBe(400);
    expect(refusals).toEqual([expect.any(WebhookParseError)]);
  });

  test('no body at all → 400, told to onRefused as an empty one', async () => {
    const refusals: unknown[] = [];
    const request = new Request('https://app.example.test/', {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRET}` },
    });
    const handler = makeHandler({ onRefused: (error) => refusals.push(error) });
    expect((await handler(request)).status).toBe(400);
    expect(refusals).toMatchObject([{ message: expect.stringContaining('got an empty string') }]);
  });

  test('byte order mark before the JSON → 200', async () => {
    expect((await makeHandler()(post(`\uFEFF${JSON.stringify(payload(tracking('t1', 'e1')))}`))).status).toBe(
      200,
    );
  });

  test('chunks that split a character → read as one body', async () => {
    const bytes = new TextEncoder().encode(JSON.stringify(payload(tracking('t1', 'é'))));
    const split = bytes.indexOf(0xc3) + 1;
    const ids: unknown[] = [];
    const handler = makeHandler({ onEvent: (event) => ids.push(event.eventId) });
    const response = await handler(post(streamOf(bytes.subarray(0, split), bytes.subarray(split))));
    expect([response.status, ids]).toEqual([200, ['é']]);
  });

  test('declared length above the limit → 413, the body is not read', async () => {
    const request = post(payload(tracking('t1', 'e1')), { 'content-length': String(10 * 2 ** 20 + 1) });
    expect((await makeHandler()(request)).status).toBe(413);
    expect(request.bodyUsed).toBe(false);
  });

  test.each([0, 70_000])('a declared length of the very limit, with %i spaces → 200', async (spaces) => {
    const text = JSON.stringify(payload(tracking('t1', 'e1'))) + ' '.repeat(spaces);
    const request = post(text, { 'content-length': String(text.length) });
    expect((await makeHandler({ maxBodyBytes: text.length })(request)).status).toBe(200);
  });

  test('10 MiB of body → read', async () => {
    const text = JSON.stringify(payload(tracking('t1', 'e1')));
    const padding = new Uint8Array(10 * 2 ** 20 - text.length).fill(0x20);
    expect((await makeHandler()(post(streamOf(text, padding)))).status).toBe(200);
  });

  test('10 MiB + 1 byte of body, no declared length → 413, nothing handled', async () => {
    const handler = vi.fn();
    const text = JSON.stringify(payload(tracking('t1', 'e1')));
    const padding = new Uint8Array(10 * 2 ** 20 - text.length + 1).fill(0x20);
    expect((await makeHandler({ onEvent: handler })(post(streamOf(text, padding)))).status).toBe(413);
    expect(handler).not.toHaveBeenCalled();
  });

  test('10 MiB + 1 byte of body, declared as 10 bytes → 413', async () => {
    const padding = new Uint8Array(10 * 2 ** 20 + 1).fill(0x20);
    const request = post(streamOf(padding), { 'content-length': '10' });
    expect((await makeHandler()(request)).status).toBe(413);
  });

  test.each([
    ['no length', undefined],
    ['a length that is not short', '65537'],
  ])(
    'an endless body that declares %s → 413 after maxBodyBytes, not a full memory',
    async (_title, length) => {
      let sent = 0;
      const endless = new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += 1_000;
          controller.enqueue(new Uint8Array(1_000));
          if (sent > 200_000) controller.close();
        },
      });
      const request = post(endless, { 'content-length': length });
      expect((await makeHandler({ maxBodyBytes: 70_000 })(request)).status).toBe(413);
      expect(sent).toBeLessThan(80_000);
    },
  );

  test('a body that is too long → its stream is left to the host, to cancel or to read', async () => {
    const request = post(streamOf('0123456789'));
    await makeHandler({ maxBodyBytes: 5 })(request);
    expect(request.body?.locked).toBe(false);
  });

  test('a body that breaks off → 400, nothing handled, told to onRefused with the reason', async () => {
    const cause = new Error('socket hang up');
    const refusals: unknown[] = [];
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(cause);
      },
    });
    const handler = vi.fn();
    const onRefused = (error: unknown) => refusals.push(error);
    expect((await makeHandler({ onEvent: handler, onRefused })(post(broken))).status).toBe(400);
    expect(handler).not.toHaveBeenCalled();
    expect(refusals).toMatchObject([{ name: 'WebhookParseError', cause }]);
  });

  test('a request whose body someone read before → 500, told to onRefused', async () => {
    const refusals: unknown[] = [];
    const request = post(payload(tracking('t1', 'e1')));
    await request.text();
    const response = await makeHandler({ onRefused: (error) => refusals.push(error) })(request);
    expect(response.status).toBe(500);
    expect(refusals).toEqual([expect.any(ConfigurationError)]);
  });
});
