// Tests the package as its users get it: packs it, installs the tarball into each app under test/consumers, and runs the
// app's own tests. An app that names a `recipe` gets the files of that page of docs/recipes. Names of apps as arguments run
// only these. Ends with the count of apps.
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { writeRecipe } from '../test/readme/support/recipes.ts';
import { chosen, endRun, forEach, install, noteRun, noteSkipped, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';
import { installRuntime } from './support/runtimes.ts';

const CONSUMERS = fileURLToPath(new URL('../test/consumers', import.meta.url));

const appSchema = z.object({
  /** Every app names the Node that it needs, for example `>=22.12`. */
  engines: z.object({ node: z.string().regex(/^>=\d+/) }),
  recipe: z.string().optional(),
  /** The app's own dependencies, for example a browser, run on these systems. Default: all. */
  os: z.array(z.string()).optional(),
  cpu: z.array(z.string()).optional(),
});

/** Returns the major version of Node that an app needs, or undefined if the running Node is new enough. */
function newerNode(needed: string): string | undefined {
  const [, major = '0'] = />=(\d+)/.exec(needed) ?? [];
  return Number.parseInt(process.versions.node, 10) < Number(major) ? major : undefined;
}

async function prove(name: string, scratch: string): Promise<void> {
  const startedAt = performance.now();
  const folder = join(scratch, name);
  await cp(join(CONSUMERS, name), folder, { recursive: true });
  const {
    engines,
    recipe,
    os = [process.platform],
    cpu = [process.arch],
  } = appSchema.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
  if (!os.includes(process.platform) || !cpu.includes(process.arch))
    return noteSkipped(`${name} runs on ${os} ${cpu}, this is ${process.platform} ${process.arch}`);
  if (recipe !== undefined) await writeRecipe(recipe, folder);
  const major = newerNode(engines.node);
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
  // Two apps run at a time, because installs mostly wait for the disk and the registry.
  await forEach(apps, (name) => prove(name, scratch));
});
endRun();
