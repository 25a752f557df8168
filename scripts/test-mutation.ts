// Breaks the sources, one small change at a time, and looks whether the tests of the same folder notice: `errors`, `http`, …;
// arguments choose some. `--sample 10` tries a tenth of the lines, and `--seed 2` another tenth. A change whose outcome is known
// from the last run is not tried again. Prints each change that nobody noticed and a table of the folders; fails below the
// scores that follow.
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

/** Noticed changes, in percent of those that a test reaches. */
const LEAST_PERCENT = { all: 90, folder: 85 } as const;

const FOLDERS = ['http', 'limiter', 'webhooks', 'trackers', 'schemas', 'redis', 'postgres'];

/** Where not only the folder's own tests have to notice. */
const OTHER_TESTS = new Map([
  ['http', 'test/{http/**/,}*.test.ts'],
  // The adapter for `node:http` is tried on a real server, and what may be undone needs a transaction.
  ['webhooks', 'test/{webhooks/**/*,integration/webhook-node-adapter,postgres/transactional-run}.test.ts'],
  ['schemas', 'test/{contract,schemas}/**/*.test.ts'],
]);

/** What is broken, and who has to notice. */
const parts = new Map([
  ['errors', { sources: ['src/errors.ts', 'src/api-errors.ts'], tests: 'test/*.test.ts' }],
  ...FOLDERS.map((folder) => {
    const tests = OTHER_TESTS.get(folder) ?? `test/${folder}/**/*.test.ts`;
    const sources = readdirSync(`src/${folder}`).map((file) => `src/${folder}/${file}`);
    return [folder, { sources, tests }] as const;
  }),
]);

const reportSchema = z.object({
  files: z.record(z.string(), z.object({ mutants: z.array(z.object({ status: z.string() })) })),
});

/** How many changes ended how; those that are not tried, as of text, do not count. */
class Tally {
  readonly #counts = new Map<string, number>();

  add(statuses: readonly string[]): void {
    for (const status of statuses) this.#counts.set(status, this.#of(status) + 1);
  }

  get percent(): number {
    const noticed = this.#of('Killed') + this.#of('Timeout');
    return (100 * noticed) / (noticed + this.#of('Survived'));
  }

  row(name: string): string[] {
    const counts = ['Killed', 'Timeout', 'Survived', 'NoCoverage'].map((status) => this.#of(status));
    const sum = counts.reduce((total, count) => total + count, 0);
    return [name, ...[sum, ...counts].map(String), `${this.percent.toFixed(1)}%`];
  }

  #of(status: string): number {
    return this.#counts.get(status) ?? 0;
  }
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' } },
});

/** Lines of a file are drawn in blocks of this length. A change is tried if all of its lines were drawn. */
const BLOCK_LINES = 12;

/** Whether a block of lines is in the sample: for a seed always the same ones, whatever becomes of other files. */
function isDrawn(file: string, firstLine: number): boolean {
  const hash = createHash('sha256').update(`${options.seed} ${file} ${firstLine}`).digest();
  return (100 * hash.readUInt32BE()) / 2 ** 32 < Number(options.sample);
}

/** The drawn lines of the sources, as Stryker's ranges. */
async function sampleOf(sources: readonly string[]): Promise<string[]> {
  const ranges: string[] = [];
  for (const file of sources) {
    const lineCount = (await readFile(file, 'utf8')).split('\n').length;
    for (let firstLine = 1; firstLine <= lineCount; firstLine += BLOCK_LINES)
      if (isDrawn(file, firstLine)) ranges.push(`${file}:${firstLine}-${firstLine + BLOCK_LINES - 1}`);
  }
  return ranges;
}

/** Breaks one part. Resolves to what became of each change. */
async function breakPart(name: string, { sources, tests }: { sources: readonly string[]; tests: string }) {
  const isSample = options.sample !== '100';
  const incrementalFile = `.tmp/mutation/${name}${isSample ? `-${options.sample}-${options.seed}` : ''}.json`;
  const mutate = isSample ? await sampleOf(sources) : sources;
  const args = ['run', '--mutate', mutate.join(','), '--incrementalFile', incrementalFile];
  const env = { ...process.env, MUTATION_TESTS: tests };
  const [code] = await once(spawn('stryker', args, { stdio: 'inherit', env }), 'exit');
  if (code !== 0) throw new Error(`Expected the tests of ${name} to pass before anything is broken`);
  const { files } = reportSchema.parse(JSON.parse(await readFile(config.jsonReporter.fileName, 'utf8')));
  return Object.values(files).flatMap(({ mutants }) => mutants.map(({ status }) => status));
}

const all = new Tally();
const rows: string[][] = [];
let isGood = true;
for (const name of chosen([...parts.keys()], positionals)) {
  const part = parts.get(name);
  if (part === undefined) continue;
  const tally = new Tally();
  const statuses = await breakPart(name, part);
  for (const each of [tally, all]) each.add(statuses);
  rows.push(tally.row(name));
  isGood &&= tally.percent >= LEAST_PERCENT.folder;
}
const head = ['Folder', 'Changes', 'Noticed', 'Endless', 'Unnoticed', 'Reached by no test', 'Score'];
console.log(markdownTable(head, [...rows, all.row('all')]));
process.exitCode = isGood && all.percent >= LEAST_PERCENT.all ? 0 : 1;
