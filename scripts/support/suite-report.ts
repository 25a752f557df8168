import { z } from 'zod';

/** The report that Vitest's reporter `json` writes. */
const reportSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  testResults: z.array(
    z.object({
      /** Path of the file. */
      name: z.string(),
      /** The error outside of all tests, or an empty text. */
      message: z.string(),
      assertionResults: z.array(
        z.object({
          fullName: z.string(),
          status: z.string(),
          failureMessages: z.array(z.string()).default([]),
          meta: z.object({ skipReason: z.string().optional() }).optional(),
        }),
      ),
    }),
  ),
});

/** Longer messages are cut; the log of the step has all of them. */
const MAX_MESSAGE_LINES = 8;

/** How many tests of a suite passed, failed and were skipped. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  /** The number of skipped tests for each reason. */
  readonly skipped: ReadonlyMap<string, number>;
}

/**
 * Reads how many tests of a suite passed. A suite that ran no test, or failed outside a test, counts as one failed test.
 *
 * @param report - the text of the report; undefined if there is none
 * @param isGood - whether Vitest ended with the exit code 0
 */
export function countTests(report: string | undefined, isGood: boolean): Counts {
  if (report === undefined) return { passed: 0, failed: 1, skipped: new Map() };
  const { numPassedTests: passed, numFailedTests, testResults } = reportSchema.parse(JSON.parse(report));
  const isBroken = passed === 0 || (!isGood && numFailedTests === 0);
  const skipped = new Map<string, number>();
  for (const { status, meta } of testResults.flatMap(({ assertionResults }) => assertionResults)) {
    if (status === 'passed' || status === 'failed') continue;
    const reason = meta?.skipReason ?? 'the test itself says so';
    skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
  }
  return { passed, failed: numFailedTests + (isBroken ? 1 : 0), skipped };
}

/** Describes each failed test of a report: its name, its message, and the place of the failure. */
export function listFailures(report: string): string[] {
  const { testResults } = reportSchema.parse(JSON.parse(report));
  return testResults.flatMap(({ name: file, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    const tests = failed.map(({ fullName, failureMessages: [stack = ''] }) => {
      const place = stack.split('\n').find((line) => line.includes(`${file}:`));
      return formatFailure(fullName, stack, place?.slice(place.indexOf(file)).replace(/\)$/, '') ?? file);
    });
    return message === '' ? tests : [formatFailure('outside of all tests', message, file), ...tests];
  });
}

function formatFailure(name: string, stack: string, place: string): string {
  const [message = ''] = stack.split(/\n {4}at /);
  const lines = cutLines(message, MAX_MESSAGE_LINES).split('\n');
  return [name, ...lines.map((line) => `  ${line}`), `  at ${place}`].join('\n');
}

/** Shortens a text to a number of lines: most of them from its beginning, the others from its end. */
export function cutLines(text: string, maxLines: number): string {
  const lines = text.trimEnd().split('\n');
  if (lines.length <= maxLines) return lines.join('\n');
  const atEnd = Math.floor(maxLines / 4);
  const atBeginning = Math.max(0, maxLines - atEnd - 1);
  const left = lines.length - atBeginning - atEnd;
  return [...lines.slice(0, atBeginning), `… ${left} more lines`, ...lines.slice(lines.length - atEnd)].join(
    '\n',
  );
}
