import type { TrackingClient } from 'tracking-client';
import { forEachNamed, type NamedTrackersOptions } from './named-trackers.ts';
import { print, printJson } from './terminal.ts';
import { plain } from './text.ts';

/** Stops tracking shipments, and frees their client ids. */
export function stop(
  client: TrackingClient,
  names: readonly string[],
  options: NamedTrackersOptions,
): Promise<number> {
  const { json, terminal } = options;
  return forEachNamed(client, names, options, async (id, request) => {
    const tracker = await client.trackers.update(id, { isSubscribed: false }, request);
    if (json) return printJson(terminal, tracker);
    const number = terminal.colours.bold(plain(tracker.trackingNumber));
    print(terminal, `${number}  no longer tracked  ${terminal.colours.dim(plain(tracker.trackerId))}`);
  });
}
