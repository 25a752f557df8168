import { inspect, stripVTControlCharacters } from 'node:util';
import Table from 'cli-table3';
import { parseOccurrenceDatetime, type TrackingEvent } from 'tracking-client';
import type { Colours } from './terminal.ts';

/**
 * Formats a foreign value as one line without control characters. Responses keep fields of another type than
 * documented, so anything may come; null and undefined become an empty text.
 */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return '';
  return stripVTControlCharacters(typeof value === 'string' ? value : inspect(value, INSPECT_OPTIONS))
    .replace(/[\p{Cc}\p{Bidi_Control}\s]+/gu, ' ')
    .trim();
}

/** Limits the length of a value that is not a string. */
const INSPECT_OPTIONS = {
  depth: 1,
  maxArrayLength: 5,
  maxStringLength: 100,
  breakLength: Number.POSITIVE_INFINITY,
};

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Formats the time of an event as its local clock showed it: `19 Nov 16:33`, or `19 Nov 2025` in another year. */
export function formatTime(occurrenceDatetime: unknown): string {
  const text = plain(occurrenceDatetime);
  const occurrence = parseOccurrenceDatetime(text);
  if (occurrence === undefined) return text;
  const [year = 0, month = 0, day = 0] = occurrence.date.split('-').map(Number);
  const date = `${String(day).padStart(2)} ${MONTHS[month - 1]}`;
  if (year !== new Date().getFullYear()) return `${date} ${year}`;
  if (occurrence.kind === 'date') return date;
  const minutes = Math.floor(occurrence.timeMs / 60_000);
  const parts = [Math.floor(minutes / 60), minutes % 60];
  return `${date} ${parts.map((part) => String(part).padStart(2, '0')).join(':')}`;
}

export function formatClock(atMs: number, colours: Colours): string {
  return colours.dim(new Date(atMs).toTimeString().slice(0, 8));
}

export function formatMilestone(milestone: unknown, colours: Colours): string {
  const text = plain(milestone ?? 'unknown');
  if (text === 'delivered') return colours.green(text);
  if (text === 'exception') return colours.red(text);
  return text === 'failed_attempt' ? colours.yellow(text) : colours.cyan(text);
}

export function formatEvent(event: Omit<TrackingEvent, 'eventId'>, colours: Colours): string {
  const { status, statusCode, statusMilestone, location } = event;
  const text = plain(status ?? statusCode ?? statusMilestone ?? 'unknown');
  const place = plain(location);
  return place === '' ? text : `${text} ${colours.dim(`· ${place}`)}`;
}

export function formatTimelineLine(event: TrackingEvent, colours: Colours): string {
  const { statusMilestone, occurrenceDatetime } = event;
  const mark = statusMilestone === 'delivered' ? colours.green('●') : colours.cyan('○');
  const time = colours.dim((formatTime(occurrenceDatetime) || 'no time').padEnd(12));
  return `  ${statusMilestone === 'exception' ? colours.red('●') : mark} ${time}  ${formatEvent(event, colours)}`;
}

export const NONE_TRACKED = 'None of your trackers is tracked any more; `tracking-client list` shows them';

const NO_LINES = Object.fromEntries(
  ['top', 'bottom', 'left', 'mid', 'right', 'middle'].flatMap((side) =>
    ['', '-mid', '-left', '-right'].map((part) => [side + part, '']),
  ),
);

/** Formats a table without lines, so that text copied out of a terminal holds no line characters. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...head],
    chars: NO_LINES,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 2 },
  });
  for (const row of rows) table.push([...row]);
  return table.toString().replace(/ +$/gm, '');
}
