// Writes the generated parts of documents: how to install and upgrade the package, where to report, the endpoints and the options from the sources, the figures
// from the last results of bench/. Draws the pictures of these figures, too. A unit test fails when one of them is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FIGURES, PICTURES } from './readme/figures.ts';
import { installSteps, reportSteps, upgradeSteps } from './readme/install.ts';
import { endpointTable, optionTables } from './readme/options.ts';
import { IS_PUBLISHED } from './support/published.ts';

/** These documents have generated parts. */
export const DOCUMENTS = [
  'README.md',
  'SECURITY.md',
  'docs/options.md',
  'docs/benchmarks.md',
  'docs/versions.md',
];

/** Maps the name in the two marks around a generated part to the function that writes it. */
export const PARTS: typeof FIGURES = {
  install: () => installSteps(IS_PUBLISHED),
  upgrade: () => upgradeSteps(IS_PUBLISHED),
  reporting: () => reportSteps(IS_PUBLISHED),
  endpoints: endpointTable,
  options: optionTables,
  ...FIGURES,
};

/** Replaces the generated parts of a document; throws when a mark names an unknown part. */
export function writtenAnew(text: string): string {
  const marks = /(<!-- (.+): written by the program -->)[\s\S]*?(<!-- end of \2 -->)/g;
  return text.replace(marks, (_, begin: string, name: string, end: string) => {
    const part = PARTS[name];
    if (part === undefined)
      throw new Error(`Expected marks of ${Object.keys(PARTS).join(', ')}; got "${name}"`);
    return `${begin}\n\n${part()}\n\n${end}`;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const document of DOCUMENTS) {
    const file = new URL(`../${document}`, import.meta.url);
    writeFileSync(file, writtenAnew(readFileSync(file, 'utf8')));
  }
  for (const [path, draw] of Object.entries(PICTURES))
    writeFileSync(new URL(`../${path}`, import.meta.url), draw());
}
