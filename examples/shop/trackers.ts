// Creates trackers for the orders that have none, so that placing an order never waits for the tracking service.
import type { TrackerInput, TrackingClient } from 'tracking-client';
import type { Database } from './database.ts';

/** The client or the service refuses this input, and would refuse it again. */
const REFUSALS = ['validation_error', 'missing_mandatory_field', 'parsing_error', 'shipping_date_outdated'];
/** The id of the order has a tracker with other data, which only a mistake in the shop can cause. */
const CONFLICTS = ['tracker_conflict', 'request_conflict'];
/** No other order would get a tracker now. */
const STOPS = ['quota_limit_reached', 'no_active_subscription', 'auth_invalid_api_key'];

/**
 * Whatever fails or dies is tried again after 30 seconds. Until then the order is taken, so no two requests for it run at once. The
 * input stays the same, so the service returns the tracker of an earlier attempt, which costs nothing.
 */
const TAKE = `WITH due AS (
  SELECT id FROM orders
  WHERE NOT has_tracker AND refused IS NULL AND tracker_taken_at < now() - interval '30 seconds'
  ORDER BY placed_at LIMIT 100 FOR UPDATE SKIP LOCKED
)
UPDATE orders SET tracker_taken_at = now() FROM due WHERE orders.id = due.id RETURNING orders.id, orders.parcel`;

/** Runs one round. The message of its error says why it stopped before all orders were tried. */
export async function createTrackers(db: Database, client: TrackingClient, signal?: AbortSignal) {
  let problem: string | undefined;
  async function* takeOrders(): AsyncGenerator<TrackerInput> {
    while (problem === undefined) {
      const rows = await db.query<{ id: string; parcel: TrackerInput }>(TAKE);
      if (rows.length === 0) return;
      yield* rows.map(({ id, parcel }) => ({ ...parcel, clientTrackerId: id }));
    }
  }

  // A request ends before its orders are taken again.
  const run = client.trackers.createMany(takeOrders(), { totalTimeoutMs: 20_000, signal });
  for await (const { input, status, errors = [] } of run) {
    const id = input.clientTrackerId;
    const codes = errors.map(({ code }) => code);
    const reason = errors.map(({ code, message }) => message ?? code).join('; ');
    const isConflict = codes.some((code) => CONFLICTS.includes(code));
    if (status === 'created' || status === 'existing') {
      await db.query('UPDATE orders SET has_tracker = true WHERE id = $1', [id]);
    } else if (isConflict || codes.some((code) => REFUSALS.includes(code))) {
      await db.query('UPDATE orders SET refused = $2 WHERE id = $1', [id, reason]);
      if (isConflict) problem ??= `Order ${id} has a tracker with other data: ${reason}`;
    } else if (codes.some((code) => STOPS.includes(code))) {
      problem ??= `No tracker can be created now: ${reason}`;
    } else {
      console.error(`Order ${id} has no tracker yet and is tried again: ${reason}`);
    }
  }
  if (problem !== undefined) throw new Error(problem);
}
