import { createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { must } from './must.ts';

/** Bytes to answer with, and what to do after them. */
export interface RawAnswer {
  readonly bytes: Buffer;
  readonly ending: 'end' | 'reset' | 'stall';
}

/** Answers every request with the same bytes, whatever they are. */
export interface RawServer {
  readonly origin: string;
  answer: RawAnswer;
  /** Rejects when a client has not let go of its connection. */
  stop(): Promise<void>;
}

/** Longer than `fetch` keeps a connection that it has no more use for. */
const CLOSE_WITHIN_MS = 10_000;

/** Whether all of a request is there: its head, and as much of a body as that announces. */
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
