// Prints headings, a line that changes in place, timelines and tables; without colours in a pipe.
import pc from 'picocolors';
import type { TrackingEvent } from 'tracking-client';

/** Prints a heading. */
export function heading(text: string): void {
  console.log(`\n${pc.bold(text)}`);
}

const MARKS: Readonly<Record<string, string>> = {
  delivered: pc.green('●'),
  exception: pc.red('●'),
  failed_attempt: pc.yellow('●'),
};

/** Formats one event of a shipment as a line of a timeline. */
export function timelineLine(event: TrackingEvent): string {
  const mark = MARKS[event.statusMilestone ?? ''] ?? pc.cyan('○');
  const when = pc.dim((event.occurrenceDatetime ?? 'no time').padEnd(25));
  const what = event.status ?? event.statusCode ?? 'unknown';
  const where = event.location ? pc.dim(` · ${event.location}`) : '';
  return `  ${mark} ${when} ${what}${where}`;
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

/** Prints rows as a table; the first column is text, the others are numbers. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const lines = [head, ...rows].map((row) => row.map((cell) => cell.toLocaleString('en')));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  for (const [index, line] of lines.entries()) {
    const cells = line.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : cell.padStart(width);
    });
    const text = cells.join('   ');
    console.log(`  ${index === 0 ? pc.dim(text) : text}`);
  }
}
