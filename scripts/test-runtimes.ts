// Runs the programs under test/runtimes against the packed package on every runtime, each installed from npm, and prints
// the results. Names of runtimes as arguments run only these. Ends with the count of programs; a runtime that cannot be
// installed counts as skipped, or with `--all` as a failure. `--print` adds a table in Markdown.
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { markdownTable } from './support/markdown-table.ts';
import { chosen, endRun, forEach, install, noteRun, noteSkipped, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';
import { installRuntime } from './support/runtimes.ts';

const APP = fileURLToPath(new URL('../test/runtimes', import.meta.url));
/** A program that does not end by itself has failed. */
const PROGRAM_TIMEOUT_MS = 60_000;

/** Each runtime has the name of its npm package, a version, and the arguments before the file to run. */
const RUNTIMES: Readonly<Record<string, readonly [string, string, ...string[]]>> = {
  node20: ['node', '20'],
  node22: ['node', '22'],
  node24: ['node', '24'],
  node26: ['node', '26'],
  bun: ['bun', 'latest'],
  deno: ['deno', 'latest', 'run', '--allow-all', '--no-lock', '--cached-only'],
};

type CommandLine = readonly string[];

const COMMAND = 'tracking-client fake';
const PROGRAMS: Readonly<Record<string, (start: CommandLine) => CommandLine>> = {
  ESM: (start) => [...start, 'smoke.mjs'],
  CommonJS: (start) => [...start, 'smoke.cjs'],
  'MSW handlers': (start) => [...start, 'msw.mjs'],
  // Deno alone can deny access to the environment.
  'all options': (start) => [
    ...start,
    ...(start.includes('--allow-all') ? ['--deny-env'] : []),
    'options.mjs',
  ],
  [COMMAND]: (start) => [process.execPath, 'command.mjs', ...start, 'node_modules/.bin/tracking-client'],
};

/** Runs every program on one runtime. Returns the last line of each, which lists its checks. */
async function runAll(title: string, start: CommandLine, cwd: string): Promise<string[]> {
  const results: string[] = [];
  for (const [name, commandLine] of Object.entries(PROGRAMS)) {
    const startedAt = performance.now();
    const [program = '', ...args] = commandLine(start);
    const ran = await run(program, args, { cwd, timeoutMs: PROGRAM_TIMEOUT_MS });
    const result = ran.isGood ? ran.lastLine : 'failed';
    results.push(result);
    noteRun(`${title.padEnd(13)}  ${name.padEnd(COMMAND.length)}  ${result}`, ran, startedAt);
  }
  return results;
}

const { values, positionals } = parseArgs({
  options: { all: { type: 'boolean' }, print: { type: 'boolean' } },
  allowPositionals: true,
});
const rows: string[][] = [];
await withTarball(async (scratch) => {
  const folder = join(scratch, 'app');
  await cp(APP, folder, { recursive: true });
  const { isGood, output } = await install(folder);
  if (!isGood) throw new Error(`Expected the package to be installed, got\n${output}`);
  await forEach(chosen(Object.keys(RUNTIMES), positionals), async (key) => {
    const [name = '', line = '', ...args] = RUNTIMES[key] ?? [];
    const runtime = await installRuntime(name, line);
    if (typeof runtime === 'string') noteSkipped(`${key}: ${runtime}`);
    else {
      const title = `${name} ${runtime.version}`;
      rows.push([title, ...(await runAll(title, [runtime.program, ...args], folder))]);
    }
  });
});
if (values.print) console.log(markdownTable(['Runtime', ...Object.keys(PROGRAMS)], rows));
if (!endRun() && values.all) process.exitCode = 1;
