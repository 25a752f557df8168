import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy of a test. */
export interface TcpProxy {
  /** The URL of the server, through the proxy. */
  readonly url: string;
  /** The sockets of the open connections, on both sides. */
  readonly sockets: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/**
 * Opens a proxy in front of a server.
 *
 * @param targetUrl - URL of the server
 * @param defaultPort - the port of a URL without one
 * @param join - passes data on between the two sockets of a connection
 */
export async function openTcpProxy(
  targetUrl: string,
  defaultPort: number,
  join: (client: Socket, upstream: Socket) => void,
): Promise<TcpProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || defaultPort), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
    }
    join(client, upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`; // A server that listens on TCP has such an address.
  return {
    url: url.href,
    sockets,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
