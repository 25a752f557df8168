import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Outcome, RawRequest } from '../service/http.ts';

/** Options of `fake.listen`. */
export interface ListenOptions {
  /** Port; default 0, any free one. */
  readonly port?: number;
  /** Address to bind; default `127.0.0.1`. */
  readonly host?: string;
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

async function readText(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function toHeaders(message: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(message.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  return headers;
}

function send(outcome: Outcome, response: ServerResponse): void {
  if (outcome.kind === 'silence') return;
  if (outcome.kind === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  const { status, headers, body } = outcome.reply;
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...headers, 'content-length': bytes.length });
  if (outcome.kind === 'stall') response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)));
  else response.end(bytes);
}

/** Serves the fake on real HTTP. */
export async function listen(
  serve: (raw: RawRequest) => Promise<Outcome>,
  basePath: string,
  { port = 0, host = '127.0.0.1' }: ListenOptions = {},
): Promise<FakeServer> {
  const answer = async (message: IncomingMessage, response: ServerResponse) => {
    const body = await readText(message);
    const { method = 'GET', url: target = '/' } = message;
    send(await serve({ method, target, headers: toHeaders(message), body, basePath }), response);
  };
  const server = createServer((message, response) => {
    answer(message, response).catch((error: unknown) => {
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
