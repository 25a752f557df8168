import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

function read(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** The numbered rules and sections of the document, e.g. `2.10` and `6`. */
const RULES: ReadonlySet<string> = new Set(
  [...read('docs/service.md').matchAll(/^(?:\| (\d+\.\d+) |## (\d+)\. )/gm)].flatMap(
    ([, ...numbers]) => numbers,
  ),
);

/** The rules and sections that a text names, e.g. in "docs/service.md 2.1, 8.10". */
function findRules(text: string): string[] {
  const words = text.replaceAll(/\s+(?:(?:\*|\/\/) )?/g, ' '); // A comment can continue on the next line.
  const links = words.matchAll(/docs\/service\.md (\d+(?:\.\d+)?(?:(?:, | and )\d+(?:\.\d+)?)*)/g);
  return [...links].flatMap(([, rules = '']) => rules.split(/, | and /));
}

const SOURCES = ['src', 'test', 'bench', 'scripts', 'examples'].flatMap((folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${folder}/${path}`),
);

describe('links to rules of docs/service.md', () => {
  test('every rule and section that a comment names → exists', () => {
    const links = SOURCES.flatMap((path) => findRules(read(path)).map((rule) => `${path}: ${rule}`));
    expect(links).not.toEqual([]);
    expect(links.filter((link) => !RULES.has(link.replace(/^.*: /, '')))).toEqual([]);
  });
});
