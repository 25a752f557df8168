import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));
const SOURCES = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
);
const CLOCK = 'common/clock.ts';

/** A clock or a timer beside `systemClock`; types and comments may name them. */
const OTHER_CLOCK =
  /(?<!systemClock\.|typeof |`)\b(?:performance\.now|setTimeout|AbortSignal\.timeout)\b|node:timers/;

test('every wait and measurement in src → uses the clock of common/clock.ts', () => {
  const usesOtherClock = (file: string) => OTHER_CLOCK.test(readFileSync(SRC + file, 'utf8'));
  expect(usesOtherClock(CLOCK)).toBe(true);
  expect(SOURCES.filter((file) => file !== CLOCK && usesOtherClock(file))).toEqual([]);
});
