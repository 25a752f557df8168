// Breaks the sources, one small change at a time, and checks whether a unit test notices. Arguments choose folders: `http`,
// `events`, …; `--sample 20` tries a fifth of the lines, and `--seed 2` another fifth. First the folder's own tests run, because
// they notice most changes soon; changes that they miss are tried again with the unit tests of all folders. Prints each
// change that no test noticed and a table of the folders; fails if a score is too low.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import config from '../stryker.config.json' with { type: 'json' };
import { markdownTable } from './support/markdown-table.ts';
import { chosen } from './support/packed.ts';

/** Tests must notice at least this percentage of the changes that they reach. */
const MIN_PERCENT = { all: 90, folder: 87 } as const;

/**
 * These folders of `src` are not tried; test/mutation.md has their scores. The tests of `cli` run processes, which the runner
 * cannot see.
 */
const UNTRIED: readonly string[] = ['cli', 'opentelemetry'];
const FOLDERS = readdirSync('src', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !UNTRIED.includes(entry.name))
  .map(({ name }) => name);

/** The own tests of parts whose tests are not, or not only, in the folder of the same name. */
const OWN_TESTS: Readonly<Record<string, string>> = {
  root: 'test/{*,client/**/*,resources/**/*}.test.ts',
  schemas: 'test/{contract,schemas}/**/*.test.ts',
  testing: 'test/{contract,testing}/**/*.test.ts',
};

/** Leaves out the tests of documents, scripts and the command, because those tests notice no more changes. */
const ALL_TESTS = `test/{*,{${[...FOLDERS, 'client', 'contract', 'fuzz', 'opentelemetry', 'resources'].join()}}/**/*}.test.ts`;

/** Lists the source files of a folder, or of the root of `src` itself. */
function listSources(part: string): string[] {
  const folder = part === 'root' ? 'src' : `src/${part}`;
  return readdirSync(folder, { recursive: part !== 'root', encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `${folder}/${file}`);
}

const placeSchema = z.object({ line: z.number(), column: z.number() });
const mutantSchema = z.object({
  status: z.string(),
  mutatorName: z.string(),
  replacement: z.string().default(''),
  location: z.object({ start: placeSchema, end: placeSchema }),
});
const reportSchema = z.object({
  files: z.record(z.string(), z.object({ source: z.string(), mutants: z.array(mutantSchema) })),
});

interface Change {
  readonly file: string;
  /** Lines and columns of the change, in the format of Stryker's command line. */
  readonly range: string;
  readonly description: string;
  readonly status: string;
}

const isMissed = ({ status }: Change) => status === 'Survived' || status === 'NoCoverage';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' } },
});

/** Lines of a file are drawn in blocks of this length. A change is tried if all of its lines were drawn. */
const BLOCK_LINES = 12;

/** Tells whether a block of lines is in the sample. A seed always draws the same blocks, even if other files change. */
function isDrawn(file: string, firstLine: number): boolean {
  const hash = createHash('sha256').update(`${options.seed} ${file} ${firstLine}`).digest();
  return (100 * hash.readUInt32BE()) / 2 ** 32 < Number(options.sample);
}

/** Draws lines of the sources and returns them as Stryker's ranges. */
async function drawLines(sources: readonly string[]): Promise<string[]> {
  if (options.sample === '100') return [...sources];
  const ranges: string[] = [];
  for (const file of sources) {
    const lineCount = (await readFile(file, 'utf8')).split('\n').length;
    for (let firstLine = 1; firstLine <= lineCount; firstLine += BLOCK_LINES)
      if (isDrawn(file, firstLine)) ranges.push(`${file}:${firstLine}-${firstLine + BLOCK_LINES - 1}`);
  }
  return ranges;
}

/** Makes every change inside these ranges, and runs the tests that reach it. */
async function breakLines(ranges: readonly string[], tests: string): Promise<Change[]> {
  if (ranges.length === 0) return [];
  const env = { ...process.env, MUTATION_TESTS: tests };
  const [code] = await once(
    spawn('stryker', ['run', '--mutate', ranges.join(',')], { stdio: 'inherit', env }),
    'exit',
  );
  if (code !== 0) throw new Error(`Expected ${tests} to pass before any change is made`);
  const { files } = reportSchema.parse(JSON.parse(await readFile(config.jsonReporter.fileName, 'utf8')));
  return Object.entries(files).flatMap(([file, { source, mutants }]) => {
    const lines = source.split('\n');
    return mutants.map(({ status, mutatorName, replacement, location: { start, end } }) => ({
      file,
      // The report counts columns from 1, and the command line from 0.
      range: `${file}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`,
      description: `${file}:${start.line} ${mutatorName}: ${lines[start.line - 1]?.trim()} → ${replacement}`,
      status,
    }));
  });
}

/** Returns the percentage of reached changes that a test noticed, or 100 if no change was missed. */
function computeScore(changes: readonly Change[]): number {
  const [noticed, survived] = [['Killed', 'Timeout'], ['Survived']].map(
    (statuses) => changes.filter(({ status }) => statuses.includes(status)).length,
  );
  return survived === 0 ? 100 : (100 * (noticed ?? 0)) / ((noticed ?? 0) + (survived ?? 0));
}

function buildRow(name: string, changes: readonly Change[]): string[] {
  const counts = ['Killed', 'Timeout', 'Survived', 'NoCoverage'].map(
    (wanted) => changes.filter(({ status }) => status === wanted).length,
  );
  const sum = counts.reduce((total, count) => total + count, 0);
  return [name, ...[sum, ...counts].map(String), `${computeScore(changes).toFixed(1)}%`];
}

const results = new Map<string, Change[]>();
for (const part of chosen(['root', ...FOLDERS], positionals)) {
  const tests = OWN_TESTS[part] ?? `test/${part}/**/*.test.ts`;
  results.set(part, await breakLines(await drawLines(listSources(part)), tests));
}
// Try the missed changes of all folders in one run: each run first runs all tests, to see which lines each test reaches.
const missed = [...results.values()].flat().filter(isMissed);
const again = await breakLines([...new Set(missed.map(({ range }) => range))], ALL_TESTS);
const statuses = new Map(again.map(({ description, range, status }) => [range + description, status]));
for (const [name, changes] of results) {
  const updated = changes.map((change) =>
    isMissed(change)
      ? { ...change, status: statuses.get(change.range + change.description) ?? change.status }
      : change,
  );
  results.set(name, updated);
}
const all = [...results.values()].flat();
for (const { description, status } of all.filter(isMissed)) console.log(`${status}: ${description}`);
const head = ['Folder', 'Changes', 'Noticed', 'Timed out', 'Unnoticed', 'Reached by no test', 'Score'];
const rows = [...results].map(([name, changes]) => buildRow(name, changes));
console.log(markdownTable(head, [...rows, buildRow('all', all)]));
const isGood = [...results.values()].every((changes) => computeScore(changes) >= MIN_PERCENT.folder);
process.exitCode = isGood && computeScore(all) >= MIN_PERCENT.all ? 0 : 1;
