// Compiles an app that uses every entry point against the packed package, with each TypeScript version under test/typescript in
// the module modes that its `package.json` names. Names of versions as arguments run only these. Ends with the count of
// combinations.
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chosen, endRun, forEach, install, noteRun, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';

const APPS = fileURLToPath(new URL('../test/typescript', import.meta.url));

/** Installs one TypeScript version and copies the sources as ES modules and as CommonJS. Returns the version's module modes. */
async function prepare(line: string, folder: string): Promise<readonly string[]> {
  await cp(join(APPS, line), folder, { recursive: true });
  await cp(join(APPS, 'modes'), join(folder, 'modes'), { recursive: true });
  for (const file of await readdir(join(APPS, 'src'))) {
    const kinds = file.endsWith('.cts') ? ['cts'] : ['mts', 'cts'];
    for (const kind of kinds)
      await cp(join(APPS, 'src', file), join(folder, 'src', file.replace(/c?ts$/, kind)));
  }
  const { isGood, output } = await install(folder);
  if (!isGood)
    throw new Error(`Expected the libraries of TypeScript ${line} to be installed, got\n${output}`);
  const { modes }: { modes: string[] } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  return modes;
}

const lines = (await readdir(APPS)).filter((name) => /^\d/.test(name)).sort();
await withTarball(async (scratch) => {
  const jobs: { readonly line: string; readonly mode: string }[] = [];
  await forEach(chosen(lines, process.argv.slice(2)), async (line) => {
    for (const mode of await prepare(line, join(scratch, line))) jobs.push({ line, mode });
  });
  await forEach(jobs, async ({ line, mode }) => {
    const startedAt = performance.now();
    const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
    const compiled = await run('node', [compiler, '--project', `modes/${mode}.json`], {
      cwd: join(scratch, line),
    });
    noteRun(`TypeScript ${line.padEnd(3)}  ${mode}`, compiled, startedAt);
  });
});
endRun();
