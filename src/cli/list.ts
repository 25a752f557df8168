import type { Command } from 'commander';
import type { Tracker, TrackingClient } from 'tracking-client';
import { addServiceFlags, type Context, createClient, type ServiceFlags, wholeNumber } from './flags.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { formatTable, formatTime, plain } from './text.ts';

interface ListFlags extends ServiceFlags {
  readonly limit?: number;
  readonly tracked?: boolean;
}

const DEFAULT_LIMIT = 100;
/** A longer list is of no use to a person. */
const MAX_LIMIT = 100_000;
const MAX_PAGE_SIZE = 500;

export function addList(program: Command, { terminal, logger, end }: Context): void {
  const command = program
    .command('list')
    .description('list the trackers of the account, newest first')
    .option('--tracked', 'only those that are still tracked')
    .option('--limit <number>', 'how many at most (default: 100)', wholeNumber('limit', MAX_LIMIT));
  addServiceFlags(command).action(async (flags: ListFlags) => {
    end(await printTrackers(createClient(flags, logger), flags, terminal));
  });
}

/** Prints the trackers of the account, newest first. */
async function printTrackers(
  client: TrackingClient,
  { limit = DEFAULT_LIMIT, tracked = false, json }: ListFlags,
  terminal: Terminal,
): Promise<number> {
  const found: Tracker[] = [];
  let count = 0;
  let hasMore = false;
  // A filter may skip any number of trackers, so it reads the largest pages.
  const pageSize = tracked ? MAX_PAGE_SIZE : Math.min(limit + 1, MAX_PAGE_SIZE);
  const all = client.trackers.listAll({ sort: -1, limit: pageSize, signal: terminal.signal });
  for await (const tracker of all) {
    if (tracked && !tracker.isTracked) continue;
    hasMore = count >= limit;
    if (hasMore) break;
    count += 1;
    if (json) terminal.printJson(tracker);
    else found.push(tracker);
  }
  if (found.length > 0) terminal.print(formatTrackers(found, terminal));
  if (count === 0)
    terminal.warn(tracked ? 'The service tracks none of your trackers' : 'There are no trackers');
  if (hasMore) terminal.warn(`The newest ${limit}; --limit shows more`);
  return EXIT.done;
}

function formatTrackers(trackers: readonly Tracker[], { colours }: Terminal): string {
  const rows = trackers.map(({ trackingNumber, isTracked, createdAt, trackerId, clientTrackerId }) => [
    plain(trackingNumber),
    isTracked ? colours.green('tracked') : colours.dim('stopped'),
    // The time of day would push the ids off a screen of 80 columns.
    formatTime(createdAt?.slice(0, 10)),
    plain(trackerId),
    plain(clientTrackerId ?? ''),
  ]);
  const head = ['Number', 'State', 'Created', 'Id', 'Client id'];
  const width = rows.some((cells) => cells.at(-1) !== '') ? head.length : head.length - 1;
  return formatTable(
    head.slice(0, width),
    rows.map((cells) => cells.slice(0, width)),
  );
}
