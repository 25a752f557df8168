import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

let status: number | null = null;
let lines: string[] = [];

// One reading of the sources for all tests: it takes seconds, and nothing changes it.
beforeAll(() => {
  const args = ['--import', 'tsx', path('../../scripts/docs.ts'), '--check'];
  const ended = spawnSync(process.execPath, args, { cwd: path('exports'), encoding: 'utf8' });
  status = ended.status;
  lines = ended.stderr.split('\n').concat(ended.stdout.split('\n'));
}, 60_000);

test.each([
  ['withoutComment', 'a sentence that says what it does'],
  ['withoutParam', '@param other'],
  ['withoutReturns', '@returns'],
  ['withoutSentence', 'a sentence that says what it does'],
  ['withoutText', 'words'],
  ['withoutUnitMs', 'the word for the unit'],
  ['withoutMethodComment', 'a sentence that says what it does'],
  ['withFile', 'no document that users do not have'],
])('%s, exported with a comment that says too little → complaint: %s', (name, missing) => {
  expect(lines.filter((line) => line.includes(name))).toEqual([expect.stringContaining(missing)]);
});

test.each(['complete', 'withUnitMs', 'Parcel to', 'Trackers to', 'iterator'])(
  'a comment that says enough (%s) → no complaint',
  (name) => {
    expect(lines.filter((line) => line.includes(name))).toEqual([]);
  },
);

test('any complaint → the check fails', () => {
  expect(status).toBe(1);
});
