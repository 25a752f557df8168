// Tests the package as its users get it: packs it, installs the tarball into each app of test/consumers/apps.ts, and runs the
// app's own tests. An app that names a `recipe` gets the files of that page of docs/recipes. Names of apps as arguments run
// only these. Ends with the count of apps.
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { APPS, type App } from '../test/consumers/apps.ts';
import { writeRecipe } from '../test/readme/support/recipes.ts';
import { chosen, endRun, forEach, install, noteRun, noteSkipped, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';
import { installRuntime } from './support/runtimes.ts';

const CONSUMERS = fileURLToPath(new URL('../test/consumers', import.meta.url));
const HERE = `${process.platform} ${process.arch}`;

async function prove(name: string, app: App, scratch: string): Promise<void> {
  const startedAt = performance.now();
  const { recipe, system = HERE, node: major = '20', manifest } = app;
  if (system !== HERE) return noteSkipped(`${name} runs on ${system}, this is ${HERE}`);
  const folder = join(scratch, name);
  await cp(join(CONSUMERS, app.folder ?? name), folder, { recursive: true });
  const dependencies = { 'tracking-client': 'file:../tracking-client.tgz', ...app.dependencies };
  const fields = { private: true, type: 'module', scripts: { test: app.test }, dependencies, ...manifest };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name, ...fields }, undefined, 2));
  if (recipe !== undefined) await writeRecipe(recipe, folder);
  const isNewEnough = Number.parseInt(process.versions.node, 10) >= Number(major);
  const node = isNewEnough ? undefined : await installRuntime('node', major);
  if (typeof node === 'string') return noteSkipped(`${name} needs Node ${major}: ${node}`);
  const installed = await install(folder, [], node?.binFolder);
  const tested = installed.isGood
    ? await run('npm', ['test'], { cwd: folder, binFolder: node?.binFolder })
    : installed;
  noteRun(`${name.padEnd(18)} Node ${node?.version ?? process.versions.node}`, tested, startedAt);
}

const names = chosen(Object.keys(APPS), process.argv.slice(2));
await withTarball(async (scratch) => {
  // Two apps run at a time, because installs mostly wait for the disk and the registry.
  const apps = Object.entries(APPS).filter(([name]) => names.includes(name));
  await forEach(apps, ([name, app]) => prove(name, app, scratch));
});
endRun();
