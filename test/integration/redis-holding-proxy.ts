import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * A TCP proxy before Redis that can keep replies back until the client has sent a number of commands. A client that waits for a
 * reply before it sends the next command never gets on, so a call that resolves through it took one round trip.
 */
export class HoldingProxy {
  readonly url: string;
  /** Commands of the counted name that were sent since the last `holdUntil`. */
  sent = 0;
  #awaited = 0;
  #held: (() => void)[] = [];
  readonly #close: () => Promise<void>;

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.#close = close;
  }

  static async open(targetUrl: string, command: string): Promise<HoldingProxy> {
    const target = new URL(targetUrl);
    const sockets = new Set<Socket>();
    const server = createServer((client) => {
      const redis = connect(Number(target.port || 6379), target.hostname);
      for (const socket of [client, redis]) {
        sockets.add(socket);
        socket.setNoDelay(true);
        socket.on('error', () => socket.destroy());
      }
      let tail = '';
      client.on('data', (chunk) => {
        // Latin-1 keeps one character a byte; the tail finds a name that lies across two chunks.
        const text = tail + chunk.toString('latin1').toUpperCase();
        const name = `\r\n${command}\r\n`;
        proxy.#count(text.split(name).length - 1);
        tail = text.slice(text.lastIndexOf(name) + name.length).slice(1 - name.length);
        redis.write(chunk);
      });
      redis.on('data', (chunk) => proxy.#reply(() => client.write(chunk)));
      client.on('close', () => redis.destroy());
      redis.on('close', () => client.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo; // A server that listens on a TCP port has such an address.
    const url = new URL(targetUrl);
    url.host = `127.0.0.1:${port}`;
    const proxy = new HoldingProxy(url.href, async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    });
    return proxy;
  }

  /** Keeps every reply back until this many commands were sent. */
  holdUntil(commands: number): void {
    this.sent = 0;
    this.#awaited = commands;
  }

  close(): Promise<void> {
    return this.#close();
  }

  #count(commands: number): void {
    this.sent += commands;
    if (this.sent < this.#awaited) return;
    for (const reply of this.#held) reply();
    this.#held = [];
  }

  #reply(reply: () => void): void {
    if (this.sent < this.#awaited) this.#held.push(reply);
    else reply();
  }
}
