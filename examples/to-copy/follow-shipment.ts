// Follows one shipment: creates its tracker, reports each poll, and ends when the service stops tracking it.
import type { PollOptions, PollUpdate, TrackingClient } from 'tracking-client';
import { sortEvents } from 'tracking-client/events';

/**
 * @param rhythm - the intervals of the polls; couriers report a few times a day
 * @param onUpdate - called after each poll, with the new events oldest first
 * @returns the last update; `stopped` is false if `rhythm.maxDurationMs` ended the polls
 */
export async function followShipment(
  client: TrackingClient,
  trackingNumber: string,
  rhythm: PollOptions,
  onUpdate: (update: PollUpdate) => void,
): Promise<PollUpdate | undefined> {
  const { trackerId } = await client.trackers.create({ trackingNumber });
  let last: PollUpdate | undefined;
  for await (const update of client.trackers.poll(trackerId, rhythm)) {
    last = { ...update, newEvents: sortEvents(update.newEvents) };
    onUpdate(last);
  }
  return last;
}
