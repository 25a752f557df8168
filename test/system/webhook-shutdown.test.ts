import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createWebhookHandler, MemoryDedupeStore, toNodeHandler } from '../../src/webhooks/index.ts';

const SECRET = 'whsec-1';

/** The pages whose receiver ends on SIGTERM. */
const PAGES = ['README.md', 'docs/recipes/reconcile.md', 'docs/recipes/accounts.md'];

/** Returns the listener for SIGTERM of the code of a page. */
function readShutdown(page: string, server: Server, webhooks: { close(): Promise<void> }): () => unknown {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  const [, code = ''] = /(?<=\n)(process\.once\('SIGTERM', [\s\S]*?)\n```/.exec(text) ?? [];
  let listener = (): unknown => expect.unreachable('Expected a listener');
  const process = {
    once: (_signal: string, given: () => unknown) => {
      listener = given;
    },
  };
  const end = { end: async () => {}, close: async () => {} };
  const names = { process, server, webhooks, close: () => {}, pool: end, redis: end };
  new Function(...Object.keys(names), code)(...Object.values(names));
  return listener;
}

async function start() {
  const webhooks = createWebhookHandler({
    secret: SECRET,
    store: new MemoryDedupeStore(),
    // Longer than the time limit of a test: the shutdown must not need the deadline.
    deadlineMs: 3_600_000,
    onEvent: () => new Promise((resolve) => setTimeout(resolve, 100)),
  });
  const server = createServer(toNodeHandler(webhooks)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  const open = async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  return { webhooks, server, open };
}

let count = 0;

function request(): string {
  count += 1;
  const body = JSON.stringify({ trackerId: 't1', events: [{ eventId: String(count) }] });
  const headers = `Authorization: Bearer ${SECRET}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST / HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n${body}`;
}

/** Clients that never let go. */
const CLIENTS: Record<string, (socket: Socket) => void> = {
  'sends its next webhook after each response': (socket) => {
    socket.on('data', () => void socket.write(request())).write(request());
  },
  'sends webhooks without waiting for responses': (socket) => {
    const timer = setInterval(() => socket.write(request().repeat(5)), 5);
    socket.on('data', () => {}).on('close', () => clearInterval(timer));
  },
  'sends HEAD without waiting for responses': (socket) => {
    const timer = setInterval(() => socket.write('HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(5)), 5);
    socket.on('data', () => {}).on('close', () => clearInterval(timer));
  },
  'sends TRACE after each response': (socket) => {
    const text = 'TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n';
    socket.on('data', () => void socket.write(text)).write(text);
  },
  'sends a body that never ends': (socket) => {
    const headers = `Authorization: Bearer ${SECRET}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked`;
    socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n1\r\n{\r\n`);
    const timer = setInterval(() => socket.write('1\r\n \r\n'), 5);
    socket.on('data', () => {}).on('close', () => clearInterval(timer));
  },
  'sends the beginning of a header': (socket) => void socket.write('POST / HTTP/1.1\r\nHost: loc'),
  'sends nothing': () => {},
};

const SILENT = ['sends the beginning of a header', 'sends nothing'];

test.each(PAGES.flatMap((page) => Object.keys(CLIENTS).map((client) => [page, client] as const)))(
  'SIGTERM with the code of %s, and a client that %s → the server closes',
  async (page, client) => {
    const { webhooks, server, open } = await start();
    CLIENTS[client]?.(await open());
    // Only clients that send no whole request have to be cut off.
    if (!SILENT.includes(client)) server.closeAllConnections = () => {};
    // Let the client begin.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const closed = once(server, 'close');
    await readShutdown(page, server, webhooks)();
    await closed;
    expect(server.listening).toBe(false);
  },
);
