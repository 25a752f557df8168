import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createWebhookHandler, MemoryDedupeStore, toNodeHandler } from '../../src/webhooks/index.ts';
import { CLIENTS, openConnection, SECRET } from './stubborn-clients.ts';

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

test.each(Object.entries(CLIENTS))(
  'close, and a client that %s → the server closes',
  async (client, begin) => {
    const { webhooks, server, open } = await start();
    begin(await open());
    // Let the client begin.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const closed = once(server, 'close');
    await webhooks.close();
    server.close();
    // Only clients that send no whole request have to be cut off.
    if (SILENT.includes(client)) server.closeAllConnections();
    await closed;
    expect(server.listening).toBe(false);
  },
);
