import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy that loses replies: instead of passing them on, it breaks the connection. */
export interface LossyProxy {
  /** The URL of the server, through the proxy. */
  readonly url: string;
  /** From now on, each reply is lost with this probability. Default: none. */
  loseReplies(probability: number): void;
  /** How many replies were lost. */
  readonly lost: number;
  close(): Promise<void>;
}

/** @param targetUrl - URL of the Redis behind the proxy */
export async function openLossyProxy(targetUrl: string): Promise<LossyProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let [probability, lost] = [0, 0];
  const server = createServer((client) => {
    const redis = connect(Number(target.port || 6379), target.hostname);
    for (const [from, to] of [
      [client, redis],
      [redis, client],
    ] as const) {
      sockets.add(from.setNoDelay(true));
      from.on('error', () => from.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
    client.pipe(redis);
    redis.on('data', (reply) => {
      if (Math.random() >= probability) return void client.write(reply);
      lost += 1;
      client.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`; // A server that listens on TCP has such an address.
  return {
    url: url.href,
    loseReplies: (share) => {
      probability = share;
    },
    get lost() {
      return lost;
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
