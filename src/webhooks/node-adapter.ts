import type { IncomingMessage, ServerResponse } from 'node:http';
import { isBytes } from '../common/foreign.ts';
import { ConfigurationError } from '../errors.ts';
import { keepParsedBody } from './request.ts';

/**
 * A request of `node:http`, Express or Koa; a body parser may have added `body` and `rawBody`. It is not an interface, because
 * some parsers declare `rawBody` on `IncomingMessage` with another type.
 */
type NodeRequest = IncomingMessage & {
  body?: unknown;
  /** The body as it came; used instead of `body`. */
  rawBody?: unknown;
  /** The path as it was sent. In `url`, Express leaves out the path at which a handler is mounted. */
  originalUrl?: string;
};

interface FastifyLikeRequest {
  readonly raw: IncomingMessage;
  readonly body?: unknown;
  readonly rawBody?: unknown;
}

interface FastifyLikeReply {
  readonly raw: ServerResponse;
  hijack(): unknown;
  getHeaders?(): Readonly<Record<string, number | string | readonly string[] | undefined>>;
}

type Next = (error?: unknown) => void;

/** A request listener of `node:http`, a handler of Express, and a handler of Fastify in one. */
export interface NodeHandler {
  /** Returns no promise: h3 waits for the promise of a middleware, and then ignores an error that went to `next`. */
  (request: NodeRequest, response: ServerResponse, next: Next): void;
  (request: NodeRequest, response: ServerResponse): Promise<void>;
  (request: FastifyLikeRequest, reply: FastifyLikeReply): Promise<void>;
}

/** The web-standard `Request` rejects these methods. */
const FORBIDDEN_METHODS = new Set(['CONNECT', 'TRACE', 'TRACK']);

/**
 * Adapts a handler of web-standard requests to `node:http`, Express, Fastify and Koa. If the body is parsed already
 * (`express.json()`, Fastify's own parser), the parser's length limit and its responses to broken bodies apply first. If it was
 * read and not kept, reading the request fails with a `ConfigurationError`, which also goes to `next`.
 *
 * @param handler - usually from `createWebhookHandler`
 * @returns a listener or route handler; an error of `handler` goes to `next`, or becomes a 500. It returns no promise if it is called
 * with `next`
 * @example
 * app.all('/webhooks', toNodeHandler(webhooks)); // Express and Fastify
 * createServer(toNodeHandler(webhooks)).listen(3000); // node:http
 */
export function toNodeHandler(handler: (request: Request) => Promise<Response>): NodeHandler {
  async function answer(
    incoming: NodeRequest | FastifyLikeRequest,
    reply: ServerResponse | FastifyLikeReply,
    next?: Next,
  ): Promise<void> {
    const parsed = incoming.rawBody ?? incoming.body;
    const { request, response } = unwrap(incoming, reply);
    try {
      await serve(handler, request, parsed, response, next);
    } catch (error) {
      if (next !== undefined) next(error);
      else if (!response.headersSent) response.writeHead(500, { connection: 'close' }).end();
    }
  }

  function listener(request: NodeRequest, response: ServerResponse, next: Next): void;
  function listener(
    request: NodeRequest | FastifyLikeRequest,
    reply: ServerResponse | FastifyLikeReply,
  ): Promise<void>;
  function listener(
    request: NodeRequest | FastifyLikeRequest,
    reply: ServerResponse | FastifyLikeReply,
    next?: Next,
  ): Promise<void> | undefined {
    const answered = answer(request, reply, next);
    return next === undefined ? answered : undefined;
  }

  return listener;
}

/** Only the reply identifies Fastify: a body parser of Express may set `raw` on the request. */
function unwrap(
  incoming: NodeRequest | FastifyLikeRequest,
  reply: ServerResponse | FastifyLikeReply,
): { readonly request: NodeRequest; readonly response: ServerResponse } {
  if (!('hijack' in reply)) {
    // Safe cast: every overload pairs a `ServerResponse` with a request of `node:http`.
    return { request: incoming as NodeRequest, response: reply };
  }
  reply.hijack();
  // Keep the headers that hooks have set, such as those of CORS. Fastify itself sends no header after `hijack`.
  for (const [name, value = ''] of Object.entries(reply.getHeaders?.() ?? {}))
    reply.raw.setHeader(name, value);
  // Safe cast: Fastify's reply comes with Fastify's request.
  return { request: (incoming as FastifyLikeRequest).raw, response: reply.raw };
}

async function serve(
  handler: (request: Request) => Promise<Response>,
  incoming: NodeRequest,
  parsed: unknown,
  outgoing: ServerResponse,
  next: Next | undefined,
): Promise<void> {
  if (FORBIDDEN_METHODS.has(incoming.method ?? '')) {
    await send(
      outgoing,
      new Response(null, { status: 405, headers: { allow: 'HEAD, POST', connection: 'close' } }),
    );
    return;
  }
  // The sender has closed the connection, so the missing body is not an error of the framework or of the app.
  if (outgoing.destroyed && parsed === undefined) return;
  let misread: Error | undefined;
  const request = toWebRequest(incoming, parsed, (error) => {
    misread = error;
  });
  const response = await handler(request);
  if (misread !== undefined && next !== undefined) return next(misread);
  await send(outgoing, response);
  // Cancelling drains the rest of the body, so that the connection can serve its next request.
  if (request.body?.locked === false) await request.body.cancel();
}

/** @param onMisread - called if the handler reads a body that was read before and not kept */
function toWebRequest(
  incoming: NodeRequest,
  parsed: unknown,
  onMisread: (error: ConfigurationError) => void,
): Request {
  const method = incoming.method ?? 'GET';
  const url = toUrl(incoming);
  const headers = toWebHeaders(incoming);
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers });
  const isRead = incoming.readableDidRead || !incoming.readable;
  const streamRead = () => (parsed === undefined ? streamMisread(onMisread) : streamParsedBody(parsed));
  // `duplex` is required for a stream and missing in the type.
  const init: RequestInit & { duplex: 'half' } = {
    method,
    headers,
    body: isRead ? streamRead() : streamBody(incoming),
    duplex: 'half',
  };
  const request = new Request(url, init);
  if (isRead && parsed !== undefined) keepParsedBody(request, parsed);
  return request;
}

/** Reads `headers`, because some hosts leave `rawHeaders` empty, and because middleware changes `headers`. */
function toWebHeaders({ headers }: IncomingMessage): Headers {
  const webHeaders = new Headers();
  for (const [name, value = []] of Object.entries(headers)) {
    for (const line of [value].flat()) {
      try {
        webHeaders.append(name, line);
      } catch {
        // HTTP/2 has names such as `:path`, and middleware can set values that no header can contain.
      }
    }
  }
  return webHeaders;
}

function toUrl({ originalUrl, url = '/', headers }: NodeRequest): URL {
  const target = originalUrl ?? url;
  let webUrl: URL;
  try {
    // If the text were resolved against a base URL, the first part of `//a/b` would become the host.
    webUrl = new URL(target.startsWith('/') ? `http://localhost${target}` : target, 'http://localhost');
  } catch {
    webUrl = new URL('http://localhost');
  }
  // A `Request` refuses a URL with credentials. An invalid host is ignored.
  webUrl.username = '';
  webUrl.password = '';
  webUrl.host = headers.host ?? String(headers[':authority'] ?? 'localhost');
  return webUrl;
}

/** The body of a request that was read before, and whose text is lost. */
function streamMisread(onMisread: (error: ConfigurationError) => void): ReadableStream<Uint8Array> {
  const pull = () => {
    const error = new ConfigurationError(
      'The request body was read before the webhook handler was called; call the handler before the code that reads bodies, or let that code set `body` or `rawBody` on the request of Node (with Koa: `ctx.req.body = ctx.request.body`)',
    );
    onMisread(error);
    throw error;
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

/** Streams a parsed body to handlers that read the request themselves; serializes it only when it is read. */
function streamParsedBody(parsed: unknown): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      pull(controller) {
        const isText = typeof parsed === 'string';
        if (isBytes(parsed)) controller.enqueue(parsed);
        else controller.enqueue(Buffer.from(isText ? parsed : JSON.stringify(parsed)));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}

async function send(outgoing: ServerResponse, response: Response): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  if (outgoing.headersSent || outgoing.destroyed) return;
  outgoing.statusCode = response.status;
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  // `setHeader` in the loop above keeps only the last of several cookies.
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies);
  outgoing.end(body);
}

/** Unlike `Readable.toWeb`, leaves the request alone until someone reads, and keeps the connection open for the response. */
function streamBody(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = incoming.iterator({ destroyOnReturn: false });
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => void drain(chunks).catch(() => {}),
    },
    { highWaterMark: 0 },
  );
}

async function drain(chunks: AsyncIterator<unknown>): Promise<void> {
  let isDone: boolean | undefined = false;
  while (!isDone) isDone = (await chunks.next()).done;
}
