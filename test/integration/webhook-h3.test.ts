import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createApp, eventHandler, fromNodeMiddleware, readRawBody, toNodeListener } from 'h3';
import { fromNodeHandler, H3, type NodeMiddleware, toNodeHandler as toListener } from 'h3-v2';
import { describe, expect, test, vi } from 'vitest';
import { createWebhookHandler, type NodeHandler, toNodeHandler } from '../../src/webhooks/index.ts';
import { buildPayload, connectClient, listening, SECRET } from './webhook-loopback.ts';

interface Host {
  readonly name: string;
  /** Serves the handler, after a middleware that reads the body and keeps it to itself if `reads` is true. */
  serve(handler: NodeHandler, reads: boolean): RequestListener;
}

const HOSTS: readonly Host[] = [
  {
    name: 'h3 1',
    serve: (handler, reads) => {
      const app = createApp();
      if (reads) app.use(eventHandler(async (event) => void (await readRawBody(event))));
      return toNodeListener(app.use('/webhooks', fromNodeMiddleware(handler)));
    },
  },
  {
    name: 'h3 2',
    serve: (handler, reads) => {
      // `silent`, because h3 writes the error to the console, too.
      const app = new H3({ silent: true });
      if (reads) app.use(async (event) => void (await event.req.text()));
      // Sound: the server of this test speaks HTTP/1 only, and its handlers fail with errors only.
      const listener: NodeMiddleware = (request, response, next) =>
        handler(request as IncomingMessage, response as ServerResponse, (error) => next(error as Error));
      return toListener(app.all('/webhooks', fromNodeHandler(listener)));
    },
  },
];

describe.each(HOSTS)('$name', ({ serve }) => {
  async function start(handler: NodeHandler, reads = false) {
    return connectClient(await listening(createServer(serve(handler, reads))));
  }

  test('webhooks → 200, handled', async () => {
    const handled: unknown[] = [];
    const webhooks = createWebhookHandler({
      secret: SECRET,
      onEvent: ({ eventId }) => handled.push(eventId),
    });
    const { send } = await start(toNodeHandler(webhooks));
    for (const id of ['e1', 'e2']) expect((await send({ chunks: [buildPayload(id)] })).status).toBe(200);
    expect(handled).toEqual(['e1', 'e2']);
  });

  test('a body that a middleware has read → 500, and a line in the log', async () => {
    const error = vi.fn();
    const logger = { debug() {}, info() {}, warn() {}, error };
    const webhooks = createWebhookHandler({ secret: SECRET, onEvent() {}, logger });
    const { send } = await start(toNodeHandler(webhooks), true);
    expect((await send({ chunks: [buildPayload('e1')] })).status).toBe(500);
    expect(error).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining('The request body was read before the webhook handler was called'),
      expect.anything(),
    );
  });

  test('another handler that rejects → 500', async () => {
    const { send } = await start(toNodeHandler(() => Promise.reject(new Error('bug'))));
    expect((await send({ chunks: ['{}'] })).status).toBe(500);
  });
});
