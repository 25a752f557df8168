// Webhooks whose events take effect exactly once: the inbox row and your own writes are one transaction. The table has the
// number of events and the newest status of each parcel.
import { TransactionalInbox, type TransactionSource } from 'tracking-client/postgres';
import { createWebhookHandler, isNewerEvent, type WebhookEvent } from 'tracking-client/webhooks';

/** The SQL of the table, for a migration. */
export const PARCELS_SQL = (schema: string) => `CREATE TABLE ${schema}.parcels (
  tracking_number text PRIMARY KEY, counted integer NOT NULL, status text, last_event text
)`;

export interface ParcelWebhooksOptions {
  readonly schema: string;
  /** More work of your app in the transaction. If it throws, the transaction is rolled back and the webhook comes again. */
  afterWrites(news: { trackingNumber: string; status: string | null | undefined }): void;
}

export function parcelWebhooks(
  pool: TransactionSource,
  secret: string | undefined,
  { schema, afterWrites }: ParcelWebhooksOptions,
) {
  const inbox = new TransactionalInbox({
    pool,
    table: `${schema}.inbox`,
    onError: (error) => console.log('rolled back:', error instanceof Error ? error.message : error),
  });
  const webhooks = createWebhookHandler({
    secret,
    inbox,
    onEvent: async (event, { transaction, message }) => {
      const trackingNumber = message.tracker.trackingNumber ?? '';
      // Counting shows the danger of repeats: each would add one. The write also locks the row until the end of the transaction,
      // so that no other transaction changes `last_event` meanwhile.
      const { rows } = await transaction.query(
        `INSERT INTO ${schema}.parcels VALUES ($1, 1)
         ON CONFLICT (tracking_number) DO UPDATE SET counted = parcels.counted + 1 RETURNING last_event`,
        [trackingNumber],
      );
      // Sound: the statement above returns `last_event`, which only the statement below writes.
      const [{ last_event } = { last_event: null }] = rows as { last_event: string | null }[];
      const known: WebhookEvent | null = last_event === null ? null : JSON.parse(last_event);
      // Webhooks come in any order: an older status must not replace a newer one.
      if (isNewerEvent(event, known)) {
        await transaction.query(
          `UPDATE ${schema}.parcels SET status = $2, last_event = $3 WHERE tracking_number = $1`,
          [trackingNumber, event.status, JSON.stringify(event)],
        );
      }
      afterWrites({ trackingNumber, status: event.status });
    },
  });
  // Instead of `createTable`, a migration can run the SQL of `inboxTableSql()`.
  return { webhooks, createTable: () => inbox.createTable() };
}
