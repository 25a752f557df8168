import type { TrackingClient } from 'tracking-client';
import { forEachNamed, type NamedTrackersOptions } from './named-trackers.ts';
import { plain } from './text.ts';

/** Stops tracking shipments, and frees their client ids. */
export function stop(
  client: TrackingClient,
  names: readonly string[],
  options: NamedTrackersOptions,
): Promise<number> {
  const { colours } = options.terminal;
  return forEachNamed(client, names, options, async (id, request) => {
    const tracker = await client.trackers.update(id, { isSubscribed: false }, request);
    const number = colours.bold(plain(tracker.trackingNumber));
    return { value: tracker, text: `${number}  no longer tracked  ${colours.dim(plain(tracker.trackerId))}` };
  });
}
