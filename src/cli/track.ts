import { ResultsNotReadyError, type TrackerInput, type TrackingClient } from 'tracking-client';
import { sortEvents } from 'tracking-client/webhooks';
import { EXIT, print, printJson, type Terminal, warn } from './terminal.ts';
import { milestoneText, plain, timelineLine, timeText } from './text.ts';

/** Prints what is known of one shipment, oldest first. */
export async function track(
  client: TrackingClient,
  input: TrackerInput,
  { json, terminal }: { readonly json?: boolean | undefined; readonly terminal: Terminal },
): Promise<number> {
  const { colours, signal } = terminal;
  const tracking = await client.trackers.track(input, { signal }).catch((error: unknown) => {
    if (error instanceof ResultsNotReadyError) return undefined;
    throw error;
  });
  const events = sortEvents(tracking?.events ?? []);
  if (json && tracking !== undefined) printJson(terminal, tracking);
  if (tracking === undefined || events.length === 0) {
    const number = plain(input.trackingNumber);
    warn(terminal, `Nothing is known of ${number} yet. To wait for it: tracking-client watch ${number}`);
    return EXIT.noResults;
  }
  if (json) return EXIT.done;
  const { tracker, shipment } = tracking;
  const title = colours.bold(plain(tracker?.trackingNumber ?? input.trackingNumber));
  print(terminal, `${title}  ${milestoneText(shipment?.statusMilestone, colours)}`);
  const expected = shipment?.delivery?.estimatedDeliveryDate;
  if (expected) print(terminal, `  expected ${timeText(expected).trim()}`);
  for (const event of events) print(terminal, timelineLine(event, colours));
  return EXIT.done;
}
