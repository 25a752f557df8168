import { openTcpProxy } from './tcp-proxy.ts';

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
  let [probability, lost] = [0, 0];
  const { url, close } = await openTcpProxy(targetUrl, 6379, (client, redis) => {
    client.setNoDelay(true).on('close', () => redis.destroy());
    redis.setNoDelay(true).on('close', () => client.destroy());
    client.pipe(redis);
    redis.on('data', (reply) => {
      if (Math.random() >= probability) return void client.write(reply);
      lost += 1;
      client.destroy();
    });
  });
  return {
    url,
    loseReplies: (share) => {
      probability = share;
    },
    get lost() {
      return lost;
    },
    close,
  };
}
