import type { Command } from 'commander';
import { ResultsNotReadyError, sortEvents } from 'tracking-client';
import { addShipmentFlags, buildInput, type Context, createClient, type ShipmentFlags } from './flags.ts';
import { EXIT } from './terminal.ts';
import { formatMilestone, formatTime, formatTimelineLine, plain } from './text.ts';

export function addTrack(program: Command, { terminal, logger, end }: Context): void {
  const command = program.command('track <number>').description('print the timeline of one shipment');
  addShipmentFlags(command).action(async (number: string, flags: ShipmentFlags) => {
    const { colours, signal } = terminal;
    const { trackers } = createClient(flags, logger);
    const tracking = await trackers.track(buildInput(number, flags), { signal }).catch((error: unknown) => {
      if (error instanceof ResultsNotReadyError) return undefined;
      throw error;
    });
    const events = sortEvents(tracking?.events ?? []);
    if (flags.json && tracking !== undefined) terminal.printJson(tracking);
    if (tracking === undefined || events.length === 0) {
      const name = plain(number);
      terminal.warn(`There are no results for ${name} yet. To wait for them: tracking-client watch ${name}`);
      return end(EXIT.noResults);
    }
    if (flags.json) return;
    const { tracker, shipment } = tracking;
    const title = colours.bold(plain(tracker?.trackingNumber ?? number));
    terminal.print(`${title}  ${formatMilestone(shipment?.statusMilestone, colours)}`);
    const expected = shipment?.delivery?.estimatedDeliveryDate;
    if (expected) terminal.print(`  expected ${formatTime(expected).trim()}`);
    for (const event of events) terminal.print(formatTimelineLine(event, colours));
  });
}
