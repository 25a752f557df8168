import { describe, expect, test } from 'vitest';
import { countTests, cutLines, findFailures } from '../../scripts/support/suite-report.ts';

const NO_REDIS = 'Redis does not respond at 127.0.0.1:1; set REDIS_URL';

/** The report of a suite with tests of these kinds. */
function buildReport(...tests: { status: string; meta?: { skipReason?: string } }[]): string {
  const count = (wanted: string) => tests.filter(({ status }) => status === wanted).length;
  return JSON.stringify({
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    testResults: [{ assertionResults: tests }],
  });
}

describe('the counts of a suite', () => {
  test('skipped tests → counted for each reason, or for none', () => {
    const noRedis = { status: 'skipped', meta: { skipReason: NO_REDIS } };
    const report = buildReport({ status: 'passed' }, noRedis, { status: 'todo', meta: {} }, noRedis);
    const skipped = new Map([
      [NO_REDIS, 2],
      ['the test itself says so', 1],
    ]);
    expect(countTests(report, true)).toEqual({ passed: 1, failed: 0, skipped });
  });

  test.each([
    ['a failed test', buildReport({ status: 'passed' }, { status: 'failed' }), false, 1, 1],
    ['all passed, but an error outside a test', buildReport({ status: 'passed' }), false, 1, 1],
    ['no test that ran', buildReport({ status: 'skipped' }), true, 0, 1],
    ['no report', undefined, false, 0, 1],
  ])('%s → %i passed, %i failed', (_title, report, isGood, passed, failed) => {
    expect(countTests(report, isGood)).toMatchObject({ passed, failed });
  });
});

describe('what a failed suite prints', () => {
  test('the output of Vitest → begins with the first failure', () => {
    const output =
      ' ✓ unit test/a.test.ts\n\n⎯⎯⎯ Failed Tests 1 ⎯⎯⎯\n\n FAIL  unit test/b.test.ts > a → b\nError: no\n';
    expect(findFailures(output)).toMatch(
      /^⎯+ Failed Tests 1 ⎯+\n\n FAIL {2}unit test\/b\.test\.ts > a → b\n/,
    );
  });

  test('an output without this part → all of it', () => {
    expect(findFailures('Startup Error\n')).toBe('Startup Error\n');
  });

  test.each([
    [10, 'a b c d e f g h i j'],
    [8, 'a b c d e … 3 more lines i j'],
    [0, '… 10 more lines'],
  ])('ten lines, of which %i may be printed → the beginning and the end', (maxLines, expected) => {
    const cut = cutLines('a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n', maxLines);
    expect(cut.replaceAll('\n', ' ')).toBe(expected);
  });
});
