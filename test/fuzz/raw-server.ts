import { once } from 'node:events';
import { createServer } from 'node:net';

/** The bytes of a response, and how the connection ends. */
export interface RawResponse {
  readonly bytes: Buffer;
  readonly ending: 'end' | 'reset' | 'stall';
}

/** A server that responds to every request with the same bytes. */
export interface RawServer {
  readonly origin: string;
  response: RawResponse;
  /** Stops listening. A connection that the client leaves open stays, and `checkResources` finds it. */
  stop(): void;
}

/** Tells whether a request has arrived whole: its head, and the announced length of its body. */
function isWhole(request: string): boolean {
  const end = request.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const [, length = '0'] = /^content-length: *(\d+)/im.exec(request.slice(0, end)) ?? [];
  return request.length - end - 4 >= Number(length);
}

export async function startRawServer(): Promise<RawServer> {
  const server = createServer({ allowHalfOpen: false }, (socket) => {
    let request = '';
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      request += bytes.toString('latin1');
      if (!isWhole(request)) return;
      request = '';
      const { bytes: response, ending } = raw.response;
      socket.write(response, () => {
        if (ending === 'end') socket.end();
        else if (ending === 'reset') socket.resetAndDestroy();
      });
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const raw: RawServer = {
    origin: `http://127.0.0.1:${address.port}`,
    response: { bytes: Buffer.alloc(0), ending: 'end' },
    stop: () => void server.close(),
  };
  return raw;
}
