import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onAbort } from '../common/abort.ts';
import type { FakeRequest, FakeResponse, Outcome } from './service/http.ts';

/** `Response` throws when a response of one of these statuses has a body. */
const BODILESS_STATUSES = new Set([204, 205, 304]);

/** A `fetch` function. */
export type FetchLike = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export async function toFakeRequest(request: Request, basePath?: string): Promise<FakeRequest> {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method,
    target: pathname + search,
    headers: request.headers,
    body: await request.text(),
    basePath,
  };
}

/** Sends the headers and half of the body, then nothing until the caller gives up. */
export function toStalledResponse({ status, headers, body }: FakeResponse, signal?: AbortSignal): Response {
  const bytes = new TextEncoder().encode(body);
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.subarray(0, Math.ceil(bytes.length / 2)));
      // Some transports end the stream on abort themselves. They must come first, so this waits for a microtask.
      const fail = () => controller.error(signal?.reason);
      onAbort(signal, () => void Promise.resolve().then(fail));
    },
  });
  // Without a length, MSW 3 takes the end of the connection for the end of the body.
  return new Response(stream, { status, headers: { ...headers, 'content-length': String(bytes.length) } });
}

export function toResponse({ status, headers, body }: FakeResponse): Response {
  return new Response(BODILESS_STATUSES.has(status) ? null : body, { status, headers });
}

function perform(outcome: Outcome, signal: AbortSignal | undefined): Response | Promise<never> {
  if (outcome.kind === 'stall') return toStalledResponse(outcome.response, signal);
  if (outcome.kind === 'response') return toResponse(outcome.response);
  if (outcome.kind === 'reset') {
    // The same error as that of Node's `fetch` when the other side breaks the connection.
    const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
    throw new TypeError('fetch failed', { cause });
  }
  return new Promise(() => {});
}

/** Creates a `fetch` that calls the service directly, below its own base path or any path that ends with a version. */
export function createFetch(
  serve: (request: FakeRequest) => Promise<Outcome>,
  ownBasePath: string,
): FetchLike {
  return async (input, init) => {
    const request = new Request(input, init);
    // Not `request.signal`, which stops following the caller's signal once the request is garbage.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => {
      onAbort(signal, () => reject(signal?.reason));
    });
    const isOwnBase = new URL(request.url).pathname.startsWith(`${ownBasePath}/`);
    const response = toFakeRequest(request, isOwnBase ? ownBasePath : undefined)
      .then(serve)
      .then((outcome) => perform(outcome, signal));
    return Promise.race([response, aborted]);
  };
}

/** Options of `fake.listen`. */
export interface ListenOptions {
  /** Port; default 0, any free one. */
  readonly port?: number;
  /** Address to bind; default `127.0.0.1`. */
  readonly host?: string;
  /** Also serves `POST /__fake/events`, `/stop`, `/failures` and `/reset`, for tests in other processes. Default false. */
  readonly control?: boolean;
}

/** A fake service that listens on real HTTP. */
export interface FakeServer extends AsyncDisposable {
  /** Base URL to give to a client, e.g. `http://127.0.0.1:4010/public/v1`. */
  readonly url: string;
  /** The port it listens on. */
  readonly port: number;
  /** Stops listening and ends all open connections. */
  close(): Promise<void>;
}

function send(outcome: Outcome, response: ServerResponse): void {
  if (outcome.kind === 'reset') response.socket?.resetAndDestroy();
  if (!('response' in outcome)) return;
  const { status, headers, body } = outcome.response;
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...headers, 'content-length': bytes.length });
  if (outcome.kind === 'stall') response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)));
  else response.end(bytes);
}

export async function listen(
  serve: (request: FakeRequest) => Promise<Outcome>,
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
      if (message.destroyed && !message.complete) response.destroy();
      // A callback of the test threw, e.g. `latencyMs`; the test should see why.
      else response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  // Sound: `address()` is an object for every server that listens on a port.
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
