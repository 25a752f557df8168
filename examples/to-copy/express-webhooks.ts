// An Express 5 webhook endpoint that keeps the newest status of each parcel.
import express from 'express';
import { createWebhookHandler, MemoryDedupeStore, toNodeHandler } from 'tracking-client/webhooks';

/** The storage of your app. */
export interface Parcels {
  /**
   * Saves a status, unless the saved status has the same time or a later one. Webhooks come in any order, and two can come at
   * once, so let the database compare: `UPDATE … WHERE status_at < $3`.
   */
  saveStatus(trackingNumber: string, status: string, at: Date): Promise<void>;
}

export function createApp(secret: string | undefined, parcels: Parcels) {
  const webhooks = createWebhookHandler({
    secret,
    // This store serves one process. Several processes share a RedisDedupeStore or a PostgresDedupeStore.
    store: new MemoryDedupeStore(),
    onError: (error) => console.log('failed, comes again:', error instanceof Error ? error.message : error),
    onEvents: async ({ tracker, shipment, metadata }) => {
      // Take the status from the shipment: its newest event can be a scan that was noted after the delivery.
      const { statusMilestone } = shipment ?? {};
      if (!tracker.trackingNumber || !statusMilestone || !metadata?.generatedAt) return;
      await parcels.saveStatus(tracker.trackingNumber, statusMilestone, new Date(metadata.generatedAt));
    },
  });
  const app = express();
  app.use(express.json()); // Optional: the handler also reads unparsed bodies.
  app.all('/webhooks', toNodeHandler(webhooks));
  // On SIGTERM, call `close`: it finishes running work, and responds with 503 to new webhooks.
  return { app, close: () => webhooks.close() };
}
