import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';

/** Several sources keep these promises together. */
const SHARED = [
  'foreign-realms',
  'frozen',
  'promise-options',
  'quoted-values',
  'secrets',
  'undefined-options',
];
/** These folders test whole programs, documents and packages. */
const OTHER = /^(?:consumers|contract|fuzz|integration|project|readme|system)\//;

/** A unit test is `test/<source>.test.ts`, or `test/<source>/<aspect>.test.ts`. */
function isNamed(name: string): boolean {
  const sources = [name, name.replace(/\/[^/]+$/, '')];
  return SHARED.includes(name) || sources.some((source) => existsSync(`src/${source}.ts`));
}

test('unit tests → each is named after a source, or is on the list', () => {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter(
    (file) => !OTHER.test(file),
  );
  const names = files.flatMap((file) => /^(.+)\.test\.ts$/.exec(file)?.[1] ?? []);
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => !isNamed(name))).toEqual([]);
  expect(SHARED.filter((name) => !names.includes(name))).toEqual([]);
});
