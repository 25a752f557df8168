import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ENTRY_POINTS } from '../../scripts/support/entry-points.ts';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));
const IMPORT = /(?:^|\n)(?:import|export)\s(?!type\s)[^;]*?from\s+'([^']+)'/g;

/** Everything that an entry point loads: paths below `src`, and the names of packages. */
function listLoaded(entry: string): Set<string> {
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
  return loaded;
}

const isPackage = (name: string) => !name.endsWith('.ts') && !name.startsWith('node:');

describe('imports of the testing kit', () => {
  it('tracking-client/testing → zod as its only package, and nothing of the HTTP client', () => {
    const loaded = [...listLoaded('testing/index.ts')];
    expect(loaded.filter(isPackage)).toEqual(['zod']);
    expect(loaded.filter((name) => name === 'client.ts' || name.startsWith('http/'))).toEqual([]);
  });

  it('tracking-client/testing/msw → msw and zod as its only packages, and nothing of the HTTP client', () => {
    const loaded = [...listLoaded('testing/msw.ts')];
    expect(loaded.filter(isPackage).sort()).toEqual(['msw', 'zod']);
    expect(loaded.filter((name) => name.startsWith('http/'))).toEqual([]);
  });
});

it('tracking-client/webhooks → zod as its only package, and nothing of the HTTP client', () => {
  const loaded = [...listLoaded('webhooks/index.ts')];
  expect(loaded.filter(isPackage)).toEqual(['zod']);
  expect(loaded).toContain('webhooks/inbox.ts');
  expect(loaded.filter((name) => /^(?:http|limiter|client\.ts|endpoints\.ts)/.test(name))).toEqual([]);
});

describe('libraries of the command', () => {
  const libraries = ['commander', 'cli-table3', 'cli-progress', 'csv-parse', 'csv-stringify', 'picocolors'];

  it.each(Object.values(ENTRY_POINTS))('%s → loads none of them', (entry) => {
    const loaded = listLoaded(entry.replace(/^src\//, ''));
    expect(libraries.filter((name) => loaded.has(name))).toEqual([]);
    expect([...loaded].filter((name) => name.startsWith('cli/'))).toEqual([]);
  });
});

describe('@opentelemetry/api', () => {
  it('tracking-client/opentelemetry → the only entry point that loads it', () => {
    const loading = Object.values(ENTRY_POINTS).filter((entry) =>
      listLoaded(entry.replace(/^src\//, '')).has('@opentelemetry/api'),
    );
    expect(loading).toEqual(['src/opentelemetry/index.ts']);
  });
});
