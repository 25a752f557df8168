import { describe, expect, test } from 'vitest';
import { countTests, listFailures } from '../../scripts/support/suite-report.ts';

const NO_REDIS = 'Redis does not respond at 127.0.0.1:1; set REDIS_URL';

interface ReportedTest {
  readonly status: string;
  readonly fullName?: string;
  readonly failureMessages?: readonly string[];
  readonly meta?: { skipReason?: string };
}

/** The report of a suite with one file of these tests. */
function buildReport(tests: readonly ReportedTest[], message = ''): string {
  const count = (wanted: string) => tests.filter(({ status }) => status === wanted).length;
  const assertionResults = tests.map((test) => ({ fullName: 'a → b', ...test }));
  return JSON.stringify({
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    testResults: [{ name: '/root/test/a.test.ts', message, assertionResults }],
  });
}

describe('the counts of a suite', () => {
  test('skipped tests → counted for each reason, or for none', () => {
    const noRedis = { status: 'skipped', meta: { skipReason: NO_REDIS } };
    const report = buildReport([{ status: 'passed' }, noRedis, { status: 'todo', meta: {} }, noRedis]);
    const skipped = new Map([
      [NO_REDIS, 2],
      ['the test itself says so', 1],
    ]);
    expect(countTests(report, true)).toEqual({ passed: 1, failed: 0, skipped });
  });

  test.each([
    ['a failed test', buildReport([{ status: 'passed' }, { status: 'failed' }]), false, 1, 1],
    ['all passed, but an error outside a test', buildReport([{ status: 'passed' }]), false, 1, 1],
    ['no test that ran', buildReport([{ status: 'skipped' }]), true, 0, 1],
    ['no report', undefined, false, 0, 1],
  ])('%s → %i passed, %i failed', (_title, report, isGood, passed, failed) => {
    expect(countTests(report, isGood)).toMatchObject({ passed, failed });
  });
});

describe('what a failed suite prints', () => {
  const STACK = `AssertionError: expected 1 to be 2
and more
    at Proxy.<anonymous> (file:///root/node_modules/chai/index.js:1:2)
    at helper (/root/test/helper.ts:3:4)
    at /root/test/a.test.ts:19:32`;

  test('a failed test → its name, its message, and its line in the file of the test', () => {
    const report = buildReport([
      { status: 'passed' },
      { status: 'failed', fullName: 'calls a 500 → retried', failureMessages: [STACK, 'of a second try'] },
    ]);
    expect(listFailures(report)).toEqual([
      'calls a 500 → retried\n  AssertionError: expected 1 to be 2\n  and more\n  at /root/test/a.test.ts:19:32',
    ]);
  });

  test('a file that fails outside of its tests → its message and its path', () => {
    expect(listFailures(buildReport([], 'no such module'))).toEqual([
      'outside of all tests\n  no such module\n  at /root/test/a.test.ts',
    ]);
  });
});
