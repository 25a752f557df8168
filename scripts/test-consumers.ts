// Tests the package as its users get it: installs it in each way of test/consumers/installs.ts; then packs it, installs the
// tarball into each app of test/consumers/apps.ts, and runs the app's own tests. An app that names a `recipe` gets the files of
// that page of docs/recipes, and an app that names an `example` is a copy of that folder. Names of apps as arguments run only these;
// the installs have the name `installs`. Ends with the count.
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { APPS, type App } from '../test/consumers/apps.ts';
import { proveInstalls } from '../test/consumers/installs.ts';
import { writeRecipe } from '../test/readme/support/recipes.ts';
import { chosen, endRun, forEach, install, noteRun, noteSkipped, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';
import { installRuntime } from './support/runtimes.ts';

const CONSUMERS = fileURLToPath(new URL('../test/consumers', import.meta.url));
const EXAMPLES = fileURLToPath(new URL('../examples', import.meta.url));
const HERE = `${process.platform} ${process.arch}`;

async function prove(name: string, app: App, scratch: string): Promise<void> {
  const startedAt = performance.now();
  const { recipe, example, system = HERE, node: major = '20', manifest } = app;
  if (system !== HERE) return noteSkipped(`${name} runs on ${system}, this is ${HERE}`);
  const folder = join(scratch, name);
  await cp(join(CONSUMERS, app.folder ?? name), folder, { recursive: true });
  if (example !== undefined) await cp(join(EXAMPLES, example), folder, { recursive: true });
  const own = example === undefined ? {} : JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const packed = { 'tracking-client': 'file:../tracking-client.tgz' };
  const dependencies = { ...own.dependencies, ...own.devDependencies, ...packed, ...app.dependencies };
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

const INSTALLS = 'installs';
const names = chosen([INSTALLS, ...Object.keys(APPS)], process.argv.slice(2));
await withTarball(async (scratch) => {
  // Two run at a time, because installs mostly wait for the disk and the registry.
  await forEach(names, async (name) => {
    const app = APPS[name];
    if (app !== undefined) return prove(name, app, scratch);
    const folder = join(scratch, INSTALLS);
    await mkdir(folder);
    await proveInstalls(folder);
  });
});
endRun();
