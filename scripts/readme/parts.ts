import { readFileSync } from 'node:fs';
import { readSection, writeSection } from '../support/marked-section.ts';
import { designNotes } from './design-notes.ts';
import { endpointTable } from './endpoint-table.ts';
import { fleetFigures } from './fleet-figures.ts';
import { limiterFigures } from './limiter-figures.ts';
import { optionTables } from './option-tables.ts';
import type { Part } from './part.ts';
import { readResults } from './results.ts';
import { storeFigures } from './store-figures.ts';

/** Parts that `npm run test:runtimes` writes. */
const WRITTEN_ELSEWHERE = ['runtimes'];

/** Every part of the README that comes from the sources or from the results of the benchmarks. */
export function readmeParts(): Part[] {
  const results = readResults();
  return [
    { name: 'endpoints', content: endpointTable },
    { name: 'limiter figures', content: () => limiterFigures(results) },
    { name: 'store figures', content: () => storeFigures(results) },
    { name: 'fleet figures', content: () => fleetFigures(results) },
    { name: 'design notes', content: () => designNotes(results) },
    ...optionTables(),
  ];
}

/**
 * The parts of a README that do not say what the sources say.
 *
 * @throws Error naming a part that has no marks, or marks that have no part
 */
export function staleParts(readme: URL): Part[] {
  const parts = readmeParts();
  const known = new Set([...parts.map(({ name }) => name), ...WRITTEN_ELSEWHERE]);
  const marks = readFileSync(readme, 'utf8').matchAll(/<!-- (.+): written by the program -->/g);
  for (const [mark, name = ''] of marks) {
    if (!known.has(name))
      throw new Error(`Expected README.md to hold no mark of a part that is gone, got "${mark}"`);
  }
  return parts.filter(({ name, content }) => readPart(readme, name) !== content().trim());
}

function readPart(readme: URL, name: string): string {
  const content = readSection(readme, name);
  if (content !== undefined) return content;
  throw new Error(
    `Expected README.md to hold the two marks of "${name}", got none; put them where it belongs`,
  );
}

/** Writes parts anew. */
export function writeParts(readme: URL, parts: readonly Part[]): void {
  for (const { name, content } of parts) writeSection(readme, name, content());
}

/** What is wrong with the parts of a README and how to mend it; undefined when nothing is. */
export function complaintAbout(readme: URL): string | undefined {
  const names = staleParts(readme).map(({ name }) => `"${name}"`);
  if (names.length === 0) return undefined;
  return `Stale in README.md: ${names.join(', ')}. Run \`npm run readme\` to write them anew.`;
}
