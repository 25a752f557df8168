import type { Tracker, TrackingClient } from 'tracking-client';
import { tableText } from './table.ts';
import { EXIT, print, printJson, type Terminal, warn } from './terminal.ts';
import { plain, timeText } from './text.ts';

export interface ListOptions {
  /** Trackers to print at most. Default 100. */
  readonly limit?: number | undefined;
  /** True to leave out what the service tracks no more. */
  readonly tracked?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly terminal: Terminal;
}

const DEFAULT_LIMIT = 100;
const MAX_PAGE_SIZE = 500;

/** Prints the trackers of the account, newest first. */
export async function list(
  client: TrackingClient,
  { limit = DEFAULT_LIMIT, tracked = false, json, terminal }: ListOptions,
): Promise<number> {
  const found: Tracker[] = [];
  let count = 0;
  let hasMore = false;
  // With a filter, nobody knows how many have to be looked at.
  const pageSize = tracked ? MAX_PAGE_SIZE : Math.min(limit + 1, MAX_PAGE_SIZE);
  const all = client.trackers.listAll({ sort: -1, limit: pageSize, signal: terminal.signal });
  for await (const tracker of all) {
    if (tracked && !tracker.isTracked) continue;
    hasMore = count >= limit;
    if (hasMore) break;
    count += 1;
    if (json) printJson(terminal, tracker);
    else found.push(tracker);
  }
  if (found.length > 0) print(terminal, trackersTable(found, terminal));
  if (count === 0)
    warn(terminal, tracked ? 'The service tracks none of your trackers' : 'There are no trackers');
  if (hasMore) warn(terminal, `The newest ${limit}; --limit shows more`);
  return EXIT.done;
}

function trackersTable(trackers: readonly Tracker[], { colours }: Terminal): string {
  const rows = trackers.map(({ trackingNumber, isTracked, createdAt, trackerId, clientTrackerId }) => [
    plain(trackingNumber),
    isTracked ? colours.green('tracked') : colours.dim('stopped'),
    // The time of day would push the ids off a screen of 80 columns.
    timeText(createdAt?.slice(0, 10)),
    plain(trackerId),
    plain(clientTrackerId ?? ''),
  ]);
  const head = ['Number', 'State', 'Created', 'Id', 'Client id'];
  const width = rows.some((cells) => cells.at(-1) !== '') ? head.length : head.length - 1;
  return tableText(
    head.slice(0, width),
    rows.map((cells) => cells.slice(0, width)),
  );
}
