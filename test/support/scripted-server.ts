import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { onTestFinished } from 'vitest';

/** A request as it arrived on the wire. */
export interface WireRequest {
  readonly method: string;
  /** The request target, exactly as it was sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Tells connections apart: requests over one kept-alive connection have the same number. */
  readonly connection: number;
}

/** The behaviour of the server for one request. */
export type Behaviour = (response: ServerResponse, request: WireRequest) => void;

/** A server that misbehaves on command, on loopback HTTP. */
export interface ScriptedServer {
  readonly origin: string;
  readonly baseUrl: string;
  readonly requests: readonly WireRequest[];
  /** The numbers of the connections that carried a request and are closed. */
  readonly closedConnections: ReadonlySet<number>;
}

export const BASE_PATH = '/public/v1';

/** Sends a whole response; an object is sent as JSON, a string unchanged. */
export function respond(status: number, body: unknown, headers: Record<string, string> = {}): Behaviour {
  return (response) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(text);
  };
}

/** A response without a body or a content type. */
export function respondEmpty(status: number, headers: Record<string, string> = {}): Behaviour {
  return (response) => {
    response.writeHead(status, { 'content-length': '0', ...headers });
    response.end();
  };
}

/** Ends the connection before any response. */
export const reset: Behaviour = (response) => {
  response.socket?.resetAndDestroy();
};

/** Never responds. */
export const silence: Behaviour = () => {};

/** Sends headers and half a body, and then nothing. */
export const stall: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"data":');
};

/** Sends headers and half a body, and ends the connection. */
export const breakOff: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"data":', () => response.socket?.destroy());
};

/** Starts a server that follows a script; the last step repeats. It is closed when the test ends. */
export async function startServer(script: Behaviour | readonly Behaviour[]): Promise<ScriptedServer> {
  const steps = typeof script === 'function' ? [script] : [...script];
  const requests: WireRequest[] = [];
  const connections = new Map<object, number>();
  const closedConnections = new Set<number>();
  const server = createServer(async (message, response) => {
    const chunks: Buffer[] = [];
    message.on('error', () => {});
    for await (const chunk of message) chunks.push(Buffer.from(chunk));
    const connection = connections.get(message.socket) ?? connections.size + 1;
    if (!connections.has(message.socket)) {
      connections.set(message.socket, connection);
      message.socket.on('close', () => closedConnections.add(connection));
    }
    const { method = '', url = '', headers } = message;
    const request = { method, url, headers, body: Buffer.concat(chunks).toString('utf8'), connection };
    requests.push(request);
    const step = steps.length > 1 ? steps.shift() : steps[0];
    step?.(response, request);
  });
  const origin = await listen(server);
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return { origin, baseUrl: origin + BASE_PATH, requests, closedConnections };
}

/** A base URL at which connections are refused. */
export async function refusedBaseUrl(): Promise<string> {
  const server = createTcpServer();
  const origin = await listen(server);
  server.close();
  await once(server, 'close');
  return origin + BASE_PATH;
}

/** Listens on a free port and returns the origin. */
async function listen(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  // A server that listens on TCP has an address with a port.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
