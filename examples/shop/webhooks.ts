// Saves the news of webhooks and results: the event, the status of the order, and the mail about it, in one transaction.
import {
  advanceStatus,
  deliveryEstimate,
  type ShipmentStatus,
  type StatusNews,
} from 'tracking-client/events';
import {
  createWebhookHandler,
  type EventsMessage,
  MemoryDedupeStore,
  type WebhookCallbacks,
  type WebhookEvent,
} from 'tracking-client/webhooks';
import type { Database } from './database.ts';

/** @param event - none if only the status is new */
export function saveNews(
  db: Database,
  orderId: string | null | undefined,
  news: StatusNews,
  shipment: EventsMessage['shipment'],
  event?: { key: string; event: WebhookEvent },
): Promise<void> {
  return db.transaction(async (transaction) => {
    // The lock makes two webhooks of an order wait for each other. Otherwise the older one could be the last to write.
    const lock = 'SELECT status FROM orders WHERE id = $1 FOR UPDATE';
    const [order] = await transaction.query<{ status: ShipmentStatus | null }>(lock, [orderId]);
    // For example, the test button of the service's dashboard sends events of trackers that do not exist.
    if (order === undefined) return;
    if (event !== undefined) {
      const insert = 'INSERT INTO events VALUES ($1, $2, $3) ON CONFLICT DO NOTHING';
      await transaction.query(insert, [event.key, orderId, JSON.stringify(event.event)]);
    }
    const { status, changed, previous } = advanceStatus(order.status, news);
    if (status === undefined || status === previous) return;
    const estimate = deliveryEstimate(shipment) ?? null;
    const update = 'UPDATE orders SET status = $2, estimate = $3 WHERE id = $1';
    await transaction.query(update, [orderId, JSON.stringify(status), JSON.stringify(estimate)]);
    if (!changed || status.milestone === 'pending') return;
    const queueMail = 'INSERT INTO mails (order_id, milestone) VALUES ($1, $2) ON CONFLICT DO NOTHING';
    await transaction.query(queueMail, [orderId, status.milestone]);
  });
}

/** The callbacks for webhooks, and for the results and the histories that `reconcile.ts` reads. */
export function newsCallbacks(db: Database): WebhookCallbacks {
  return {
    onEvent: (event, { message, key }) =>
      saveNews(db, message.tracker.clientTrackerId, message, message.shipment, { key, event }),
    // The link to a file ends after seven days.
    onProofOfDelivery: async ({ tracker, data }) => {
      const update = 'UPDATE orders SET proof = $2 WHERE id = $1';
      await db.query(update, [tracker.clientTrackerId, JSON.stringify(data)]);
    },
  };
}

export function createReceiver(db: Database, secret: string) {
  // This store skips most duplicates early. The unique keys in the database stop all others, in any process and after a crash.
  return createWebhookHandler({ secret, store: new MemoryDedupeStore(), ...newsCallbacks(db) });
}
