// Prints how many names each entry point exports, values and types, and how many rows the tables of options have.
import { optionTables, readExports } from './readme/options.ts';
import { ENTRY_POINTS } from './support/entry-points.ts';

let total = 0;
for (const [entry, path] of Object.entries(ENTRY_POINTS)) {
  const { size } = readExports(path);
  total += size;
  console.log(`${String(size).padStart(4)}  tracking-client${entry === 'index' ? '' : `/${entry}`}`);
}
console.log(`${String(total).padStart(4)}  exports in all`);
const rows = optionTables()
  .split('\n')
  .filter((line) => line.startsWith('| `'));
console.log(`${String(rows.length).padStart(4)}  rows of options`);
