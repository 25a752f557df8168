import { describe, expect, test, vi } from 'vitest';
import { readBody } from '../../src/http/send.ts';
import { API_KEY, makeClient, rejectionOf } from '../support/make-client.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** A body that comes in these chunks; tells whether it was given up. */
function streamOf(...chunks: readonly string[]) {
  const cancel = vi.fn();
  let next = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = chunks[next];
      next += 1;
      if (chunk === undefined) controller.close();
      else controller.enqueue(bytesOf(chunk));
    },
    cancel,
  });
  return { stream, cancel };
}

describe('readBody', () => {
  test.each([
    [5, 'abcde'],
    [4, undefined],
  ])('5 bytes of unknown length, %d allowed → %j', async (maxBytes, text) => {
    expect(await readBody(new Response(streamOf('abc', 'de').stream), maxBytes)).toBe(text);
  });

  test('too many bytes → the rest is not read', async () => {
    const { stream, cancel } = streamOf('abc', 'def', 'ghi');
    expect(await readBody(new Response(stream), 4)).toBeUndefined();
    expect(cancel).toHaveBeenCalledOnce();
  });

  test('bytes, not characters → counted', async () => {
    expect(await readBody(new Response(streamOf('ä').stream), 1)).toBeUndefined();
    expect(await readBody(new Response(streamOf('ä').stream), 2)).toBe('ä');
  });

  test('a character cut in two, and a byte order mark → the text as `text()` reads it', async () => {
    const bytes = bytesOf('\ufeffä');
    const chunks = [bytes.slice(0, 4), bytes.slice(4)];
    const pull = (controller: ReadableStreamDefaultController) => {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    };
    expect(await readBody(new Response(new ReadableStream({ pull })), 10)).toBe('ä');
  });

  test('a length that is declared and too large → not read at all', async () => {
    const { stream, cancel } = streamOf('abcde');
    const response = new Response(stream, { headers: { 'content-length': '5' } });
    expect(await readBody(response, 4)).toBeUndefined();
    expect(cancel).toHaveBeenCalledOnce();
  });

  test('a length that is declared and small → read in one go', async () => {
    const response = new Response('abcde', { headers: { 'content-length': '5' } });
    const text = vi.spyOn(response, 'text');
    expect(await readBody(response, 5)).toBe('abcde');
    expect(text).toHaveBeenCalledOnce();
  });

  test('a length that is declared for a compressed body → counted all the same', async () => {
    const headers = { 'content-length': '1', 'content-encoding': 'gzip' };
    expect(await readBody(new Response('abcde', { headers }), 4)).toBeUndefined();
  });

  test.each([
    [5, 'abcde'],
    [4, undefined],
  ])('a stub without a stream, %d allowed → %j', async (maxBytes, expected) => {
    // What a consumer's own stub of `fetch` may respond with.
    const stub = { headers: new Headers(), text: async () => 'abcde' } as Response;
    expect(await readBody(stub, maxBytes)).toBe(expected);
    stub.headers.set('content-length', '5');
    expect(await readBody(stub, maxBytes)).toBe(expected);
  });
});

describe('a response longer than maxResponseBytes', () => {
  test.each([200, 429, 500])('status %d → ResponseValidationError, never asked for again', async (status) => {
    const headers = { 'x-request-id': `req-${API_KEY}` };
    const answer = { status, body: { data: ['x'.repeat(200)] }, headers };
    const { client, requests } = makeClient(answer, { maxResponseBytes: 100 });
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      name: 'ResponseValidationError',
      message:
        'Expected GET https://api.example.test/public/v1/couriers to respond with at most 100 bytes (`maxResponseBytes`), got more',
      issues: [{ path: [], code: 'too_big' }],
      status,
      requestId: 'req-[redacted]',
    });
    expect(requests).toHaveLength(1);
  });
});
