import { describe, expect, test, vi } from 'vitest';
import { API_KEY, catchRejection, makeClient } from '../support/make-client.ts';

const TEXT = '{"data":[]}';
const TOO_LONG = expect.objectContaining({ name: 'ResponseValidationError' });

/** Reads a response with at most `maxResponseBytes`; returns the couriers or the error. */
function read(response: Response, maxResponseBytes = TEXT.length): Promise<unknown> {
  const { client } = makeClient(() => response, { maxResponseBytes, retry: false });
  return client.couriers.list().catch((error: unknown) => error);
}

/** A body of these chunks, and whether it was cancelled. */
function makeStream(...chunks: readonly (string | Uint8Array)[]) {
  const cancel = vi.fn();
  const rest = chunks.map((chunk) => (typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk));
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = rest.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
    cancel,
  });
  return { stream, cancel };
}

describe('a stream', () => {
  test('a body of the maximum length → read; one byte more → rejected', async () => {
    expect(await read(new Response(makeStream('{"data":', '[]}').stream))).toEqual([]);
    expect(await read(new Response(makeStream('{"data":', '[]}').stream), TEXT.length - 1)).toEqual(TOO_LONG);
  });

  test('a body that is too long → the rest is not read', async () => {
    const { stream, cancel } = makeStream('{"data":', '[', ']}');
    expect(await read(new Response(stream), 8)).toEqual(TOO_LONG);
    expect(cancel).toHaveBeenCalledOnce();
  });

  test('a character cut in two, and a byte order mark → bytes are counted, and the text is whole', async () => {
    const bytes = new TextEncoder().encode('\ufeff{"data":[{"courierCode":"ä","courierName":"x"}]}');
    const cut = bytes.indexOf(0xa4);
    const chunks = [bytes.slice(0, cut), bytes.slice(cut)];
    expect(await read(new Response(makeStream(...chunks).stream), bytes.length)).toMatchObject([
      { courierCode: 'ä' },
    ]);
    expect(await read(new Response(makeStream(...chunks).stream), bytes.length - 1)).toEqual(TOO_LONG);
  });
});

test('a stubbed response without a stream → read with text()', async () => {
  // A consumer's stub of `fetch` may return such a response.
  const stub = { ok: true, status: 200, headers: new Headers(), text: async () => TEXT } as Response;
  expect(await read(stub)).toEqual([]);
  expect(await read(stub, 10)).toEqual(TOO_LONG);
});

test.each([200, 429, 500])('status %d → ResponseValidationError, no second request', async (status) => {
  const headers = { 'x-request-id': `req-${API_KEY}` };
  const response = { status, body: { data: ['x'.repeat(200)] }, headers };
  const { client, requests } = makeClient(response, { maxResponseBytes: 100 });
  expect(await catchRejection(client.couriers.list())).toMatchObject({
    name: 'ResponseValidationError',
    message:
      'GET https://api.example.test/public/v1/couriers responded with more than 100 bytes; if that is expected, raise `maxResponseBytes`',
    issues: [{ path: [], code: 'too_big' }],
    status,
    requestId: 'req-[redacted]',
  });
  expect(requests).toHaveLength(1);
});
