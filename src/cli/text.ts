import { stripVTControlCharacters } from 'node:util';
import type { TrackingEvent } from 'tracking-client';
import { parseOccurrenceDatetime } from 'tracking-client/webhooks';
import type { Colours } from './terminal.ts';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Text of others on one line, without characters that a terminal obeys. */
export function plain(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\p{Cc}\p{Bidi_Control}\s]+/gu, ' ')
    .trim();
}

/** A milestone in the colour of how well it goes. */
export function milestoneText(milestone: string | null | undefined, colours: Colours): string {
  const text = plain(milestone ?? 'unknown');
  if (text === 'delivered') return colours.green(text);
  if (text === 'exception') return colours.red(text);
  return text === 'failed_attempt' ? colours.yellow(text) : colours.cyan(text);
}

/** Describes an event in the courier's own words, with its location. */
export function eventText(event: Omit<TrackingEvent, 'eventId'>, colours: Colours): string {
  const { status, statusCode, statusMilestone, location } = event;
  const what = plain(status ?? statusCode ?? statusMilestone ?? 'unknown');
  return location ? `${what} ${colours.dim(`· ${plain(location)}`)}` : what;
}

/** When an event happened, as the clock on the spot said: `19 Nov 16:33`; of another year, `19 Nov 2025`. */
export function timeText(occurrenceDatetime: string | null | undefined): string {
  const occurrence = parseOccurrenceDatetime(occurrenceDatetime ?? '');
  if (occurrence === undefined) return plain(occurrenceDatetime ?? '');
  const [year = 0, month = 0, day = 0] = occurrence.date.split('-').map(Number);
  const date = `${String(day).padStart(2)} ${MONTHS[month - 1]}`;
  if (year !== new Date().getFullYear()) return `${date} ${year}`;
  if (occurrence.kind === 'date') return date;
  const minutes = Math.floor(occurrence.timeMs / 60_000);
  const twoDigits = (count: number) => String(count).padStart(2, '0');
  return `${date} ${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
}

/** An event as a line of a timeline. */
export function timelineLine(event: TrackingEvent, colours: Colours): string {
  const { statusMilestone, occurrenceDatetime } = event;
  const mark = statusMilestone === 'delivered' ? colours.green('●') : colours.cyan('○');
  const when = colours.dim((timeText(occurrenceDatetime) || 'no time').padEnd(12));
  return `  ${statusMilestone === 'exception' ? colours.red('●') : mark} ${when}  ${eventText(event, colours)}`;
}
