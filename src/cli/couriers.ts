import type { Command } from 'commander';
import type { Courier, TrackingClient } from 'tracking-client';
import { addServiceFlags, type Context, createClient, type ServiceFlags } from './flags.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { formatTable, plain } from './text.ts';

export function addCouriers(program: Command, { terminal, logger, end }: Context): void {
  const command = program
    .command('couriers [text]')
    .description('list couriers: all, or those that contain a text');
  addServiceFlags(command).action(async (text: string | undefined, flags: ServiceFlags) => {
    end(await printCouriers(createClient(flags, logger), text ?? '', flags, terminal));
  });
}

/** Prints the couriers whose code, name or country contains a text. */
async function printCouriers(
  client: TrackingClient,
  text: string,
  { json }: ServiceFlags,
  terminal: Terminal,
): Promise<number> {
  const couriers = await client.couriers.list({ signal: terminal.signal });
  const wanted = text.toLowerCase();
  const found = couriers.filter(({ courierCode, courierName, countryCode }) =>
    [courierCode, courierName, countryCode].some((value) => value?.toLowerCase().includes(wanted)),
  );
  if (found.length === 0) {
    terminal.warn(`No courier has ${JSON.stringify(plain(text))} in its code, name or country`);
    return EXIT.noResults;
  }
  if (json) for (const courier of found) terminal.printJson(courier);
  else terminal.print(formatTable(['Code', 'Name', 'Country', 'Needs'], found.map(formatCells)));
  return EXIT.done;
}

function formatCells({ courierCode, courierName, countryCode, requiredFields, isDeprecated }: Courier) {
  const needs = [...(requiredFields ?? []), ...(isDeprecated ? ['(deprecated)'] : [])].join(', ');
  return [courierCode, courierName ?? '', countryCode ?? '', needs].map(plain);
}
