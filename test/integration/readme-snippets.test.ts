import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readReadme, typeScriptBlocks } from '../readme/support/readme.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const TITLES = [
  'my code handles a 429',
  'my webhook endpoint survives duplicates',
  'my poller stops',
  'my import retries what failed',
  'my app runs on MSW as it is',
];

/** Reads the tests of the snippets as an app would: the package's own names, and nothing else of this repository. */
const CONFIG = `
import { defineConfig } from 'vitest/config';
import repository from '../../vitest.config.ts';

export default defineConfig({
  root: import.meta.dirname,
  resolve: repository.resolve,
  test: { include: ['*.test.ts'] },
});
`;

interface Ran {
  readonly title: string;
  readonly status: string;
}

/** Runs test files with vitest and tells how each test ended. */
async function run(folder: string, files: Readonly<Record<string, string>>): Promise<Map<string, Ran[]>> {
  await Promise.all(Object.entries(files).map(([name, code]) => writeFile(join(folder, name), code)));
  const report = join(folder, 'report.json');
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--config', join(folder, 'vitest.config.ts'), '--reporter=json'];
  // A failed test makes the exit code 1; what failed is in the report.
  await promisify(execFile)(process.execPath, [...args, `--outputFile=${report}`], { cwd: folder }).catch(
    () => {},
  );
  // Written by vitest just now.
  const { testResults } = JSON.parse(await readFile(report, 'utf8')) as {
    testResults: { name: string; assertionResults: Ran[] }[];
  };
  return new Map(
    testResults.map(({ name, assertionResults }) => [name.slice(folder.length + 1), assertionResults]),
  );
}

describe('a test of the README', () => {
  const snippets = typeScriptBlocks(readReadme()).tests.map(({ code }) => code);
  let folder = '';
  let ran = new Map<string, Ran[]>();

  // One run for all of them; each test below reads its part.
  beforeAll(async () => {
    await mkdir(join(root, '.tmp'), { recursive: true });
    folder = await mkdtemp(join(root, '.tmp', 'readme-'));
    const files = snippets.map((code, index) => [`${index}.test.ts`, code] as const);
    ran = await run(folder, {
      'vitest.config.ts': CONFIG,
      ...Object.fromEntries(files),
      'broken.test.ts': (snippets[0] ?? '').replace('.toBe(2)', '.toBe(3)'),
    });
  }, 120_000);

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it.each(TITLES.map((title, index) => [title, index] as const))('%s → runs as it stands', (title, index) => {
    expect(ran.get(`${index}.test.ts`)).toMatchObject([{ title, status: 'passed' }]);
  });

  it('more of them than these → none', () => {
    expect(snippets).toHaveLength(TITLES.length);
  });

  it('one that promises what is not so → seen to fail', () => {
    expect(ran.get('broken.test.ts')).toMatchObject([{ title: TITLES[0], status: 'failed' }]);
  });
});
