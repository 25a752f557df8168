import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** With `refused`, no server listens; with `silent`, connections stay open but get no reply. */
export type OutageKind = 'refused' | 'silent';

/** A TCP proxy in front of Redis that can take Redis away from its own clients only. */
export class OutageProxy {
  readonly url: string;
  readonly #target: URL;
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #server: Server;
  #isSilent = false;
  /** Writes that are delayed until Redis is no longer silent. */
  #waiting: (() => void)[] = [];

  private constructor(target: URL, server: Server) {
    this.#target = target;
    this.#server = server;
    // A server that listens on TCP has an address with a port.
    this.#port = (server.address() as AddressInfo).port;
    const url = new URL(target);
    url.host = `127.0.0.1:${this.#port}`;
    this.url = url.href;
    server.on('connection', (client) => this.#accept(client));
  }

  /** @param targetUrl - URL of the Redis behind the proxy */
  static async open(targetUrl: string): Promise<OutageProxy> {
    return new OutageProxy(new URL(targetUrl), await listening(0));
  }

  async takeAway(kind: OutageKind): Promise<void> {
    if (kind === 'silent') {
      this.#isSilent = true;
      return;
    }
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async giveBack(): Promise<void> {
    if (this.#isSilent) {
      this.#isSilent = false;
      for (const pass of this.#waiting) pass();
      this.#waiting = [];
      return;
    }
    this.#server = await listening(this.#port);
    this.#server.on('connection', (client) => this.#accept(client));
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  #accept(client: Socket): void {
    const redis = connect(Number(this.#target.port || 6379), this.#target.hostname);
    for (const [from, to] of [
      [client, redis],
      [redis, client],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => from.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.on('data', (chunk) => {
        if (this.#isSilent) this.#waiting.push(() => to.write(chunk));
        else to.write(chunk);
      });
    }
  }
}

async function listening(port: number): Promise<Server> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
