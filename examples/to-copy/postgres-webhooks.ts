// Webhooks whose events take effect exactly once: the inbox row and your own writes are one transaction. Each parcel has a
// count of its events, and its newest status.
import { TransactionalInbox, type TransactionSource } from 'tracking-client/postgres';
import { createWebhookHandler, isNewerEvent, type WebhookEvent } from 'tracking-client/webhooks';

/** For a migration. */
export const PARCELS_SQL = (schema: string) => `CREATE TABLE ${schema}.parcels (
  tracking_number text PRIMARY KEY, counted integer NOT NULL, status text, last_event text
)`;

export interface ParcelWebhooksOptions {
  readonly schema: string;
  /** What else your app does in the transaction; when it throws, all is undone and the webhook comes again. */
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
    onError: (error) => console.log('undone:', error instanceof Error ? error.message : error),
  });
  const webhooks = createWebhookHandler({
    secret,
    inbox,
    onEvent: async (event, { transaction, message }) => {
      const trackingNumber = message.tracker.trackingNumber ?? '';
      // Counting up is the write that suffers from every repeat and every half-done try. It also locks the row until the end
      // of the transaction, so nobody changes `last_event` meanwhile.
      const { rows } = await transaction.query(
        `INSERT INTO ${schema}.parcels VALUES ($1, 1)
         ON CONFLICT (tracking_number) DO UPDATE SET counted = parcels.counted + 1 RETURNING last_event`,
        [trackingNumber],
      );
      // Sound: this is what the statement above returns, and the one below has written.
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
  // Or put the text of inboxTableSql() into a migration of your own.
  return { webhooks, createTable: () => inbox.createTable() };
}
