import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { trackerInputSchema } from '../../src/schemas/tracker.ts';
import { issuesOf } from '../support/parse.ts';

const NOW = Date.parse('2026-07-01T12:00:00Z');
const DAY_MS = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});
afterEach(() => {
  vi.useRealTimers();
});

const issues = (shippingDate: unknown) =>
  issuesOf(trackerInputSchema, { trackingNumber: 'LA680658838NL', shippingDate });

describe('form', () => {
  test.each([
    '2024-02-29',
    '2026-06-30T10:00',
    '2026-06-30T10:00:00.123456',
    '2026-06-30T10:00:00Z',
    '2026-06-30T10:00:00+23:59',
  ])('%s → accepted', (value) => {
    vi.setSystemTime(Date.parse('2024-03-01'));
    expect(issues(value)).toEqual([]);
  });

  test.each([
    '',
    '30/06/2026',
    '2026-02-29',
    '2026-06-30T25:00:00',
    '2026-06-30T10:00:00+24:00',
    ' 2026-06-30',
    '2026-06-30\n',
    '1782900000000',
    '2026-06',
    '2026-06-30 10:00',
    '2026-06-30/2026-07-01',
  ])('%j → rejected with the rule', (value) => {
    expect(issues(value).map((issue) => issue.message)).toEqual([
      expect.stringContaining('Expected `shippingDate` to be an ISO 8601 date, got '),
    ]);
  });

  test('a Date object → rejected, the kind is named', () => {
    expect(issues(new Date()).map((issue) => issue.message)).toEqual([
      'Expected `shippingDate` to be a string, got a Date',
    ]);
  });
});

describe('age', () => {
  const OUTDATED = {
    path: ['shippingDate'],
    code: 'shipping_date_outdated',
    message: 'Expected `shippingDate` to be at most 180 days old, got an older date',
  };

  test('exactly 180 days old → accepted', () => {
    expect(issues(new Date(NOW - 180 * DAY_MS).toISOString())).toEqual([]);
  });

  test('a second and a bit more than 180 days old → rejected as outdated', () => {
    expect(issues(new Date(NOW - 180 * DAY_MS - 2_000).toISOString())).toEqual([OUTDATED]);
  });

  test('in the future → accepted: only the service can know', () => {
    expect(issues('2027-01-01')).toEqual([]);
  });

  test('a date that is at most 180 days over somewhere on earth → accepted', () => {
    vi.setSystemTime(Date.parse('2026-07-01T11:59:59.999Z'));
    expect(issues('2026-01-01')).toEqual([]);
  });

  test('a date that is over everywhere for more than 180 days → rejected as outdated', () => {
    vi.setSystemTime(Date.parse('2026-07-01T12:00:00Z'));
    expect(issues('2026-01-01')).toEqual([OUTDATED]);
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
