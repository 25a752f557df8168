// Runs the checks of `npm test`: format, lint, types, and the unit, contract and integration tests. With `--all`, it runs the checks
// of `npm run check`: also the build, the lint of the package, the docs and the system tests. Prints one line for each step, and what
// failed; at the end, how many tests were skipped for which reason, and the count of all checks. Each step that is not a test
// suite counts as one check. The output of each step is in `.tmp/check`.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import manifest from '../package.json' with { type: 'json' };
import { run } from './support/run.ts';
import { type Counts, countTests, cutLines, listFailures } from './support/suite-report.ts';

interface Step {
  readonly name: string;
  readonly command: string;
  /** Name of a Vitest project; its tests are counted one by one. */
  readonly project?: string;
  /** If true, the step gets the lowest priority. */
  readonly isLowPriority?: boolean;
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Relative to the root, because a command is split at its spaces. */
const FOLDER = '.tmp/check';
const TARBALL = `${FOLDER}/${manifest.name}-${manifest.version}.tgz`;

/** Lint runs first, because a build puts temporary files into the root. Biome also checks for circular imports. */
const steps: readonly Step[] = [
  { name: 'format and lint', command: 'biome ci --error-on-warnings .' },
  // Compiles everything, and fails for an error in any file.
  { name: 'types', command: 'vitest run', project: 'types' },
  { name: 'unit tests', command: 'vitest run', project: 'unit' },
  { name: 'contract tests', command: 'vitest run', project: 'contract' },
  { name: 'integration tests', command: 'vitest run', project: 'integration' },
];
const packageSteps: readonly Step[] = [
  // npm runs `prepare` first, which builds the package if a source is newer than the build.
  { name: 'build and pack', command: `npm pack --pack-destination ${FOLDER}` },
  { name: 'publint', command: `publint --strict ${TARBALL}` },
  { name: 'attw', command: `attw ${TARBALL} --format ascii` },
];
const systemSteps: readonly Step[] = [{ name: 'system tests', command: 'vitest run', project: 'system' }];
/** The system tests measure real time, so the docs are built beside them with the lowest priority. */
const docsSteps: readonly Step[] = [
  { name: 'docs', command: 'tsx scripts/docs.ts --check', isLowPriority: true },
];

/** A step that does not end by itself has failed. A busy machine needs ten times as long as a quiet one. */
const STEP_TIMEOUT_MS = 3_600_000;

/** No more lines than these are printed about failures, so that the first failure stays on the screen. */
const MAX_LINES = { all: 150, step: 60 } as const;

const binFolder = join(ROOT, 'node_modules', '.bin');
const total = { passed: 0, failed: 0 };
const skipped = new Map<string, number>();
let linesLeft: number = MAX_LINES.all;

function printFailure(text: string, log: string): void {
  const printed = cutLines(text, Math.min(MAX_LINES.step, linesLeft));
  linesLeft = Math.max(0, linesLeft - printed.split('\n').length);
  console.log(`${printed}\nThe whole output is in ${log}\n`);
}

async function take(steps: readonly Step[]): Promise<void> {
  for (const { name, command, project, isLowPriority } of steps) {
    const startedAt = performance.now();
    const log = `${FOLDER}/${name.replaceAll(' ', '-')}.log`;
    const reportFile = `${FOLDER}/${project}.json`;
    const reporters = ['--project', `${project}`, '--reporter=default', '--reporter=json'];
    const suite = project === undefined ? [] : [...reporters, `--outputFile.json=${reportFile}`];
    const [program = '', ...args] = [...command.split(' '), ...suite];
    const { isGood, output } = await run(program, args, {
      cwd: ROOT,
      binFolder,
      timeoutMs: STEP_TIMEOUT_MS,
      isLowPriority,
    });
    await writeFile(join(ROOT, log), output);
    const report =
      project === undefined
        ? undefined
        : await readFile(join(ROOT, reportFile), 'utf8').catch(() => undefined);
    const single: Counts = { passed: isGood ? 1 : 0, failed: isGood ? 0 : 1, skipped: new Map() };
    const count = project === undefined ? single : countTests(report, isGood);
    total.passed += count.passed;
    total.failed += count.failed;
    for (const [reason, tests] of count.skipped) skipped.set(reason, (skipped.get(reason) ?? 0) + tests);
    const state = count.failed === 0 ? 'ok    ' : 'FAILED';
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(6);
    const detail = project === undefined ? '' : `  ${count.passed} passed, ${count.failed} failed`;
    console.log(`${state} ${name.padEnd(18)} ${seconds} s${detail}`);
    if (count.failed === 0) continue;
    const failures = report === undefined ? [] : listFailures(report);
    printFailure(failures.length > 0 ? failures.join('\n\n') : output, log);
  }
}

await rm(join(ROOT, FOLDER), { recursive: true, force: true });
await mkdir(join(ROOT, FOLDER), { recursive: true });
await take(steps);
if (process.argv.includes('--all')) {
  await take(packageSteps);
  await Promise.all([take(systemSteps), take(docsSteps)]);
}
for (const [reason, tests] of skipped) console.log(`${tests} skipped: ${reason}`);
const skippedTests = [...skipped.values()].reduce((sum, tests) => sum + tests, 0);
console.log(`${total.passed} passed, ${total.failed} failed, ${skippedTests} skipped`);
process.exitCode = total.failed === 0 ? 0 : 1;
