import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onAbort } from '../common/abort.ts';
import type { Outcome, RawRequest, Reply } from './service/http.ts';

/** Statuses whose responses carry no body, and for which `Response` rejects one. */
const BODILESS_STATUSES = new Set([204, 205, 304]);

/** Runs a request of the Fetch API, and rejects as `fetch` does when the connection fails. */
export type FetchLike = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export async function toRawRequest(request: Request, basePath?: string): Promise<RawRequest> {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method,
    target: pathname + search,
    headers: request.headers,
    body: await request.text(),
    basePath,
  };
}

/** The headers and half of the body, then nothing until the caller gives up. */
export function toStalledResponse({ status, headers, body }: Reply, signal?: AbortSignal): Response {
  const bytes = new TextEncoder().encode(body);
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.subarray(0, Math.ceil(bytes.length / 2)));
      // One step later: a transport that ends the stream by itself on abort must come first, and then this does nothing.
      const fail = () => controller.error(signal?.reason);
      if (signal !== undefined) onAbort(signal, () => void Promise.resolve().then(fail));
    },
  });
  // The length tells a parser that the body is not over; MSW 3 takes the end of the connection for its end otherwise.
  return new Response(stream, { status, headers: { ...headers, 'content-length': String(bytes.length) } });
}

export function toResponse({ status, headers, body }: Reply): Response {
  return new Response(BODILESS_STATUSES.has(status) ? null : body, { status, headers });
}

function settle(outcome: Outcome, signal: AbortSignal | undefined): Response | Promise<never> {
  if (outcome.kind === 'reset') {
    // As `fetch` of Node when the other side breaks the connection.
    const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
    throw new TypeError('fetch failed', { cause });
  }
  if (outcome.kind === 'silence') return new Promise(() => {});
  return outcome.kind === 'stall' ? toStalledResponse(outcome.reply, signal) : toResponse(outcome.reply);
}

/** Makes a `fetch` that goes straight into the service; under another base than its own the base ends with the version segment. */
export function createFetch(serve: (raw: RawRequest) => Promise<Outcome>, ownBasePath: string): FetchLike {
  return async (input, init) => {
    const request = new Request(input, init);
    // Not `request.signal`: it follows the caller's signal only as long as the garbage collector lets it.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => {
      if (signal !== undefined) onAbort(signal, () => reject(signal.reason));
    });
    const isOwnBase = new URL(request.url).pathname.startsWith(`${ownBasePath}/`);
    const response = toRawRequest(request, isOwnBase ? ownBasePath : undefined)
      .then(serve)
      .then((outcome) => settle(outcome, signal));
    return Promise.race([response, aborted]);
  };
}

/** Options of `fake.listen`. */
export interface ListenOptions {
  /** Port; default 0, any free one. */
  readonly port?: number;
  /** Address to bind; default `127.0.0.1`. */
  readonly host?: string;
  /** Also answers `POST /__fake/events`, `/stop`, `/failures` and `/reset`, for tests in other processes. Default false. */
  readonly control?: boolean;
}

/** A fake service that listens on real HTTP. */
export interface FakeServer extends AsyncDisposable {
  /** Base URL to give to a client, e.g. `http://127.0.0.1:4010/public/v1`. */
  readonly url: string;
  /** Where it listens. */
  readonly port: number;
  /** Stops listening and ends all open connections. */
  close(): Promise<void>;
}

function send(outcome: Outcome, response: ServerResponse): void {
  if (outcome.kind === 'reset') response.socket?.resetAndDestroy();
  if (!('reply' in outcome)) return;
  const { status, headers, body } = outcome.reply;
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...headers, 'content-length': bytes.length });
  if (outcome.kind === 'stall') response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)));
  else response.end(bytes);
}

export async function listen(
  serve: (raw: RawRequest) => Promise<Outcome>,
  basePath: string,
  { port = 0, host = '127.0.0.1' }: Omit<ListenOptions, 'control'> = {},
): Promise<FakeServer> {
  const respond = async (message: IncomingMessage, response: ServerResponse) => {
    const { method = 'GET', url: target = '/', headersDistinct } = message;
    const headers = new Headers();
    for (const [name, values = []] of Object.entries(headersDistinct))
      for (const value of values) headers.append(name, value);
    send(await serve({ method, target, headers, body: await text(message), basePath }), response);
  };
  const server = createServer((message, response) => {
    respond(message, response).catch((error: unknown) => {
      // The caller is gone in the middle of its request, or `latencyMs` of the test threw, which it should see.
      if (message.destroyed && !message.complete) response.destroy();
      else response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  // `address()` is an object for every server that listens on a port.
  const bound = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const hostInUrl = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${hostInUrl}:${bound.port}${basePath}`,
    port: bound.port,
    close,
    [Symbol.asyncDispose]: close,
  };
}
