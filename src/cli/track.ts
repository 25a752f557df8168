import type { Command } from 'commander';
import { ResultsNotReadyError, sortEvents, type Tracking } from 'tracking-client';
import {
  addServiceFlags,
  addShipmentFlags,
  buildIdOptions,
  buildInput,
  byOption,
  type Context,
  createClient,
  type NamedTrackersFlags,
  type ServiceFlags,
  type ShipmentFlags,
} from './flags.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { formatMilestone, formatTime, formatTimelineLine, plain } from './text.ts';

export function addTrack(program: Command, { terminal, logger, end }: Context): void {
  const command = program
    .command('track <number>')
    .summary('Print a timeline; create a tracker if needed (billed)')
    .description(
      'Print the timeline of a shipment. If the number has no tracker, this creates one, which is billed; ' +
        '`show` never creates one.',
    );
  addShipmentFlags(command).action(async (number: string, flags: ShipmentFlags) => {
    const { trackers } = createClient(flags, logger);
    const { signal } = terminal;
    const tracking = await trackers.track(buildInput(number, flags), { signal }).catch(ignoreNotReady);
    if (printTrackings([tracking], number, flags, terminal)) return;
    const name = plain(number);
    terminal.warn(`No results for ${name} yet; \`tracking-client watch ${name}\` waits for them`);
    end(EXIT.noResults);
  });
}

export function addShow(program: Command, { terminal, logger, end }: Context): void {
  const command = program
    .command('show <tracker>')
    .summary('Print the results of a tracker, and create nothing')
    .description('Print the results of a tracker. This never creates a tracker.')
    .addOption(byOption('number'));
  addServiceFlags(command).action(async (name: string, flags: NamedTrackersFlags) => {
    const { trackers } = createClient(flags, logger);
    const options = buildIdOptions(flags, terminal);
    const found =
      flags.by === 'number'
        ? await trackers.resultsByTrackingNumber(name, options).catch(ignoreNotReady)
        : [await trackers.results(name, options).catch(ignoreNotReady)];
    if (printTrackings(found ?? [], name, flags, terminal)) return;
    terminal.warn(`No results for ${plain(name)}; \`tracking-client list\` shows your trackers`);
    end(EXIT.noResults);
  });
}

/** Turns the error for missing results into undefined. */
export function ignoreNotReady(error: unknown): undefined {
  if (error instanceof ResultsNotReadyError) return undefined;
  throw error;
}

/** Prints the milestone and the events of shipments, or all of them as JSON; returns false if there are no events. */
function printTrackings(
  trackings: readonly (Tracking | undefined)[],
  number: string,
  { json }: ServiceFlags,
  terminal: Terminal,
): boolean {
  const { colours } = terminal;
  let hasEvents = false;
  for (const tracking of trackings) {
    if (tracking === undefined) continue;
    const { tracker, shipment } = tracking;
    const events = sortEvents(tracking.events ?? []);
    hasEvents ||= events.length > 0;
    if (json) terminal.printJson(tracking);
    if (json || events.length === 0) continue;
    const title = colours.bold(plain(tracker?.trackingNumber ?? number));
    terminal.print(`${title}  ${formatMilestone(shipment?.statusMilestone, colours)}`);
    const expected = shipment?.delivery?.estimatedDeliveryDate;
    if (expected) terminal.print(`  expected ${formatTime(expected).trim()}`);
    for (const event of events) terminal.print(formatTimelineLine(event, colours));
  }
  return hasEvents;
}
