import type { Courier, TrackingClient } from 'tracking-client';
import { tableText } from './table.ts';
import { EXIT, print, printJson, type Terminal, warn } from './terminal.ts';
import { plain } from './text.ts';

/** Prints the couriers whose code, name or country holds a text. */
export async function couriers(
  client: TrackingClient,
  text: string,
  { json, terminal }: { readonly json?: boolean | undefined; readonly terminal: Terminal },
): Promise<number> {
  const all = await client.couriers.list({ signal: terminal.signal });
  const wanted = text.toLowerCase();
  const found = all.filter(({ courierCode, courierName, countryCode }) =>
    [courierCode, courierName, countryCode].some((value) => value?.toLowerCase().includes(wanted)),
  );
  if (found.length === 0) {
    warn(terminal, `No courier has ${JSON.stringify(plain(text))} in its code, name or country`);
    return EXIT.noResults;
  }
  if (json) for (const courier of found) printJson(terminal, courier);
  else print(terminal, tableText(['Code', 'Name', 'Country', 'Needs'], found.map(courierCells)));
  return EXIT.done;
}

function courierCells({ courierCode, courierName, countryCode, requiredFields, isDeprecated }: Courier) {
  const needs = [...(requiredFields ?? []), ...(isDeprecated ? ['(deprecated)'] : [])].join(', ');
  return [courierCode, courierName ?? '', countryCode ?? '', needs].map(plain);
}
