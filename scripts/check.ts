// Runs every check: format, lint, types, docs, build, package lint, and all tests. Prints one line for each step and, at the
// end, the count of all checks. Each step that is not a test suite counts as one check.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { run } from './support/run.ts';

interface Step {
  readonly name: string;
  readonly command: string;
  /** Name of a Vitest project; its tests are counted one by one. */
  readonly project?: string;
  /** If true, the step gets the lowest priority. */
  readonly isLowPriority?: boolean;
}

/** Lint runs first, because a build puts temporary files into the root. Biome also checks for circular imports. */
const lintSteps: readonly Step[] = [{ name: 'format and lint', command: 'biome ci --error-on-warnings .' }];
const packageSteps: readonly Step[] = [
  { name: 'build', command: 'npm run build' },
  { name: 'publint', command: 'publint --strict' },
  { name: 'attw', command: 'attw --pack . --format ascii' },
];
/** These tests do not depend on real time, so they run beside the build, which the tests with servers need. */
const unitSteps: readonly Step[] = [
  { name: 'unit tests', command: 'vitest run', project: 'unit' },
  { name: 'contract tests', command: 'vitest run', project: 'contract' },
];
/** These tests are timed against servers and real time, so everything that runs beside them has a low priority. */
const serverSteps: readonly Step[] = [
  { name: 'integration tests', command: 'vitest run', project: 'integration' },
];
/** These steps need only the sources, so they run from the beginning in the time that the others leave. */
const sourceSteps: readonly Step[] = [
  { name: 'docs', command: 'tsx scripts/docs.ts --check', isLowPriority: true },
  // Compiles everything, and fails for an error in any file.
  { name: 'types', command: 'vitest run', project: 'types', isLowPriority: true },
];

/** A step that does not end by itself has failed. */
const STEP_TIMEOUT_MS = 900_000;

const cwd = fileURLToPath(new URL('..', import.meta.url));
const binFolder = join(cwd, 'node_modules', '.bin');
const reportSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
});

/** Reads how many tests of a suite passed. A suite that ran no test, or failed outside a test, counts as failed. */
async function countTests(
  report: string,
  isGood: boolean,
): Promise<{ passed: number; failed: number; skipped: number }> {
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined) return { passed: 0, failed: 1, skipped: 0 };
  const { numPassedTests: passed, numFailedTests, ...others } = reportSchema.parse(JSON.parse(text));
  const isBroken = passed === 0 || (!isGood && numFailedTests === 0);
  const skipped = others.numPendingTests + others.numTodoTests;
  return { passed, failed: numFailedTests + (isBroken ? 1 : 0), skipped };
}

const total = { passed: 0, failed: 0, skipped: 0 };
const scratch = await mkdtemp(join(tmpdir(), 'tracking-client-check-'));

async function take(steps: readonly Step[]): Promise<void> {
  for (const { name, command, project, isLowPriority } of steps) {
    const startedAt = performance.now();
    const report = join(scratch, `${project}.json`);
    const reporters = [
      '--project',
      `${project}`,
      '--reporter=dot',
      '--reporter=json',
      `--outputFile.json=${report}`,
    ];
    const [program = '', ...args] = [...command.split(' '), ...(project === undefined ? [] : reporters)];
    const { isGood, output } = await run(program, args, {
      cwd,
      binFolder,
      timeoutMs: STEP_TIMEOUT_MS,
      isLowPriority,
    });
    const count =
      project === undefined
        ? { passed: isGood ? 1 : 0, failed: isGood ? 0 : 1, skipped: 0 }
        : await countTests(report, isGood);
    total.passed += count.passed;
    total.failed += count.failed;
    total.skipped += count.skipped;
    const state = count.failed === 0 ? 'ok    ' : 'FAILED';
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(6);
    const detail = project === undefined ? '' : `  ${count.passed} passed, ${count.skipped} skipped`;
    console.log(`${state} ${name.padEnd(18)} ${seconds} s${detail}`);
    if (count.failed > 0) console.log(output);
    else for (const line of output.match(/^skipped:.*/gm) ?? []) console.log(`       ${line}`);
  }
}

try {
  await take(lintSteps);
  const testsEnded = Promise.all([take(packageSteps), take(unitSteps)]).then(() => take(serverSteps));
  await Promise.all([testsEnded, take(sourceSteps)]);
} finally {
  await rm(scratch, { recursive: true, force: true });
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 ? 0 : 1;
