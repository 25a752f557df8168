// Runs the programs under test/runtimes against the packed package on every runtime, each installed from npm, and writes
// what was run into README.md. A run that was not whole writes nothing: one of some runtimes only, which the arguments may
// name, or one in which anything failed or was skipped. With `--print` nothing is written either, but a table of README.md
// that tells of other checks is a failure. Ends with the count of programs; a runtime that is not to be had is one skipped,
// and with `--all` a failure.
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chosen } from './support/chosen.ts';
import { forEach } from './support/for-each.ts';
import { install } from './support/install.ts';
import { code, markdownTable } from './support/markdown-table.ts';
import { readSection, writeSection } from './support/marked-section.ts';
import { run } from './support/run.ts';
import { installRuntime } from './support/runtimes.ts';
import { Tally } from './support/tally.ts';
import { withTarball } from './support/with-tarball.ts';

const README = new URL('../README.md', import.meta.url);
const SECTION = 'runtimes';
const APP = fileURLToPath(new URL('../test/runtimes', import.meta.url));
/** A program that does not end by itself has failed. */
const PROGRAM_TIMEOUT_MS = 60_000;
/** The programs mostly wait for the limits they keep. */
const AT_ONCE = 2;

interface Line {
  readonly title: string;
  /** Name of the npm package, and of the program in it. */
  readonly name: string;
  readonly versions: string;
  /** What stands between the program and the file to run. */
  readonly args: readonly string[];
}

function nodeLine(major: string): Line {
  return { title: `Node ${major}`, name: 'node', versions: major, args: [] };
}

const DENO_ARGS = ['run', '--allow-all', '--no-lock', '--cached-only'];

const LINES: Readonly<Record<string, Line>> = {
  node20: nodeLine('20'),
  node22: nodeLine('22'),
  node24: nodeLine('24'),
  node26: nodeLine('26'),
  bun: { title: 'Bun', name: 'bun', versions: 'latest', args: [] },
  deno: { title: 'Deno', name: 'deno', versions: 'latest', args: DENO_ARGS },
};

/** A column of the table, and the command line that fills it. */
interface Program {
  readonly title: string;
  readonly commandLine: (start: readonly string[]) => readonly string[];
}

const COMMAND = 'tracking-client-fake';

const PROGRAMS: readonly Program[] = [
  { title: 'ESM', commandLine: (start) => [...start, 'smoke.mjs'] },
  { title: 'CommonJS', commandLine: (start) => [...start, 'smoke.cjs'] },
  { title: 'MSW handlers', commandLine: (start) => [...start, 'msw.mjs'] },
  {
    title: code(COMMAND),
    commandLine: (start) => [process.execPath, 'command.mjs', ...start, `node_modules/.bin/${COMMAND}`],
  },
];

/** A runtime that runs here, with what each program said at its end, in the order of the programs. */
interface Row {
  readonly line: Line;
  readonly version: string;
  readonly start: readonly string[];
  readonly results: string[];
}

async function findRow(line: Line, tally: Tally): Promise<Row | undefined> {
  const runtime = await installRuntime(line.name, line.versions);
  if ('program' in runtime)
    return { line, version: runtime.version, start: [runtime.program, ...line.args], results: [] };
  tally.skipped(`${line.title}: ${runtime.reason}`);
  return undefined;
}

async function runAll(row: Row, folder: string, tally: Tally): Promise<void> {
  for (const { title, commandLine } of PROGRAMS) {
    const startedAt = performance.now();
    const [program = '', ...args] = commandLine(row.start);
    const ran = await run(program, args, { cwd: folder, timeoutMs: PROGRAM_TIMEOUT_MS });
    tally.ran(`${row.line.title} (${row.version}), ${title}`, ran, startedAt);
    row.results.push(ran.isGood ? (ran.output.trim().split('\n').at(-1) ?? '') : 'failed');
  }
}

function tableOf(rows: readonly Row[]): string {
  const head = ['Runtime', 'Version', ...PROGRAMS.map(({ title }) => title)];
  return markdownTable(
    head,
    rows.map(({ line, version, results }) => [line.title, version, ...results]),
  );
}

/** Newer runtimes come by themselves; they make no table stale. */
function withoutVersions(text: string): string {
  return text.replace(/\d+\.\d+\.\d+/g, 'x').trim();
}

const { values, positionals } = parseArgs({
  options: { print: { type: 'boolean', default: false }, all: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const names = chosen(Object.keys(LINES), positionals);
const tally = new Tally();
const rows: Row[] = [];
await withTarball(async (scratch) => {
  const folder = join(scratch, 'app');
  await cp(APP, folder, { recursive: true });
  const { isGood, output } = await install(folder);
  if (!isGood) throw new Error(`Expected the package to be installed, got\n${output}`);
  for (const [name, line] of Object.entries(LINES)) {
    const row = names.includes(name) ? await findRow(line, tally) : undefined;
    if (row !== undefined) rows.push(row);
  }
  await forEach(rows, AT_ONCE, (row) => runAll(row, folder, tally));
});

const table = tableOf(rows);
const isWhole = positionals.length === 0 && tally.isComplete;
if (isWhole && !values.print) writeSection(README, SECTION, table);
else console.log(table);
tally.end();
if (
  isWhole &&
  values.print &&
  withoutVersions(readSection(README, SECTION) ?? '') !== withoutVersions(table)
) {
  console.error('Stale in README.md: what was run where. Run `npm run test:runtimes` to write it anew.');
  process.exitCode = 1;
}
if (values.all && !tally.isComplete) process.exitCode = 1;
