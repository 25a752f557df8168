import { createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { must } from './must.ts';

/** The bytes of a response, and how the connection ends. */
export interface RawAnswer {
  readonly bytes: Buffer;
  readonly ending: 'end' | 'reset' | 'stall';
}

/** A server that responds to every request with the same bytes. */
export interface RawServer {
  readonly origin: string;
  answer: RawAnswer;
  /** Rejects when a client has left a connection open. */
  stop(): Promise<void>;
}

/** Longer than `fetch` keeps an unused connection open. */
const CLOSE_WITHIN_MS = 10_000;

/** Tells whether a request has arrived whole: its head, and the announced length of its body. */
function isWhole(request: string): boolean {
  const end = request.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const [, length = '0'] = /^content-length: *(\d+)/im.exec(request.slice(0, end)) ?? [];
  return request.length - end - 4 >= Number(length);
}

export async function startRawServer(): Promise<RawServer> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: false }, (socket) => {
    open.add(socket);
    let request = '';
    socket.on('close', () => open.delete(socket)).on('error', () => {});
    socket.on('data', (bytes) => {
      request += bytes.toString('latin1');
      if (!isWhole(request)) return;
      request = '';
      const { bytes: answer, ending } = raw.answer;
      socket.write(answer, () => {
        if (ending === 'end') socket.end();
        else if (ending === 'reset') socket.resetAndDestroy();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const raw: RawServer = {
    origin: `http://127.0.0.1:${address.port}`,
    answer: { bytes: Buffer.alloc(0), ending: 'end' },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      const giveUpAt = performance.now() + CLOSE_WITHIN_MS;
      while (open.size > 0 && performance.now() < giveUpAt) await wait(5);
      const left = open.size;
      for (const socket of open) socket.destroy();
      await closed;
      must(left === 0, () => `the client left ${left} connections open`);
    },
  };
  return raw;
}
