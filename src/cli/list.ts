import type { Command } from 'commander';
import type { Courier, Tracker } from 'tracking-client';
import { addServiceFlags, type Context, createClient, type ServiceFlags, wholeNumber } from './flags.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { formatTable, formatTime, NONE_TRACKED, plain } from './text.ts';

interface ListFlags extends ServiceFlags {
  readonly limit: number;
  readonly tracked?: boolean;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 100_000;
const MAX_PAGE_SIZE = 500;
const NO_TRACKERS = 'This account has no trackers; `tracking-client track NUMBER` creates one';

export function addList(program: Command, { terminal, logger }: Context): void {
  const command = program
    .command('list')
    .description('List the trackers of the account, newest first')
    .option('--tracked', 'list only trackers that are still tracked')
    .option('--limit <number>', 'maximum number of trackers', wholeNumber('limit', MAX_LIMIT), DEFAULT_LIMIT);
  addServiceFlags(command).action(async (flags: ListFlags) => {
    const { limit, tracked = false, json } = flags;
    const found: Tracker[] = [];
    // The filter may skip any number of trackers, so read the largest pages.
    const pageSize = tracked ? MAX_PAGE_SIZE : Math.min(limit + 1, MAX_PAGE_SIZE);
    const { trackers } = createClient(flags, logger);
    for await (const tracker of trackers.listAll({ sort: -1, limit: pageSize, signal: terminal.signal })) {
      if (!tracked || tracker.isTracked) found.push(tracker);
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    if (json) for (const tracker of shown) terminal.printJson(tracker);
    else if (shown.length > 0) terminal.print(formatTrackers(shown, terminal));
    if (found.length > limit)
      terminal.warn(`These are the newest ${limit} trackers; a higher --limit shows more`);
    else if (found.length === 0) terminal.warn(tracked ? NONE_TRACKED : NO_TRACKERS);
  });
}

function formatTrackers(trackers: readonly Tracker[], { colours }: Terminal): string {
  const rows = trackers.map(({ trackingNumber, isTracked, createdAt, trackerId, clientTrackerId }) => [
    plain(trackingNumber),
    isTracked ? colours.green('tracked') : colours.dim('stopped'),
    // The time of day would push the ids off a screen of 80 columns.
    formatTime(plain(createdAt).slice(0, 10)),
    plain(trackerId),
    plain(clientTrackerId),
  ]);
  const head = ['Number', 'State', 'Created', 'Id', 'Client id'];
  const width = rows.some((cells) => cells.at(-1) !== '') ? head.length : head.length - 1;
  const cut = (cells: readonly string[]) => cells.slice(0, width);
  return formatTable(cut(head), rows.map(cut));
}

export function addCouriers(program: Command, { terminal, logger, end }: Context): void {
  const command = program
    .command('couriers [text]')
    .description('List all couriers, or those that match a text');
  addServiceFlags(command).action(async (text: string | undefined, flags: ServiceFlags) => {
    const wanted = (text ?? '').toLowerCase();
    const couriers = await createClient(flags, logger).couriers.list({ signal: terminal.signal });
    const found = couriers.filter(({ courierCode, courierName, countryCode }) =>
      [courierCode, courierName, countryCode].some((value) => plain(value).toLowerCase().includes(wanted)),
    );
    if (found.length === 0) {
      const what =
        text === undefined ? '' : ` with ${JSON.stringify(plain(text))} in its code, name or country`;
      terminal.warn(`No courier was found${what}; \`tracking-client couriers\` lists all`);
      end(EXIT.noResults);
    } else if (flags.json) for (const courier of found) terminal.printJson(courier);
    else terminal.print(formatTable(['Code', 'Name', 'Country', 'Needs'], found.map(formatCourier)));
  });
}

function formatCourier({ courierCode, courierName, countryCode, requiredFields, isDeprecated }: Courier) {
  const fields: readonly unknown[] = Array.isArray(requiredFields) ? requiredFields : [requiredFields];
  const needs = [...fields.map(plain), isDeprecated ? '(deprecated)' : ''].filter(Boolean).join(', ');
  return [...[courierCode, courierName, countryCode].map(plain), needs];
}
