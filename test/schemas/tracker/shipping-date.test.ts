import fc from 'fast-check';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { trackerInputSchema } from '../../../src/schemas/tracker.ts';
import { readIssues } from '../../support/parse.ts';

const NOW = Date.parse('2026-07-01T12:00:00Z');
const DAY_MS = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});
const issues = (shippingDate: unknown) =>
  readIssues(trackerInputSchema, { trackingNumber: 'LA680658838NL', shippingDate });

describe('form', () => {
  const times = ['10:00', '10:00:00.123456', '10:00:00Z', '10:00:00+23:59'].map(
    (time) => `2026-06-30T${time}`,
  );

  test.each(['2024-02-29', ...times])('%s → accepted', (value) => {
    vi.setSystemTime(Date.parse('2024-03-01'));
    expect(issues(value)).toEqual([]);
  });

  test.each([
    ...['', '30/06/2026', '1782900000000', '2026-06', '2026-02-29', ' 2026-06-30', '2026-06-30\n'],
    ...['2026-06-30T25:00:00', '2026-06-30T10:00:00+24:00', '2026-06-30 10:00', '2026-06-30/2026-07-01'],
  ])('%j → rejected with the rule', (value) => {
    const message = expect.stringContaining(
      'Expected `shippingDate` to be an ISO 8601 date such as 2026-11-15, got ',
    );
    expect(issues(value)).toMatchObject([{ message }]);
  });

  test('a Date object → rejected with a message that names its kind', () => {
    expect(issues(new Date())).toMatchObject([
      { message: 'Expected `shippingDate` to be a string, got a Date' },
    ]);
  });
});

describe('age', () => {
  const OUTDATED = {
    path: ['shippingDate'],
    code: 'shipping_date_outdated',
    message: "Expected `shippingDate` to be at most 180 days old, got '2026-01-02T11:59:59.000Z'",
  };

  test.each([
    ['a time of exactly 180 days ago → accepted', '2026-01-02T12:00:00.000Z', []],
    ['a time of 180 days and one second ago → outdated', '2026-01-02T11:59:59.000Z', [OUTDATED]],
    ['a date in the future → accepted, because only the service can judge it', '2027-01-01', []],
  ])('%s', (_what, value, expected) => {
    expect(issues(value)).toEqual(expected);
  });

  test('a date → outdated once it has been over for 180 days everywhere on earth', () => {
    vi.setSystemTime(NOW - 1);
    expect(issues('2026-01-01')).toEqual([]);
    vi.setSystemTime(NOW);
    expect(issues('2026-01-01')).toMatchObject([{ code: 'shipping_date_outdated' }]);
  });

  test('a date within 180 days in any zone → never rejected', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 180 * DAY_MS }),
        fc.integer({ min: -12 * 60, max: 14 * 60 }),
        fc.constantFrom(10, 16, 19),
        (ageMs, offsetMinutes, length) => {
          const local = new Date(NOW - ageMs + offsetMinutes * 60_000).toISOString().slice(0, length);
          expect(issues(local)).toEqual([]);
        },
      ),
    );
  });
});
