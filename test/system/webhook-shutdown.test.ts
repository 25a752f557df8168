import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createWebhookHandler, MemoryDedupeStore, toNodeHandler } from '../../src/webhooks/index.ts';
import { CLIENTS, openConnection, SECRET } from './stubborn-clients.ts';

/** The pages whose receiver ends on SIGTERM. */
const PAGES = ['README.md', 'docs/recipes/accounts.md'];

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
  const end = { end: async () => {}, disconnect: () => {} };
  const names = { process, server, webhooks, pool: end, redis: end };
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
    const socket = await openConnection(port);
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { webhooks, server, open };
}

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
