import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONTRIBUTING = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
const [MAP = ''] = CONTRIBUTING.split('\n## ').filter((section) => section.startsWith('The map\n'));

/** The folders of the map and the files beside them, top to bottom. */
const LAYERS = MAP.split('\n')
  .filter((line) => line.startsWith('| `'))
  .flatMap((row) =>
    [...(row.split(' | ')[0] ?? '').matchAll(/`(src\/[\w.]+)\/?`/g)].map(([, layer = '']) => layer),
  );

const SOURCES = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join('src', file));

/** Returns the folder in `src` that holds a file, or the file itself where it is in none. */
const findLayer = (file: string) => file.split('/').slice(0, 2).join('/');

/** These files may import the types of records from a layer above, because types add no dependency at run time. */
const MAY_IMPORT_TYPES = ['src/errors.ts', 'src/common/event-keys.ts'];

/** Reads the layers that the files of a layer import from. */
function readImports(layer: string): string[] {
  return SOURCES.filter((file) => findLayer(file) === layer).flatMap((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const calls = MAY_IMPORT_TYPES.includes(file) ? text.replace(/^import type .*/gm, '') : text;
    return [...calls.matchAll(/\b(?:from|import) '(\.[^']+)'/g)].map(([, path = '']) =>
      findLayer(normalize(join(dirname(file), path))),
    );
  });
}

test('the map in CONTRIBUTING.md → lists every folder and top-level file of src once', () => {
  expect(LAYERS.toSorted()).toEqual([...new Set(SOURCES.map(findLayer))].sort());
});

test.each(LAYERS)('%s → imports only from layers below it in the map', (layer) => {
  const allowed = LAYERS.slice(LAYERS.indexOf(layer));
  expect(readImports(layer).filter((imported) => !allowed.includes(imported))).toEqual([]);
});

test.each(LAYERS.filter((layer) => !layer.endsWith('.ts')))(
  '%s → a README.md of two to five lines',
  (folder) => {
    const lines = readFileSync(join(ROOT, folder, 'README.md'), 'utf8')
      .trimEnd()
      .split('\n');
    expect([2, 3, 4, 5]).toContain(lines.length);
  },
);

test('every path that CONTRIBUTING.md names → exists', () => {
  const words = [...CONTRIBUTING.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => code.split(' '));
  const paths = words.filter((word) => /^[\w./-]+(?:\/|\.(?:ts|md|json))$/.test(word));
  expect(paths.length).toBeGreaterThan(40);
  // The walks name files below `src`.
  const isThere = (path: string) => existsSync(join(ROOT, path)) || existsSync(join(ROOT, 'src', path));
  expect(paths.filter((path) => !isThere(path))).toEqual([]);
});
