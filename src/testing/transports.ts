import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import { onAbort } from '../common/abort.ts';
import { checkOptions } from '../common/check-options.ts';
import { countOption, type OptionShape, option } from '../common/option-schemas.ts';
import type { EndpointName } from '../endpoints.ts';
import { ConfigurationError } from '../errors.ts';
import { eventSchema } from '../schemas/event.ts';
import type { Failure } from './service/failures.ts';
import {
  checkApiKey,
  type FakeRequest,
  type FakeResponse,
  hasJsonType,
  type Reply,
  rejection,
  ServiceError,
  toErrorResponse,
  toJsonResponse,
} from './service/http.ts';
import { parseJson } from './service/input.ts';
import type { FakeShipment, ShipmentKey } from './shipments/fake-shipment.ts';
import type { EventInput } from './shipments/shipment.ts';

/** `Response` throws when a response of one of these statuses has a body. */
const BODILESS_STATUSES = new Set([204, 205, 304]);

export type FetchLike = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export async function toFakeRequest(request: Request, basePath?: string): Promise<FakeRequest> {
  const { method, url, headers } = request;
  const { pathname, search } = new URL(url);
  return { method, target: pathname + search, headers, body: await request.text(), basePath };
}

function toStalledResponse({ status, headers, body }: FakeResponse, signal?: AbortSignal): Response {
  const bytes = new TextEncoder().encode(body);
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.subarray(0, Math.ceil(bytes.length / 2)));
      // Some transports end the stream themselves on abort. They must come first, so wait for a microtask.
      const fail = () => controller.error(signal?.reason);
      onAbort(signal, () => void Promise.resolve().then(fail));
    },
  });
  // Without a `content-length`, MSW 3 reads the loss of the connection as the end of the body.
  return new Response(stream, { status, headers: { ...headers, 'content-length': String(bytes.length) } });
}

export function perform(reply: Reply, signal: AbortSignal | undefined): Response | Promise<never> {
  if (reply.kind === 'stall') return toStalledResponse(reply.response, signal);
  if (reply.kind === 'response') {
    const { status, headers, body } = reply.response;
    return new Response(BODILESS_STATUSES.has(status) ? null : body, { status, headers });
  }
  if (reply.kind === 'reset') {
    const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
    throw new TypeError('fetch failed', { cause });
  }
  // The caller rejects the request when its signal aborts.
  return new Promise(() => {});
}

export function createFetch(serve: (request: FakeRequest) => Promise<Reply>, ownBasePath: string): FetchLike {
  return async (input, init) => {
    const request = new Request(input, init);
    // Do not use `request.signal`: it stops following the caller's signal once the request is garbage-collected.
    const signal =
      init?.signal ?? (typeof input === 'object' && 'signal' in input ? input.signal : undefined);
    signal?.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => {
      onAbort(signal, () => reject(signal?.reason));
    });
    const isOwnBase = new URL(request.url).pathname.startsWith(`${ownBasePath}/`);
    const response = toFakeRequest(request, isOwnBase ? ownBasePath : undefined)
      .then(serve)
      .then((reply) => perform(reply, signal));
    return Promise.race([response, aborted]);
  };
}

/** Options of `fake.listen`. */
export interface ListenOptions {
  /** Port. Default 0: any free port. */
  readonly port?: number | undefined;
  /** Address to bind; default `127.0.0.1`. */
  readonly host?: string | undefined;
  /**
   * Also serves `POST` on `/__fake/events`, `/__fake/stop`, `/__fake/failures` and `/__fake/reset`, for tests in other processes.
   * Default false.
   */
  readonly control?: boolean | undefined;
}

export const listenOptions = z.strictObject({
  port: countOption(0).default(0),
  host: option<string>('an address', (value) => typeof value === 'string').default('127.0.0.1'),
  control: z.boolean().default(false),
} satisfies OptionShape<ListenOptions>);

/** A fake service that listens on real HTTP. */
export interface FakeServer extends AsyncDisposable {
  /** Base URL to give to a client, e.g. `http://127.0.0.1:4010/public/v1`. */
  readonly url: string;
  /** The port on which the fake listens. */
  readonly port: number;
  /** Stops listening and ends all open connections. */
  close(): Promise<void>;
}

function send(reply: Reply, response: ServerResponse): void {
  if (reply.kind === 'reset') response.socket?.resetAndDestroy();
  if (!('response' in reply)) return;
  const { status, headers, body } = reply.response;
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...headers, 'content-length': bytes.length });
  if (reply.kind === 'stall') response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)));
  else response.end(bytes);
}

/** Tells tools that wait for a server, such as wait-on, that the fake runs. Such a request is not one of the service. */
const HEALTHY: Reply = { kind: 'response', response: toJsonResponse(200, { status: 'ok' }) };

function isHealthCheck(method: string, target: string, basePath: string): boolean {
  const [path = ''] = target.split('?');
  const paths = ['/', '/health', basePath, `${basePath}/`, `${basePath}/health`];
  return (method === 'GET' || method === 'HEAD') && paths.includes(path);
}

export async function listen(
  serve: (request: FakeRequest) => Promise<Reply>,
  basePath: string,
  { port, host }: { readonly port: number; readonly host: string },
): Promise<FakeServer> {
  const respond = async (message: IncomingMessage, response: ServerResponse) => {
    const { method = 'GET', url: target = '/', headersDistinct } = message;
    if (isHealthCheck(method, target, basePath)) return send(HEALTHY, response);
    const headers = new Headers();
    for (const [name, values = []] of Object.entries(headersDistinct))
      for (const value of values) headers.append(name, value);
    send(await serve({ method, target, headers, body: await text(message), basePath }), response);
  };
  const server = createServer((message, response) => {
    respond(message, response).catch((error: unknown) => {
      if (message.destroyed && !message.complete) response.destroy();
      // An option of the test threw, e.g. `latencyMs`, so send the error to the test.
      else response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  // Safe cast: `address()` is an object for every server that listens on a port.
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

interface Controlled {
  shipment(key: ShipmentKey): FakeShipment;
  fail(endpoint: EndpointName | '*', failure: Failure): { readonly remaining: number };
  reset(): void;
}

const PREFIX = '/__fake/';

const stopBody = z.strictObject({
  trackingNumber: z.unknown().optional(),
  trackerId: z.unknown().optional(),
});
// Unlike the client, refuse unknown fields of an event: they are misspellings.
const eventInput = z.strictObject(eventSchema.shape).partial();
const eventBody = stopBody.extend({ event: eventInput.prefault({}) });

function findShipment(fake: Controlled, { trackingNumber, trackerId }: z.output<typeof stopBody>) {
  if ((trackingNumber === undefined) === (trackerId === undefined))
    throw new ConfigurationError('Give either `trackingNumber` or `trackerId`');
  return fake.shipment(trackerId === undefined ? String(trackingNumber) : { trackerId: String(trackerId) });
}

const ACTIONS: Readonly<Record<string, (fake: Controlled, body: unknown) => object>> = {
  events: (fake, body) => {
    const { event, ...key } = checkOptions(eventBody, body, 'body');
    // Safe cast: JSON has no undefined, so each field that is present has a value.
    return { events: findShipment(fake, key).addEvent(event as EventInput).events };
  },
  stop: (fake, body) => {
    const key = checkOptions(stopBody, body, 'body');
    return { isTracked: findShipment(fake, key).stopTracking().isTracked };
  },
  failures: (fake, body) => {
    // Safe cast: `fail` checks the endpoint and the failure.
    const { endpoint = '*', ...failure } = Object(body) as Failure & { endpoint?: EndpointName | '*' };
    return { remaining: fake.fail(endpoint, failure).remaining };
  },
  reset: (fake) => {
    fake.reset();
    return {};
  },
};

/** Refuses web pages: browsers add `Origin`, and send a key to another site only after a preflight, which fails here. */
function checkAccess(headers: Headers, apiKeys: readonly string[] | undefined): void {
  if (headers.has('origin'))
    throw rejection(403, 'origin_not_allowed', 'Web pages may not control the fake service.');
  checkApiKey(headers, apiKeys);
}

/** Carries out a request of a control path; returns undefined for any other path. */
export function control(
  fake: Controlled,
  { method, target, headers, body }: FakeRequest,
  apiKeys: readonly string[] | undefined,
): FakeResponse | undefined {
  if (!target.startsWith(PREFIX)) return undefined;
  const paths = Object.keys(ACTIONS).map((name) => PREFIX + name);
  const [path = ''] = target.split('?');
  try {
    checkAccess(headers, apiKeys);
    const action = paths.includes(path) ? ACTIONS[path.slice(PREFIX.length)] : undefined;
    if (action === undefined)
      throw rejection(
        404,
        'path_not_found',
        `No control path has this name; the control paths are ${paths.join(', ')}.`,
      );
    if (method !== 'POST') throw rejection(405, 'method_not_allowed', 'This path accepts POST.');
    // Browsers also send JSON to another site only after a preflight.
    if (!hasJsonType(headers))
      throw rejection(415, 'unsupported_media_type', 'The Content-Type must be application/json.');
    return toJsonResponse(200, { data: action(fake, body === '' ? {} : parseJson(body)) });
  } catch (error) {
    if (error instanceof ServiceError) return toErrorResponse(undefined, error);
    if (!(error instanceof ConfigurationError)) throw error;
    return toErrorResponse(undefined, rejection(400, 'validation_error', error.message));
  }
}
