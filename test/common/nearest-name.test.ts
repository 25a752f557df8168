import { describe, expect, test } from 'vitest';
import { nearestName } from '../../src/common/option-checks.ts';

describe('nearestName', () => {
  test.each([
    ['timeoutMS', ['timeoutMs', 'totalTimeoutMs'], 'timeoutMs'],
    ['timeout', ['totalTimeoutMs', 'timeoutMs'], 'timeoutMs'],
    ['limits', ['sort', 'limit'], 'limit'],
    ['baesUrl', ['apiKey', 'baseUrl'], 'baseUrl'],
    ['pge', ['sort', 'page'], 'page'],
    ['retrys', ['retry', 'retries'], 'retry'],
  ])('%s among %j → %s', (given, names, meant) => {
    expect(nearestName(given, names)).toBe(meant);
  });

  test.each([
    ['times', ['retries', 'minDelayMs']],
    ['', ['page']],
    ['a', ['apiKey']],
    ['verbose', ['limit', 'sort', 'page']],
  ])('%s among %j → none', (given, names) => {
    expect(nearestName(given, names)).toBeUndefined();
  });
});
