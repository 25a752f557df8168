import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { describeOptions } from '../../scripts/readme/options-type.ts';
import { complaintAbout, staleParts, writeParts } from '../../scripts/readme/parts.ts';
import { README } from './support/readme.ts';

/** A README like ours, written anew, in which a text is replaced. */
async function readmeWith(text: string, replacement: string): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'readme-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'README.md');
  await copyFile(README, file);
  const readme = pathToFileURL(file);
  writeParts(readme, staleParts(readme));
  const before = await readFile(file, 'utf8');
  expect(before).toContain(text);
  await writeFile(file, before.replace(text, replacement));
  return readme;
}

it('the README as it is → says what the sources and the results say', () => {
  const complaint = complaintAbout(README);
  expect(complaint, complaint).toBeUndefined();
});

it.each([
  ['an endpoint that is allowed more often', '/trackers/bulk` | 3 |', '/trackers/bulk` | 30 |', 'endpoints'],
  ['an option with another default', 'doubles with every retry. Default 500.', '', 'options of RetryOptions'],
  ['a better figure', '0 / 68%', '0 / 98%', 'limiter figures'],
])('%s → named as stale, with how to mend it', async (_, text, replacement, part) => {
  const readme = await readmeWith(text, replacement);
  expect(complaintAbout(readme)).toBe(
    `Stale in README.md: "${part}". Run \`npm run readme\` to write them anew.`,
  );
});

it('a stale part written anew → nothing is stale', async () => {
  const readme = await readmeWith('`POST /trackers/bulk`', '`POST /trackers/many`');
  writeParts(readme, staleParts(readme));
  expect(complaintAbout(readme)).toBeUndefined();
  expect(await readFile(readme, 'utf8')).toContain('`POST /trackers/bulk`');
});

it('an options type without a place → named', async () => {
  const readme = await readmeWith('<!-- options of PollOptions: written by the program -->', '');
  expect(() => complaintAbout(readme)).toThrow('README.md to hold the two marks of "options of PollOptions"');
});

it('a place for something that is gone → named', async () => {
  const readme = await readmeWith('## License', '<!-- options of Gone: written by the program -->');
  expect(() => complaintAbout(readme)).toThrow('got "<!-- options of Gone: written by the program -->"');
});

it('an option whose comment tells no default → named with its file', () => {
  const path = 'test/readme/support/undescribed-options.ts';
  expect(() => describeOptions({ name: 'UndescribedOptions', path })).toThrow(
    `the comment of \`UndescribedOptions.lengthMs\` in ${path} to tell the default`,
  );
});
