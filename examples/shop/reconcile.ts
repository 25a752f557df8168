// Reads the results of each order once a day, and the webhook history of delivered orders, because webhooks can be lost.
import type { TrackingClient } from 'tracking-client';
import { MemoryDedupeStore, WebhookInbox, type WebhookReport } from 'tracking-client/webhooks';
import type { Database } from './database.ts';
import { newsCallbacks, saveNews } from './webhooks.ts';

const BY_ORDER = { searchBy: 'clientTrackerId' } as const;

/** An order is due for half a year, and for a week after tracking has stopped, because its proof of delivery may come late. */
const TAKE = `WITH due AS (
  SELECT id FROM orders
  WHERE has_tracker AND results_taken_at < now() - interval '1 day'
    AND placed_at > now() - interval '180 days' AND (stopped_at IS NULL OR stopped_at > now() - interval '7 days')
  ORDER BY results_taken_at LIMIT 100 FOR UPDATE SKIP LOCKED
)
UPDATE orders SET results_taken_at = now() FROM due WHERE orders.id = due.id RETURNING orders.id`;

/** Reads the orders that are due. An order whose request fails is read again the next day. */
export async function reconcile(db: Database, client: TrackingClient, signal?: AbortSignal): Promise<void> {
  async function* takeOrders(): AsyncGenerator<string> {
    for (;;) {
      const rows = await db.query<{ id: string }>(TAKE);
      if (rows.length === 0) return;
      yield* rows.map(({ id }) => id);
    }
  }

  const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
  const callbacks = newsCallbacks(db);
  for await (const item of client.trackers.resultsMany(takeOrders(), { ...BY_ORDER, signal })) {
    const { id, tracking, error } = item;
    try {
      if (error !== undefined) throw error;
      if (tracking === undefined) continue; // no news yet
      checkReport(await inbox.processResults(item, callbacks));
      // Without new events, no callback has saved the status.
      await saveNews(db, id, item, tracking.shipment);
      // Results never contain a proof of delivery.
      if (tracking.shipment?.statusMilestone === 'delivered') {
        const history = await client.trackers.webhookHistory(id, { ...BY_ORDER, signal });
        checkReport(await inbox.processHistory(history, callbacks));
      }
      const stop = 'UPDATE orders SET stopped_at = now() WHERE id = $1 AND stopped_at IS NULL';
      if (item.stopped) await db.query(stop, [id]);
    } catch (failure) {
      if (signal?.aborted) return;
      console.error(`Order ${id} was not checked:`, failure);
    }
  }
}

function checkReport({ outcome }: WebhookReport): void {
  if (outcome !== 'done' && outcome !== 'rejected') throw new Error(`Not all news were saved: ${outcome}`);
}
