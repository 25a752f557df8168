import { describe, expect, test, vi } from 'vitest';
import { API_KEY, catchRejection, makeClient } from '../../support/make-client.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';

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

describe('a body that is too long', () => {
  const headers = { 'x-request-id': `req-${API_KEY}` };
  const long = (status: number, body: unknown = { data: ['x'.repeat(200)] }) => ({ status, body, headers });

  test('of a success → ResponseValidationError with its beginning, no second request', async () => {
    const { client, requests } = makeClient(long(200), { maxResponseBytes: 100 });
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({
      name: 'ResponseValidationError',
      message:
        'GET https://api.example.test/public/v1/couriers responded with more than 100 bytes; if that is expected, raise `maxResponseBytes`',
      issues: [{ path: [], code: 'too_big' }],
      status: 200,
      requestId: 'req-[redacted]',
    });
    expect(Object(error).body).toBe(JSON.stringify(long(200).body).slice(0, 100));
    expect(requests).toHaveLength(1);
  });

  test.each([
    [503, 'ServerError', 3],
    [401, 'AuthenticationError', 1],
    [302, 'ApiError', 1],
  ])('of a %d → %s after %d requests, with the beginning of the body', async (status, name, count) => {
    const body = 'y'.repeat(5_000);
    const retry = { retries: 2, maxBackoffMs: 1 };
    const { client, requests } = makeClient(long(status, body), { maxResponseBytes: 2_000, retry });
    const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(error).toMatchObject({ name, status, requestId: 'req-[redacted]', attempts: count });
    expect(Object(error).body).toBe('y'.repeat(2_000));
    expect(requests).toHaveLength(count);
  });

  test('hooks → onResponse, because the status is known', async () => {
    const seen: string[] = [];
    const { client } = makeClient(long(200), {
      maxResponseBytes: 100,
      hooks: {
        onResponse: ({ status }) => seen.push(`response ${status}`),
        onError: () => seen.push('error'),
      },
    });
    await catchRejection(client.couriers.list());
    expect(seen).toEqual(['response 200']);
  });
});
