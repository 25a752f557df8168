import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const SRC = new URL('../../src/', import.meta.url);
/** The only file that may ask, because it also recognises objects of other realms. */
const EXPERT = 'common/foreign.ts';

test('`instanceof` and `isInstance` of a built-in class in src → only in the file that knows other realms', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const found = files.flatMap((file) => {
    const text = readFileSync(new URL(file, SRC), 'utf8');
    const pattern = /\b(?:instanceof |isInstance\(\w+, )(?:globalThis\.)?(\w+)/g;
    return [...text.matchAll(pattern)].flatMap(([, name = '']) =>
      name in globalThis ? `${file}: ${name}` : [],
    );
  });
  expect(found).toEqual([`${EXPERT}: Error`, `${EXPERT}: Promise`]);
});
