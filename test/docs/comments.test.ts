import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const findPath = (name: string) => fileURLToPath(new URL(name, import.meta.url));

test('exports with incomplete comments → one complaint for each, none for complete comments, and the check fails', () => {
  const args = ['--import', 'tsx', findPath('../../scripts/docs.ts'), '--check'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: findPath('exports'),
    encoding: 'utf8',
  });
  const sentence = 'a sentence that says what it does';
  const complaints = `${stdout}${stderr}`.matchAll(/Expected the comment of exports\.(.+)/g);
  expect([...complaints].map(([, complaint]) => complaint)).toEqual([
    `withoutComment to have ${sentence}`,
    'withoutParam to have @param b',
    'withoutReturns to have @returns',
    `withoutSentence to have ${sentence}`,
    'Parcel.withoutText to have words',
    'Parcel.withoutUnitMs to have the word for the unit (\\bmilliseconds?\\b)',
    `Trackers.withoutMethodComment to have ${sentence}`,
    'Parcel.withFile to name no internal document',
  ]);
  expect(status).toBe(1);
}, 60_000);
