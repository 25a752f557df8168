import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { TestSpecification, Vitest } from 'vitest/node';
import { LONG_FILES, LongFilesFirst } from '../support/long-files-first.ts';

const SHORT = Array.from({ length: 20 }, (_, index) => `/test/system/short-${index}.test.ts`);
const LONG = LONG_FILES.map((name) => `/test/${name}`);

async function sort(names: readonly string[], seed: number): Promise<string[]> {
  // The sequencer reads only these fields.
  const sequencer = new LongFilesFirst({ config: { sequence: { seed } } } as Vitest);
  const sorted = await sequencer.sort(names.map((moduleId) => ({ moduleId }) as TestSpecification));
  return sorted.map(({ moduleId }) => moduleId);
}

test('short files before long ones → the long ones come first', async () => {
  const sorted = await sort([...SHORT, ...LONG], 1);
  expect(sorted.slice(0, LONG.length).sort()).toEqual(LONG.toSorted());
});

test('the same seed and another order of files → the same order', async () => {
  expect(await sort(SHORT.toReversed(), 1)).toEqual(await sort(SHORT, 1));
});

test('another seed → another order', async () => {
  expect(await sort(SHORT, 2)).not.toEqual(await sort(SHORT, 1));
});

test.each(LONG_FILES)('%s → exists', (name) => {
  expect(existsSync(fileURLToPath(new URL(`../${name}`, import.meta.url)))).toBe(true);
});
