// Prints headings, a line that changes in place, timelines and tables; without colours in a pipe.
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import { parseOccurrenceDatetime, type TrackingEvent } from 'tracking-client';

/** A screen with fewer columns gets no table, not even a small one. */
const MIN_TABLE_WIDTH = 80;

function screenWidth(): number {
  return process.stdout.columns || Number(process.env['COLUMNS']) || Number.POSITIVE_INFINITY;
}

/**
 * Prints a text, and breaks it between words if the screen is too narrow for one line.
 *
 * @param text - without its indent
 * @param start - printed before the text; all lines of the text begin in the same column
 */
export function print(text: string, start = '  '): void {
  const indent = ' '.repeat(stripVTControlCharacters(start).length);
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? start + word : `${line} ${word}`;
    const isTooLong = stripVTControlCharacters(longer).length > screenWidth();
    if (isTooLong && line !== '') console.log(line);
    line = isTooLong && line !== '' ? indent + word : longer;
  }
  console.log(line);
}

export function heading(text: string): void {
  console.log();
  print(pc.bold(text), '');
}

const MARKS: Readonly<Record<string, string>> = {
  delivered: pc.green('●'),
  exception: pc.red('●'),
  failed_attempt: pc.yellow('●'),
};

/** The time as the courier wrote it. Only a UTC time needs a mark: other times are the local time at the place of the event. */
function formatTime(text: string | null | undefined): string {
  const time = parseOccurrenceDatetime(text ?? '');
  if (time === undefined) return 'no time';
  if (time.kind === 'date') return time.date;
  const minutes = Math.floor(time.timeMs / 60_000);
  const clock = [Math.floor(minutes / 60), minutes % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
  return `${time.date} ${clock}${'offsetMinutes' in time && time.offsetMinutes === 0 ? ' UTC' : ''}`;
}

/** Prints one event of a shipment as a line of a timeline. */
export function printEvent(event: TrackingEvent): void {
  const mark = MARKS[event.statusMilestone ?? ''] ?? pc.cyan('○');
  const when = pc.dim(formatTime(event.occurrenceDatetime).padEnd(20));
  const what = event.status ?? event.statusCode ?? 'unknown';
  const where = typeof event.location === 'string' ? pc.dim(`· ${event.location}`) : '';
  print(`${what} ${where}`.trimEnd(), `  ${mark} ${when} `);
}

/** A progress line that changes in place on a terminal; a pipe gets a new line for each quarter. */
export class LiveLine {
  readonly #isTerminal = process.stdout.isTTY === true;
  #quarter = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;

  /**
   * Shows the progress.
   *
   * @param text - the line without its indent
   * @param share - from 0 to 1; at 1 the line stays
   */
  update(text: string, share: number): void {
    if (this.#isTerminal) this.#draw(text, share >= 1);
    else this.#append(text, Math.floor(share * 4));
  }

  #draw(text: string, isLast: boolean): void {
    const now = performance.now();
    if (!isLast && now - this.#drawnAt < 50) return;
    this.#drawnAt = now;
    process.stdout.write(`\r\u001b[K  ${text}${isLast ? '\n' : ''}`);
  }

  #append(text: string, quarter: number): void {
    if (quarter <= this.#quarter) return;
    this.#quarter = quarter;
    console.log(`  ${text}`);
  }
}

/** Formats a progress bar of 20 characters. */
export function bar(share: number): string {
  const full = Math.round(share * 20);
  return pc.green('█'.repeat(full)) + pc.dim('░'.repeat(20 - full));
}

/** Prints rows as a table; the first column is text, the others are numbers. On a narrow screen, each row becomes a sentence. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const lines = [head, ...rows].map((row) => row.map((cell) => cell.toLocaleString('en')));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  if (screenWidth() < MIN_TABLE_WIDTH) {
    const names = head.length > 2 ? head.slice(1) : [];
    for (const [title = '', ...cells] of lines.slice(1))
      print(`${title}: ${cells.map((cell, index) => `${names[index] ?? ''} ${cell}`.trim()).join(', ')}`);
    return;
  }
  for (const [index, line] of lines.entries()) {
    const cells = line.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : cell.padStart(width);
    });
    const text = cells.join('   ');
    console.log(`  ${index === 0 ? pc.dim(text) : text}`);
  }
}
