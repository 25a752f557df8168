import { createWebhookHandler, type WebhookHandlerOptions } from '../../src/webhooks/index.ts';
import { payload, tracking } from './support.ts';

export const SECRET = 'whsec-1';

/** A handler with a secret, a memory store, and a callback that does nothing. */
export function makeHandler(options: Partial<WebhookHandlerOptions> = {}) {
  return createWebhookHandler({ secret: SECRET, onEvent: () => {}, ...options });
}

/** A request as the service sends it; `undefined` takes a default header away. */
export function post(body: BodyInit | object, headers: Record<string, string | undefined> = {}): Request {
  const isText = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
  const allHeaders = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json', ...headers };
  const kept = Object.entries(allHeaders).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  // `duplex` is required for a stream and missing in the type.
  const init: RequestInit & { duplex: 'half' } = {
    method: 'POST',
    headers: kept,
    body: isText ? (body as BodyInit) : JSON.stringify(body),
    duplex: 'half',
  };
  return new Request('https://app.example.test/webhooks', init);
}

/** The request of a webhook about one tracker. */
export function webhook(...events: Parameters<typeof tracking>[1][]): Request {
  return post(payload(tracking('t1', ...events)));
}

/** A body that comes in chunks, without a declared length. */
export function buildStream(...chunks: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(typeof chunk === 'string' ? encoder.encode(chunk) : chunk);
    },
  });
}
