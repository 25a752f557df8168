import { once } from 'node:events';
import type { WriteStream } from 'node:tty';
import { inspect, stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import {
  deliveryEstimate,
  describeMilestone,
  parseOccurrenceDatetime,
  RequestValidationError,
  type Shipment,
  type TrackingEvent,
} from 'tracking-client';
import { readError } from '../common/foreign.ts';
import { wrap } from './layout.ts';

export type Colours = ReturnType<typeof pc.createColors>;

type OutputStream = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;

export type Terminal = ReturnType<typeof createTerminal>;

/** `NO_COLOR` is stronger than `FORCE_COLOR`, which also colours files and pipes. */
function createColours({ isTTY = false }: OutputStream): Colours {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  const isWanted = FORCE_COLOR ? !['0', 'false'].includes(FORCE_COLOR) : isTTY && TERM !== 'dumb';
  return pc.createColors(isWanted && !NO_COLOR);
}

/** @param signal - aborts on Ctrl-C and SIGTERM, and with an `OutputError` when the output is closed */
export function createTerminal(stdout: OutputStream, stderr: OutputStream, signal: AbortSignal) {
  const colours = createColours(stdout);
  const errorColours = createColours(stderr);
  let shownStatus = '';
  const write = (stream: OutputStream, text: string, status = shownStatus) => {
    // Ctrl-C may have printed `^C`, so first go to column 1; then go up to the status line and clear it.
    if (shownStatus !== '') stdout.write('\r\u001b[1A\u001b[0J');
    stream.write(text);
    if (status !== '') stdout.write(status);
    shownStatus = status;
  };
  const print = (line: string) => write(stdout, `${line}\n`);
  /** A pipe has no width, unless COLUMNS sets one. Some terminals report 0. */
  const findWidth = ({ columns }: OutputStream) =>
    columns || Number(process.env['COLUMNS']) || Number.POSITIVE_INFINITY;
  const printError = (line: string, start = '') => write(stderr, `${wrap(start, line, findWidth(stderr))}\n`);
  return {
    stdout,
    stderr,
    colours,
    /** Colours for `stderr`, which may be a file while `stdout` is a terminal. */
    errorColours,
    signal,
    /** The exit code of a command that ends without an error. */
    exitCode: EXIT.done,
    print,
    /** Number of columns; `Infinity` for a pipe. */
    get width() {
      return findWidth(stdout);
    },
    get errorWidth() {
      return findWidth(stderr);
    },
    printError,
    warn: (line: string) => printError(errorColours.yellow(line)),
    /** Prints one line of JSON; escapes characters that a terminal obeys or that other readers take for the end of a line. */
    printJson(value: unknown): void {
      const toEscape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
      print(JSON.stringify(value).replace(/[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, toEscape));
    },
    /** Shows a line below all other lines, cut to the width of the screen. Shows nothing if the output is a pipe or a file. */
    showStatus(line: string): void {
      const [shown = ''] = wrap('', line, findWidth(stdout)).split('\n');
      // Without line wrap, the line cannot become two when the screen gets narrower.
      if (stdout.isTTY) write(stdout, '', `\u001b[?7l${colours.dim(shown)}\u001b[?7h\n`);
    },
  };
}

export const EXIT = {
  done: 0,
  /** The service refused or failed, the network or the output failed, or at least one tracker or row failed. */
  failed: 1,
  /** An argument, a file or the environment is wrong, and nothing was sent. */
  usage: 2,
  noResults: 3,
  /** Ctrl-C ended the command before it was done; shells use the same code. */
  interrupted: 130,
};

export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = EXIT.usage) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Ends the command when nothing more can be printed. A reader that closes early, such as `head`, is not a failure. */
export class OutputError extends CommandError {
  constructor(error: NodeJS.ErrnoException) {
    const hasLeft = error.code === 'EPIPE';
    super(hasLeft ? '' : `Could not print: ${formatReason(error)}`, hasLeft ? EXIT.done : EXIT.failed);
  }
}

/** Formats the reason of an error for a person: `permission denied (EACCES)` for a system error, else the message. */
export function formatReason(error: unknown): string {
  const fields = readError(error);
  if (fields === undefined) return String(error);
  if (error instanceof RequestValidationError)
    return error.issues.slice(0, MAX_ISSUES).map(nameFlag).join('; ');
  const [, code, reason] = /\b(E[A-Z0-9]+): ([^,]+?)(?: [\d.:]+)?(?:,|$)/.exec(fields.message) ?? [];
  return code === undefined ? fields.message : `${reason} (${code})`;
}

const MAX_ISSUES = 3;

/** The flags that fill fields of an input. */
const FLAG_BY_FIELD: Readonly<Record<string, string>> = {
  courierCode: '--courier',
  destinationCountryCode: '--destination',
  destinationPostCode: '--post-code',
};

/** The user of the command knows the flags, and not the fields that the flags fill. */
function nameFlag({ path: [field = ''], rule, message }: RequestValidationError['issues'][number]): string {
  const flag = FLAG_BY_FIELD[field];
  return flag === undefined ? message : `Expected \`${flag}\` ${rule}`;
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

export function explainListenFailure(error: unknown, host: string, port: number): CommandError {
  const reason = `Could not listen on port ${port} of ${host}: ${formatReason(error)}`;
  return new CommandError(`${reason}; choose another --port or --host`, EXIT.failed);
}

/**
 * Formats a value from outside as one line without control characters. The client keeps fields whose type is not the documented
 * one, so the value can be of any type. Null and undefined become an empty text.
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

/**
 * Formats the time of an event without converting it: `19 Nov 16:33`, `19 Nov 16:33 UTC`, or `19 Nov 2025` for an event of another
 * year.
 */
export function formatTime(occurrenceDatetime: unknown): string {
  const text = plain(occurrenceDatetime);
  const occurrence = parseOccurrenceDatetime(text);
  if (occurrence === undefined) return text;
  const [year = 0, month = 0, day = 0] = occurrence.date.split('-').map(Number);
  const date = `${String(day).padStart(2)} ${MONTHS[month - 1]}`;
  // A time with the offset +00:00 is UTC, too, and not the local time of the event.
  const zone = 'offsetMinutes' in occurrence && occurrence.offsetMinutes === 0 ? ' UTC' : '';
  if (year !== new Date().getFullYear()) return `${date} ${year}${zone}`;
  if (occurrence.kind === 'date') return date;
  const minutes = Math.floor(occurrence.timeMs / 60_000);
  const parts = [Math.floor(minutes / 60), minutes % 60];
  return `${date} ${parts.map((part) => String(part).padStart(2, '0')).join(':')}${zone}`;
}

/**
 * Formats when a shipment is expected: one time, or the beginning and the end of a window; empty if there is no estimate. Services keep
 * the estimate after the delivery, when it helps nobody.
 */
export function formatEstimate(shipment: Shipment | null | undefined): string {
  if (shipment?.statusMilestone === 'delivered') return '';
  const { from, to } = deliveryEstimate(shipment) ?? {};
  const times = [from, to].filter((text) => text !== undefined).map((text) => formatTime(text).trim());
  return [...new Set(times)].join(' to ');
}

export function formatClock(atMs: number, colours: Colours): string {
  return colours.dim(new Date(atMs).toTimeString().slice(0, 8));
}

export function formatMilestone(milestone: unknown, colours: Colours): string {
  const code = plain(milestone ?? 'unknown');
  const text = describeMilestone(code);
  if (code === 'delivered') return colours.green(text);
  if (code === 'exception') return colours.red(text);
  return code === 'failed_attempt' ? colours.yellow(text) : colours.cyan(text);
}

export function formatEvent(event: Omit<TrackingEvent, 'eventId'>, colours: Colours): string {
  const { status, statusCode, statusMilestone, location } = event;
  const text = plain(status ?? statusCode) || describeMilestone(plain(statusMilestone ?? 'unknown'));
  const place = formatPlace(location);
  return place === '' ? text : `${text} ${colours.dim(`· ${place}`)}`;
}

/** Some couriers send an object as the place (docs/service.md 2.21). Only its texts are worth printing. */
function formatPlace(location: unknown): string {
  const parts = typeof location === 'object' && location !== null ? Object.values(location) : [location];
  return parts
    .filter((part) => typeof part === 'string')
    .map(plain)
    .filter((part) => part !== '')
    .join(', ');
}

const TIME_WIDTH = '19 Nov 16:33 UTC'.length;

/** @param start - stands before the mark, the time and the text of the event */
export function formatTimelineLine(
  event: TrackingEvent,
  { width, colours }: Pick<Terminal, 'width' | 'colours'>,
  start = '',
): string {
  const { statusMilestone, occurrenceDatetime } = event;
  const mark = statusMilestone === 'delivered' ? colours.green('●') : colours.cyan('○');
  const time = colours.dim((formatTime(occurrenceDatetime) || 'no time').padEnd(TIME_WIDTH));
  const before = `${start}  ${statusMilestone === 'exception' ? colours.red('●') : mark} ${time}  `;
  return wrap(before, formatEvent(event, colours), width);
}

export const NONE_TRACKED =
  'No shipment of this account is being tracked; `npx --no-install tracking-client list` shows all trackers';
