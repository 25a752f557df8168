import { stripVTControlCharacters } from 'node:util';
import Table from 'cli-table3';
import { Help } from 'commander';

/** A screen with fewer columns gets no table, not even a small one. */
const MIN_TABLE_WIDTH = 80;
/** If fewer columns are left beside `start`, the text begins on the next line. */
const MIN_ROOM = 20;
const INDENT = 4;

const help = Object.assign(new Help(), { minWidthToWrap: 1 });

/**
 * Breaks a text between words, so that a screen does not break it inside a word. A word that is longer than a line stays whole.
 *
 * @param start - printed before the text; all lines of the text begin in the same column
 * @param width - number of columns of the screen; `Infinity` for a pipe
 */
export function wrap(start: string, text: string, width: number): string {
  const startWidth = stripVTControlCharacters(start).length;
  const hasRoom = width - startWidth >= MIN_ROOM;
  const indent = hasRoom ? startWidth : INDENT;
  const lines = help.boxWrap(text, width - indent).split('\n');
  return (
    (hasRoom ? start : `${start.trimEnd()}\n${' '.repeat(indent)}`) + lines.join(`\n${' '.repeat(indent)}`)
  );
}

const NO_LINES = Object.fromEntries(
  ['top', 'bottom', 'left', 'mid', 'right', 'middle'].flatMap((side) =>
    ['', '-mid', '-left', '-right'].map((part) => [side + part, '']),
  ),
);

/**
 * Formats a table without borders, so that copied text contains no border characters. On a narrow screen, each cell has a line of
 * its own, below the first cell of its row.
 */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  { width, colours }: { readonly width: number; readonly colours: { bold(text: string): string } },
): string {
  const table = new Table({
    head: [...head],
    chars: NO_LINES,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 2 },
  });
  for (const row of rows) table.push([...row]);
  // The lookbehind keeps the time linear for the long spaces beside a long cell.
  const text = table.toString().replace(/(?<! ) +$/gm, '');
  const tableWidth = Math.max(
    ...stripVTControlCharacters(text)
      .split('\n')
      .map((line) => line.length),
  );
  if (Math.max(tableWidth, MIN_TABLE_WIDTH) <= width) return text;
  const headWidth = Math.max(...head.slice(1).map((name) => name.length));
  const blocks = rows.map(([title = '', ...cells]) => {
    const lines = cells.flatMap((cell, index) =>
      cell === '' ? [] : wrap(`  ${String(head[index + 1]).padEnd(headWidth)}  `, cell, width),
    );
    return [wrap('', colours.bold(title), width), ...lines].join('\n');
  });
  return blocks.join('\n');
}
