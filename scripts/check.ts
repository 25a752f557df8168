// The whole check: format, lint, types, build, package lint, unit, integration and type tests. Prints one line a step
// and ends with the count of all checks. Each step that is no test suite counts as one check.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { run } from './support/run.ts';

interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Reads the counts of a test suite; other steps are one check. */
  readonly count?: () => Promise<Count>;
  /** What failed in a test suite; other steps print their own output. */
  readonly explain?: () => Promise<string>;
}

const reportSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(
        z.object({
          status: z.string(),
          fullName: z.string(),
          failureMessages: z.array(z.string()).nullish(),
        }),
      ),
    }),
  ),
});

async function readReport(file: string): Promise<z.output<typeof reportSchema>> {
  return reportSchema.parse(JSON.parse(await readFile(file, 'utf8')));
}

function failureOf(test: {
  status: string;
  fullName: string;
  failureMessages?: string[] | null | undefined;
}): string[] {
  return test.status === 'failed' ? [`  ${test.fullName}`, ...(test.failureMessages ?? [])] : [];
}

/** Integration tests mostly wait for servers and children, so more of them than cores run side by side. */
const INTEGRATION_WORKERS = 4;

/** A step that does not end by itself has failed. */
const STEP_TIMEOUT_MS = 900_000;
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const scratch = await mkdtemp(join(tmpdir(), 'tracking-client-check-'));

function bin(name: string, ...args: string[]): readonly [string, ...string[]] {
  return [join('node_modules', '.bin', name), ...args];
}

function vitest(project: string, isTypes = false): Step {
  const report = join(scratch, `${project}.json`);
  return {
    name: isTypes ? 'type tests' : `${project} tests`,
    command: bin(
      'vitest',
      'run',
      '--project',
      project,
      ...(project === 'integration' ? [`--maxWorkers=${INTEGRATION_WORKERS}`] : []),
      '--reporter=json',
      `--outputFile.json=${report}`,
    ),
    count: async () => {
      const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = await readReport(report);
      return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests + numTodoTests };
    },
    explain: async () => {
      const { testResults } = await readReport(report);
      return testResults
        .filter((file) => file.status === 'failed')
        .flatMap((file) => [`${file.name} ${file.message}`, ...file.assertionResults.flatMap(failureOf)])
        .join('\n');
    },
  };
}

const steps: readonly Step[] = [
  { name: 'format and lint', command: bin('biome', 'ci', '--error-on-warnings', '.') },
  { name: 'types', command: bin('tsc') },
  { name: 'docs', command: bin('tsx', 'scripts/docs/main.ts', '--check') },
  { name: 'build', command: ['npm', 'run', 'build'] },
  { name: 'publint', command: bin('publint', '--strict') },
  { name: 'attw', command: bin('attw', '--pack', '.', '--format', 'ascii') },
  vitest('types', true),
  vitest('unit'),
  vitest('integration'),
];

async function countOf(step: Step, isGood: boolean): Promise<Count> {
  const single = { passed: isGood ? 1 : 0, failed: isGood ? 0 : 1, skipped: 0 };
  if (step.count === undefined) return single;
  const count = await step.count().catch(() => undefined);
  // A suite that ran nothing, or failed outside a test, must not look green.
  if (count === undefined || Number.isNaN(count.passed + count.failed))
    return { passed: 0, failed: 1, skipped: 0 };
  if (count.passed === 0 || (!isGood && count.failed === 0)) return { ...count, failed: count.failed + 1 };
  return count;
}

const total = { passed: 0, failed: 0, skipped: 0 };
try {
  for (const step of steps) {
    const startedAt = performance.now();
    const [command, ...args] = step.command;
    const { isGood, output } = await run(command, args, { cwd: ROOT, timeoutMs: STEP_TIMEOUT_MS });
    const count = await countOf(step, isGood);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    total.passed += count.passed;
    total.failed += count.failed;
    total.skipped += count.skipped;
    const detail = step.count === undefined ? '' : `  ${count.passed} passed, ${count.skipped} skipped`;
    console.log(
      `${count.failed === 0 ? 'ok    ' : 'FAILED'} ${step.name.padEnd(18)} ${seconds.padStart(6)} s${detail}`,
    );
    if (count.failed > 0) console.log((await step.explain?.().catch(() => output)) ?? output);
    else
      for (const line of output.split('\n').filter((text) => text.startsWith('skipped:')))
        console.log(`       ${line}`);
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 ? 0 : 1;
