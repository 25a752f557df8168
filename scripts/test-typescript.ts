// Compiles an app that uses every entry point against the packed package, with each TypeScript version and module mode of
// test/typescript/lines.ts. Names of versions as arguments run only these. Ends with the count of combinations.
import { cp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConfig, buildManifest, LINES, type Line } from '../test/typescript/lines.ts';
import { chosen, endRun, forEach, install, noteRun, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';

const SOURCES = fileURLToPath(new URL('../test/typescript/src', import.meta.url));

/** Copies the sources as ES modules and as CommonJS, and installs the libraries of one line. */
async function prepare(line: Line, folder: string): Promise<void> {
  for (const file of await readdir(SOURCES))
    for (const kind of ['mts', 'cts'])
      await cp(join(SOURCES, file), join(folder, 'src', file.replace(/ts$/, kind)));
  for (const mode of line.modes)
    await writeFile(join(folder, `${mode}.json`), JSON.stringify(buildConfig(mode)));
  await writeFile(join(folder, 'package.json'), JSON.stringify(buildManifest(line)));
  const { isGood, output } = await install(folder);
  if (!isGood) throw new Error(`Expected the libraries of ${folder} to be installed, got\n${output}`);
}

const names = chosen(Object.keys(LINES), process.argv.slice(2));
const lines = Object.entries(LINES).filter(([name]) => names.includes(name));
await withTarball(async (scratch) => {
  await forEach(lines, ([name, line]) => prepare(line, join(scratch, name)));
  const jobs = lines.flatMap(([name, { modes }]) => modes.map((mode) => ({ name, mode })));
  await forEach(jobs, async ({ name, mode }) => {
    const startedAt = performance.now();
    const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
    const compiled = await run('node', [compiler, '--project', `${mode}.json`], { cwd: join(scratch, name) });
    noteRun(`TypeScript ${name.padEnd(3)}  ${mode}`, compiled, startedAt);
  });
});
endRun();
