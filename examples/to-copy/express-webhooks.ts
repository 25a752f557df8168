// An Express 5 webhook endpoint that handles every event once and keeps the newest status of each parcel.
import express from 'express';
import {
  createWebhookHandler,
  isNewerEvent,
  MemoryDedupeStore,
  toNodeHandler,
  type WebhookEvent,
} from 'tracking-client/webhooks';

/** Where your app keeps parcels; both methods may be asynchronous. */
export interface Parcels {
  lastEvent(trackingNumber: string): Promise<WebhookEvent | undefined>;
  save(trackingNumber: string, event: WebhookEvent): Promise<void>;
}

export function createApp(secret: string | undefined, parcels: Parcels) {
  const webhooks = createWebhookHandler({
    secret,
    // This store serves one process. Several processes share a RedisDedupeStore or a PostgresDedupeStore.
    store: new MemoryDedupeStore(),
    onError: (error) => console.log('given back:', error instanceof Error ? error.message : error),
    onEvent: async (event, { message }) => {
      const trackingNumber = message.tracker.trackingNumber ?? '';
      // Webhooks come in any order: an older status must not replace a newer one.
      if (!isNewerEvent(event, await parcels.lastEvent(trackingNumber))) return;
      await parcels.save(trackingNumber, event);
    },
  });
  const app = express();
  app.use(express.json()); // With or without a body parser before it.
  app.all('/webhooks', toNodeHandler(webhooks));
  // On SIGTERM call `close`: it finishes what runs, and responds with 503 to the rest.
  return { app, close: () => webhooks.close() };
}
