import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONTRIBUTING = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
const [MAP = ''] = CONTRIBUTING.split('\n## ').filter((section) => section.startsWith('The map\n'));

/** The folders of the map, top to bottom. */
const LAYERS = MAP.split('\n')
  .filter((line) => line.startsWith('| `'))
  .flatMap((row) =>
    [...(row.split(' | ')[0] ?? '').matchAll(/`(src\/\w+)\/`/g)].map(([, folder = '']) => folder),
  );

const FOLDERS = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `src/${name}`);

/** The folders that the files of a folder import from, itself not counted. */
function importsOf(folder: string): string[] {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  const imported = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(ROOT, folder, file), 'utf8');
      return [...text.matchAll(/\bfrom '(\.[^']+)'/g)].map(([, path = '']) =>
        normalize(join(folder, dirname(file), path)).replace(/^(src\/\w+)\/.*/, '$1'),
      );
    });
  return [...new Set(imported)].filter((name) => FOLDERS.includes(name) && name !== folder);
}

test('the map in CONTRIBUTING.md → has every folder of src, once', () => {
  expect([...LAYERS].sort()).toEqual([...FOLDERS].sort());
});

test.each(LAYERS)('%s → imports only from folders below it in the map', (folder) => {
  const below = LAYERS.slice(LAYERS.indexOf(folder) + 1);
  expect(importsOf(folder).filter((name) => !below.includes(name))).toEqual([]);
});

test('every path that CONTRIBUTING.md names → exists', () => {
  const words = [...CONTRIBUTING.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => code.split(' '));
  const paths = words.filter((word) => /^[\w./-]+(?:\/|\.(?:ts|md|json))$/.test(word));
  expect(paths.length).toBeGreaterThan(40);
  // The walks name files below `src`.
  const isThere = (path: string) => existsSync(join(ROOT, path)) || existsSync(join(ROOT, 'src', path));
  expect(paths.filter((path) => !isThere(path))).toEqual([]);
});

test('CONTRIBUTING.md → at most 120 lines', () => {
  expect(CONTRIBUTING.trimEnd().split('\n').length).toBeLessThanOrEqual(120);
});
