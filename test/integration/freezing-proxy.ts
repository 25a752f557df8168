import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy that can freeze its connections: they stay open, but nothing goes through them any more. */
export interface FreezingProxy {
  /** The URL of the server, through the proxy. */
  readonly url: string;
  /** Freezes all open connections; later connections work. */
  freeze(): void;
  close(): Promise<void>;
}

/** @param targetUrl - URL of the server behind the proxy */
export async function openFreezingProxy(targetUrl: string): Promise<FreezingProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`; // A server that listens on TCP has such an address.
  return {
    url: url.href,
    freeze: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
