import Table from 'cli-table3';

/** A table without lines, so that what is copied out of a terminal holds none. */
export function tableText(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  colWidths: readonly (number | null)[] = [],
): string {
  const table = new Table({
    head: [...head],
    colWidths: [...colWidths],
    chars: NO_LINES,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 2 },
  });
  for (const row of rows) table.push([...row]);
  return table.toString().replace(/ +$/gm, '');
}

const NO_LINES = Object.fromEntries(
  ['top', 'bottom', 'left', 'mid', 'right', 'middle'].flatMap((side) =>
    ['', '-mid', '-left', '-right'].map((part) => [side + part, '']),
  ),
);
