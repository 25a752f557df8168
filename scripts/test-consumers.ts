// Proves the package as its users get it: packs it, installs the tarball into each app under test/consumers, and runs the
// app's own tests. Names of apps as arguments run only these. Ends with the count of apps.
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chosen, endRun, install, noteRun, noteSkipped, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';
import { installRuntime } from './support/runtimes.ts';

const CONSUMERS = fileURLToPath(new URL('../test/consumers', import.meta.url));

/** The major version of Node that an app needs where this one is older: every app says which it needs, as `>=22.12`. */
async function newerNodeFor(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, 'package.json'), 'utf8');
  const [, major = '0'] = /"node": ">=(\d+)/.exec(text) ?? [];
  return Number.parseInt(process.versions.node, 10) < Number(major) ? major : undefined;
}

async function prove(name: string, scratch: string): Promise<void> {
  const startedAt = performance.now();
  const folder = join(scratch, name);
  await cp(join(CONSUMERS, name), folder, { recursive: true });
  const major = await newerNodeFor(folder);
  const node = major === undefined ? undefined : await installRuntime('node', major);
  if (typeof node === 'string') return noteSkipped(`${name} needs Node ${major}: ${node}`);
  const installed = await install(folder, [], node?.binFolder);
  const tested = installed.isGood
    ? await run('npm', ['test'], { cwd: folder, binFolder: node?.binFolder })
    : installed;
  noteRun(`${name.padEnd(18)} Node ${node?.version ?? process.versions.node}`, tested, startedAt);
}

const apps = chosen((await readdir(CONSUMERS)).sort(), process.argv.slice(2));
await withTarball(async (scratch) => {
  for (const name of apps) await prove(name, scratch);
});
endRun();
