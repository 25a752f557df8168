// The ways to get the package without a registry: from a clone, from a folder and from a git URL, each into an app of its own.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cloneInto } from '../../scripts/support/clone.ts';
import { noteRun } from '../../scripts/support/packed.ts';
import { run } from '../../scripts/support/run.ts';
import { parseMarkdown, readDocument } from '../readme/support/documents.ts';
import { playQuickstart } from '../system/quickstart.ts';

/** Imports and requires the package, and calls a fake service. */
const PROGRAM = `
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { TrackingClient, VERSION } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
const { baseUrl, apiKey, fetch } = createFakeTrackingService();
const { trackers } = new TrackingClient({ baseUrl, apiKey, fetch });
assert.equal((await trackers.create({ trackingNumber: 'RR123456785CN' })).trackingNumber, 'RR123456785CN');
assert.equal(createRequire(import.meta.url)('tracking-client').VERSION, VERSION);
`;
const WORKS = 'node program.mjs && npx --no tracking-client --version';

const FLAGS = '--no-audit --no-fund --prefer-offline';

/** Returns the two lines of the section "Install" of the README, without their comments. */
function readInstallLines(): [inClone: string, inApp: string] {
  const [, install = ''] = readDocument('README.md').split('\n## Install\n');
  const code = parseMarkdown(install).blocks.find(({ language }) => language === 'sh')?.code ?? '';
  const [inClone, inApp, ...others] = code
    .trim()
    .split('\n')
    .map((line) => line.replace(/ #.*/, ''));
  if (inClone === undefined || inApp === undefined || others.length > 0)
    throw new Error(`Expected two lines in the section Install, got\n${code}`);
  return [inClone, inApp];
}

/**
 * Installs the package in each way, and notes whether it works.
 *
 * @param scratch - an empty folder
 */
export async function proveInstalls(scratch: string): Promise<void> {
  const clone = join(scratch, 'tracking-client');
  await cloneInto(clone);
  const [inClone, inApp] = readInstallLines();

  async function prove(title: string, line: string, cwd: string): Promise<void> {
    const startedAt = performance.now();
    noteRun(title, await run('sh', ['-c', line], { cwd }), startedAt);
  }
  async function proveApp(title: string, line: string): Promise<void> {
    const app = join(scratch, title.replaceAll(/\W+/g, '-'));
    await mkdir(app);
    await writeFile(join(app, 'package.json'), '{ "private": true }');
    await writeFile(join(app, 'program.mjs'), PROGRAM);
    await prove(title, `${line} && ${WORKS}`, app);
  }

  await prove('npm ci --omit=dev → succeeds', `npm ci --omit=dev ${FLAGS} && test ! -e dist`, clone);
  await prove('README, the line for the clone', inClone, clone);
  await proveApp('README, the line for the app', inApp);
  const startedAt = performance.now();
  const played = await playQuickstart(clone).then(
    () => ({ isGood: true, output: '' }),
    (error: unknown) => ({ isGood: false, output: `${error}` }),
  );
  noteRun('README, the quickstart in the clone', { ...played, lastLine: '' }, startedAt);
  await proveApp('npm install of the folder', `npm install ${FLAGS} ${clone}`);
  await proveApp('npm install of a copy of the folder', `npm install ${FLAGS} --install-links ${clone}`);
  await proveApp('npm install of a git URL', `npm install ${FLAGS} git+file://${clone}`);
  const check = `JSON.parse(fs.readFileSync(0)).some(({ files }) => files.some(({ path }) => path === 'dist/index.js')) || process.exit(1)`;
  await prove(
    'npm pack --json without a build → JSON',
    `rm -r dist && npm pack --json | node --eval "${check}"`,
    clone,
  );
}
