import type { Command } from 'commander';
import { ResultsNotReadyError, sortEvents, type TrackerInput, type TrackingClient } from 'tracking-client';
import { addShipmentFlags, buildInput, type Context, createClient, type ShipmentFlags } from './flags.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { formatMilestone, formatTime, formatTimelineLine, plain } from './text.ts';

export function addTrack(program: Command, { terminal, logger, end }: Context): void {
  const command = program.command('track <number>').description('print the timeline of one shipment');
  addShipmentFlags(command).action(async (number: string, flags: ShipmentFlags) => {
    end(await track(createClient(flags, logger), buildInput(number, flags), flags, terminal));
  });
}

/** Prints the events of one shipment, oldest first. */
async function track(
  client: TrackingClient,
  input: TrackerInput,
  { json }: ShipmentFlags,
  terminal: Terminal,
): Promise<number> {
  const { colours, signal } = terminal;
  const tracking = await client.trackers.track(input, { signal }).catch((error: unknown) => {
    if (error instanceof ResultsNotReadyError) return undefined;
    throw error;
  });
  const events = sortEvents(tracking?.events ?? []);
  if (json && tracking !== undefined) terminal.printJson(tracking);
  if (tracking === undefined || events.length === 0) {
    const number = plain(input.trackingNumber);
    terminal.warn(`Nothing is known of ${number} yet. To wait for it: tracking-client watch ${number}`);
    return EXIT.noResults;
  }
  if (json) return EXIT.done;
  const { tracker, shipment } = tracking;
  const title = colours.bold(plain(tracker?.trackingNumber ?? input.trackingNumber));
  terminal.print(`${title}  ${formatMilestone(shipment?.statusMilestone, colours)}`);
  const expected = shipment?.delivery?.estimatedDeliveryDate;
  if (expected) terminal.print(`  expected ${formatTime(expected).trim()}`);
  for (const event of events) terminal.print(formatTimelineLine(event, colours));
  return EXIT.done;
}
