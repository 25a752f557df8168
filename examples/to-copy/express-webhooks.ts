// An Express 5 webhook endpoint that handles every event once and keeps the newest status of each parcel.
import express from 'express';
import { isNewerEvent } from 'tracking-client/events';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  toNodeHandler,
  type WebhookEvent,
} from 'tracking-client/webhooks';

/** The storage of your app. */
export interface Parcels {
  lastEvent(trackingNumber: string): Promise<WebhookEvent | undefined>;
  save(trackingNumber: string, event: WebhookEvent): Promise<void>;
}

export function createApp(secret: string | undefined, parcels: Parcels) {
  const webhooks = createWebhookHandler({
    secret,
    // This store serves one process. Several processes share a RedisDedupeStore or a PostgresDedupeStore.
    store: new MemoryDedupeStore(),
    onError: (error) => console.log('failed, comes again:', error instanceof Error ? error.message : error),
    onEvent: async (event, { message }) => {
      const trackingNumber = message.tracker.trackingNumber ?? '';
      // Webhooks come in any order: an older status must not replace a newer one.
      if (!isNewerEvent(event, await parcels.lastEvent(trackingNumber))) return;
      await parcels.save(trackingNumber, event);
    },
  });
  const app = express();
  app.use(express.json()); // Optional: the handler also reads unparsed bodies.
  app.all('/webhooks', toNodeHandler(webhooks));
  // On SIGTERM, call `close`: it finishes running work, and responds with 503 to new webhooks.
  return { app, close: () => webhooks.close() };
}
