// Webhooks whose events take effect exactly once, with any driver or ORM: the callback opens its own transaction, inserts the key
// of the event, which is unique, and writes. The table `parcels` has the number of events and the newest status of each parcel.
import { createWebhookHandler, MemoryDedupeStore } from 'tracking-client/webhooks';

/** The SQL of the tables, for a migration. */
export const tablesSql = (schema: string) => [
  `CREATE TABLE ${schema}.handled_events (key text PRIMARY KEY)`,
  `CREATE TABLE ${schema}.parcels (
    tracking_number text PRIMARY KEY, counted integer NOT NULL, status text, status_at timestamptz
  )`,
];

interface Transaction {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Commits if the work resolves, and rolls back if it rejects. */
export type InTransaction = (work: (transaction: Transaction) => Promise<void>) => Promise<void>;

export interface ParcelWebhooksOptions {
  readonly schema: string;
  /** More work of your app in the transaction. If it throws, the transaction is rolled back, and the service delivers again. */
  afterWrites(news: { trackingNumber: string; status: string | null | undefined }): void;
}

export function parcelWebhooks(
  inTransaction: InTransaction,
  secret: string | undefined,
  { schema, afterWrites }: ParcelWebhooksOptions,
) {
  return createWebhookHandler({
    secret,
    // This store skips most duplicates early. The unique key stops all others, in any process and after a crash.
    store: new MemoryDedupeStore(),
    onError: (error) => console.log('rolled back:', error instanceof Error ? error.message : error),
    onEvent: (event, { message, key }) =>
      inTransaction(async (transaction) => {
        // If another delivery is writing this event, this insert waits for the outcome.
        const insert = `INSERT INTO ${schema}.handled_events VALUES ($1) ON CONFLICT DO NOTHING RETURNING key`;
        const isNew = (await transaction.query(insert, [key])).rows.length > 0;
        if (!isNew) return;
        const { tracker, shipment, metadata } = message;
        const trackingNumber = tracker.trackingNumber ?? '';
        // Without the key, a duplicate would be counted again.
        await transaction.query(
          `INSERT INTO ${schema}.parcels VALUES ($1, 1)
           ON CONFLICT (tracking_number) DO UPDATE SET counted = parcels.counted + 1`,
          [trackingNumber],
        );
        // Webhooks come in any order, so only a webhook that the service generated later may replace the status. The status is
        // that of the shipment: its newest event can be a scan that was noted after the delivery.
        await transaction.query(
          `UPDATE ${schema}.parcels SET status = $2, status_at = $3
           WHERE tracking_number = $1 AND $2::text IS NOT NULL AND $3::timestamptz > coalesce(status_at, '-infinity')`,
          [trackingNumber, shipment?.statusMilestone, metadata?.generatedAt],
        );
        afterWrites({ trackingNumber, status: event.status });
      }),
  });
}
