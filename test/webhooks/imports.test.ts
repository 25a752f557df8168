import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ENTRY = new URL('../../src/webhooks/index.ts', import.meta.url);

/** Everything that a module loads at run time, by itself or through others; type-only imports are gone by then. */
function loadedBy(entry: URL): { readonly files: Set<string>; readonly packages: Set<string> } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const queue = [entry];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (files.has(file.pathname)) continue;
    files.add(file.pathname);
    const imports = readFileSync(file, 'utf8').matchAll(
      /^(?:import|export)(?! type)[^;]*? from '([^']+)';/gm,
    );
    for (const [, specifier = ''] of imports) {
      if (specifier.startsWith('.')) queue.push(new URL(specifier, file));
      else packages.add(specifier);
    }
  }
  return { files, packages };
}

test('the webhooks entry → loads zod and Node only', () => {
  expect([...loadedBy(ENTRY).packages].sort()).toEqual(['node:crypto', 'node:util', 'zod']);
});

test('the webhooks entry → loads nothing of the HTTP client', () => {
  const files = [...loadedBy(ENTRY).files];
  expect(files.length).toBeGreaterThan(20);
  expect(
    files.filter((file) => /\/src\/(http|limiter|resources|client\.ts|endpoints\.ts)/.test(file)),
  ).toEqual([]);
});
