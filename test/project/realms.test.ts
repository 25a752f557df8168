import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const SRC = new URL('../../src/', import.meta.url);
/** This file decides for all others what an object of any realm is. */
const EXPERT = 'common/foreign.ts';

test('`instanceof` of a built-in class in src → only in the file that knows other realms', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const found = files.flatMap((file) => {
    const text = readFileSync(new URL(file, SRC), 'utf8');
    return [...text.matchAll(/\binstanceof (?:globalThis\.)?(\w+)/g)].flatMap(([, name = '']) =>
      name in globalThis ? `${file}: ${name}` : [],
    );
  });
  expect(found).toEqual([`${EXPERT}: Error`, `${EXPERT}: Promise`]);
});
