import { createServer } from 'node:http';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  toNodeHandler,
  WebhookInbox,
} from 'tracking-client/webhooks';

/** A server that takes webhooks and keeps a line for each event. */
export async function startReceiver(secret) {
  const lines = [];
  const webhooks = createWebhookHandler({
    secret,
    inbox: new WebhookInbox({ store: new MemoryDedupeStore() }),
    onEvent: (event, { message }) => {
      lines.push(`${message.tracker.trackingNumber} ${event.statusMilestone}`);
    },
  });
  const server = createServer(toNodeHandler(webhooks));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/webhooks`,
    lines,
    async close() {
      await webhooks.close();
      server.close().closeAllConnections();
    },
  };
}
