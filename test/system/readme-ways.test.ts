import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { mustRun } from '../../scripts/support/run.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The files that a section of CONTRIBUTING.md names in its table. */
async function findNamedFiles(heading: string): Promise<string[]> {
  const text = await readFile(`${ROOT}CONTRIBUTING.md`, 'utf8');
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  const rows = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '));
  return rows.flatMap((row) => [...row.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path = '']) => path));
}

/** CONTRIBUTING.md says that its tables leave out these files: shared helpers, schemas, and what only the limiter calls. */
const LEFT_OUT =
  /^(?:common|schemas)\/|^limiter\/(?:queue|foreign-use)\.ts$|^(?:errors|webhooks\/inbox-options)\.ts$/;

it('the tables of a call and of a webhook in CONTRIBUTING.md → name every file that runs, but for helpers and schemas', async () => {
  const printed = await mustRun(process.execPath, ['--import', 'tsx', 'bench/files-passed.ts'], {
    cwd: ROOT,
  });
  const [call = '', webhook = ''] = printed.split(/^(?=a webhook)/m);
  const listFiles = (part: string) =>
    [...part.matchAll(/^ {2}(\S+\.ts)/gm)]
      .map(([, path = '']) => path)
      .filter((path) => !LEFT_OUT.test(path));
  expect(listFiles(call).length).toBeGreaterThan(5);
  expect(listFiles(webhook).length).toBeGreaterThan(5);
  expect(await findNamedFiles('What happens in one call')).toEqual(expect.arrayContaining(listFiles(call)));
  expect(await findNamedFiles('What happens to one webhook')).toEqual(
    expect.arrayContaining(listFiles(webhook)),
  );
});
