import { openTcpProxy } from './tcp-proxy.ts';

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
  const { url, sockets, close } = await openTcpProxy(targetUrl, 5432, (client, upstream) => {
    client.pipe(upstream).pipe(client);
  });
  const freeze = () => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  return { url, freeze, close };
}
