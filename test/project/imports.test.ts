import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { ENTRY_POINTS } from '../../scripts/support/entry-points.ts';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));
const IMPORT = /(?:^|\n)(?:import|export)\s(?!type\s)[^;]*?from\s+'([^']+)'/g;

/** Everything that an entry point loads: paths below `src`, and the names of packages. */
function listLoaded(entry: string): string[] {
  const loaded = new Set<string>();
  const visit = (path: string) => {
    const name = relative(SOURCE, path);
    if (loaded.has(name)) return;
    loaded.add(name);
    for (const [, specifier = ''] of readFileSync(path, 'utf8').matchAll(IMPORT)) {
      if (specifier.startsWith('.')) visit(join(dirname(path), specifier));
      else loaded.add(specifier);
    }
  };
  visit(join(SOURCE, entry));
  return [...loaded];
}

const HTTP_LIBRARIES = ['ky', 'p-retry', 'p-throttle'];
/** The packages that each entry point may load beside `zod`, and the files of the client that it must not load. */
it.each<[entry: string, packages: string[], never: RegExp]>([
  ['index.ts', HTTP_LIBRARIES, /^(?:cli|testing|opentelemetry)\//],
  ['events/index.ts', [], /^(?:cli|http|limiter|client\.ts)/],
  ['webhooks/index.ts', [], /^(?:cli|http|limiter|client\.ts|endpoints\.ts)/],
  ['redis/index.ts', [], /^(?:cli|http|client\.ts)/],
  ['postgres/index.ts', [], /^(?:cli|http|client\.ts)/],
  ['opentelemetry/index.ts', ['@opentelemetry/api'], /^(?:cli|http|limiter|client\.ts)/],
  ['testing/index.ts', [], /^(?:cli|http|limiter|client\.ts)/],
  ['testing/msw.ts', ['msw'], /^(?:cli|http|limiter|client\.ts)/],
])('%s → loads only zod and %j of all packages, and no file %s', (entry, packages, never) => {
  const loaded = listLoaded(entry);
  const found = loaded.filter((name) => !name.endsWith('.ts') && !name.startsWith('node:'));
  expect(found.filter((name) => !['zod', ...packages].includes(name))).toEqual([]);
  expect(packages.filter((name) => !found.includes(name))).toEqual([]);
  expect(loaded.filter((name) => never.test(name))).toEqual([]);
});

it('the table above → has every entry point', () => {
  expect(Object.values(ENTRY_POINTS)).toHaveLength(8);
});
