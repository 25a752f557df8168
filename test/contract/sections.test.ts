import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SCHEMA_FILES } from './support/schemas.ts';

const ROOT = new URL('../../', import.meta.url);

function read(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** The numbered rules of the document, e.g. `2.10`. */
const RULES: ReadonlySet<string> = new Set(
  [...read('docs/service.md').matchAll(/^\| (\d+\.\d+) /gm)].map(([, rule = '']) => rule),
);

/** The rules that a text names, e.g. in "docs/service.md 2.1, 8.10". */
function findRules(text: string): string[] {
  const links = text.matchAll(/docs\/service\.md\s+(\d+\.\d+(?:(?:, | and )\d+\.\d+)*)/g);
  return [...links].flatMap(([, rules = '']) => rules.split(/, | and /));
}

const SOURCES = ['src', 'test'].flatMap((folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${folder}/${path}`),
);

describe('links to rules of docs/service.md', () => {
  test.each(SCHEMA_FILES)('%s → names the rules that it is based on, and they exist', (file) => {
    const { $comment = '' } = JSON.parse(read(`test/contract/schemas/${file}`));
    expect($comment).toMatch(/^docs\/service\.md \d/);
    expect(findRules($comment).filter((rule) => !RULES.has(rule))).toEqual([]);
  });

  test('every rule that a comment in src or test names → exists', () => {
    const links = SOURCES.flatMap((path) => findRules(read(path)).map((rule) => `${path}: ${rule}`));
    expect(links).not.toEqual([]);
    expect(links.filter((link) => !RULES.has(link.replace(/^.*: /, '')))).toEqual([]);
  });
});
