import type { Command } from 'commander';
import { ResultsNotReadyError } from 'tracking-client';
import { addShipmentFlags, buildInput, type Context, createClient, type ShipmentFlags } from './flags.ts';
import { EXIT } from './terminal.ts';
import { plain, printTracking } from './text.ts';

export function addTrack(program: Command, { terminal, logger, end }: Context): void {
  const command = program
    .command('track <number>')
    .summary('Print a timeline; creates a tracker if needed (billed)')
    .description(
      'Print the timeline of a shipment. If the number has no tracker, this creates one, which is billed; ' +
        '`show` never creates one.',
    );
  addShipmentFlags(command).action(async (number: string, flags: ShipmentFlags) => {
    const { trackers } = createClient(flags, logger);
    const { signal } = terminal;
    const tracking = await trackers.track(buildInput(number, flags), { signal }).catch(ignoreNotReady);
    if (tracking !== undefined && printTracking(tracking, number, flags, terminal)) return;
    const name = plain(number);
    terminal.warn(`No results for ${name} yet; \`tracking-client watch ${name}\` waits for them`);
    end(EXIT.noResults);
  });
}

/** Turns the error for missing results into undefined. */
export function ignoreNotReady(error: unknown): undefined {
  if (error instanceof ResultsNotReadyError) return undefined;
  throw error;
}
