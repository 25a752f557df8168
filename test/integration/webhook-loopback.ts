import { Agent, request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server that listens on loopback. */
export interface Running {
  readonly port: number;
  close(): Promise<void>;
}

/** A request; its chunks are written one by one, without a declared length unless a header gives one. */
export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunks?: readonly (string | Uint8Array)[];
  /** Uses a connection of its own. Default: false. */
  readonly fresh?: boolean;
}

interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export const SECRET = 'whsec-loopback';

/** Starts a server on a free port of loopback. */
export async function listening(server: Server): Promise<Running> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Sound: a server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Connects a client to a server and closes both at the end of the test. */
export function connectClient(server: Running) {
  onTestFinished(() => server.close());
  const client = makeClient(server.port);
  // A server waits for the connections that are kept alive.
  onTestFinished(() => client.close());
  return { port: server.port, send: client.send };
}

/** A client with one connection that is kept alive: a body that a server leaves unread would spoil the next request. */
export function makeClient(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = ({ method = 'POST', headers = {}, chunks = [], fresh = false }: Sent) =>
    new Promise<Received>((resolve, reject) => {
      const allHeaders = {
        authorization: `Bearer ${SECRET}`,
        'content-type': 'application/json',
        ...headers,
      };
      const outgoing = httpRequest(
        {
          port,
          host: '127.0.0.1',
          path: '/webhooks',
          method,
          headers: allHeaders,
          agent: fresh ? false : agent,
        },
        (incoming) => {
          let text = '';
          incoming.setEncoding('utf8');
          incoming.on('data', (chunk: string) => {
            text += chunk;
          });
          incoming.on('end', () =>
            resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }),
          );
          incoming.on('error', reject);
        },
      );
      outgoing.on('error', reject);
      for (const chunk of chunks) outgoing.write(chunk);
      outgoing.end();
    });
  return { send, close: () => agent.destroy() };
}

/** The enveloped payload of one event. */
export function buildPayload(eventId: string): string {
  return JSON.stringify({
    trackings: [
      {
        metadata: { messageId: `message-of-${eventId}`, topic: 'tracking/events' },
        tracker: { trackerId: 't1', trackingNumber: 'LA680658838NL' },
        events: [{ eventId, status: 'Arrivée à Pékin' }],
      },
    ],
  });
}
