import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { latestInstant, trackerInputSchema } from '../../src/schemas/tracker.ts';
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
    '2026-06-30',
    '2026-06-30T10',
    '2026-06-30T10:00',
    '2026-06-30T10:00:00',
    '2026-06-30T10:00:00.123456',
    '2016-12-31T23:59:60Z',
    '2026-06-30T10:00:00,5',
    '2026-06-30T10:00Z',
    '2026-06-30T10:00:00.000Z',
    '2026-06-30T10:00:00+02:00',
    '2026-06-30T10:00:00-0530',
    '2026-06-30T10:00:00+02',
    '2024-02-29T24:00:00Z',
    '2026-06-30T24Z',
    '2026-06-30T10:00:00+23:59',
    '20260630',
    '20260630T100000Z',
    '20260630T1000+0200',
    '2026-W27-2',
    '2026W272',
    '2026-W53-7',
    '2026-w27-2t10:00z',
    '2026-181',
    '2026181',
    '2024-366',
    '2026-06-30t10:00:00z',
  ])('%s → a date', (value) => {
    expect(latestInstant(value)).toBeTypeOf('number');
  });

  test.each([
    '',
    'yesterday',
    '30/06/2026',
    '2026-6-30',
    '2026-06-31',
    '2026-02-29',
    '2026-00-10',
    '2026-13-01',
    '2026-06-00',
    '2026-06-30T25:00:00',
    '2026-06-30T10:60',
    '2026-06-30T10:00:61',
    '2026-06-30T10:00:00 +02:00',
    '2026-06-30T10:00:00+24:00',
    '2026-06-30T10:00:00+02:60',
    '2026-06-30T10:00:00-99:99',
    '2026-06-30T24:30:00Z',
    '2026-06-30T24:00:01Z',
    '20260630T2401Z',
    ' 2026-06-30',
    '2026-06-30\n',
    '1782900000000',
    '2026-W00-1',
    '2026-W54-1',
    '2025-W53-1',
    '2026-W27-0',
    '2026-W27-8',
    '2026-W27',
    '2026-366',
    '2026-000',
    '2026-06',
    '2026',
    '202606',
    '+002026-06-30',
    '2026-0630',
    '2026-06-30T100000Z',
    '20260630T10:00:00Z',
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

describe('latestInstant', () => {
  test.each([
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.999Z'],
    ['2026-01-01T00:00:00.5Z', '2026-01-01T00:00:00.999Z'],
    ['2026-01-01T00Z', '2026-01-01T00:59:59.999Z'],
    ['2026-01-01T00:00Z', '2026-01-01T00:00:59.999Z'],
    ['2026-01-01T02:00:00+02:00', '2026-01-01T00:00:00.999Z'],
    ['2025-12-31T18:30:00-0530', '2026-01-01T00:00:00.999Z'],
    ['2026-01-01T01:00:00+01', '2026-01-01T00:00:00.999Z'],
    ['2026-01-01T00:00:00', '2026-01-01T12:00:00.999Z'],
    ['2026-01-01', '2026-01-02T11:59:59.999Z'],
    ['2024-02-29', '2024-03-01T11:59:59.999Z'],
    ['2026-01-01T24:00:00Z', '2026-01-02T00:00:00.999Z'],
    ['20260101T020000+0200', '2026-01-01T00:00:00.999Z'],
    ['2026-W01-4T00:00:00Z', '2026-01-01T00:00:00.999Z'],
    ['2026-W01-1T00:00:00Z', '2025-12-29T00:00:00.999Z'],
    ['2020-W53-5T00:00:00Z', '2021-01-01T00:00:00.999Z'],
    ['2024-366T00:00:00Z', '2024-12-31T00:00:00.999Z'],
  ])('%s → %s, the last instant it can mean anywhere', (value, expected) => {
    expect(new Date(latestInstant(value) ?? Number.NaN).toISOString()).toBe(expected);
  });

  test('any instant in any zone → never later than what is computed', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
        fc.integer({ min: -12 * 60, max: 14 * 60 }),
        (instant, offsetMinutes) => {
          const local = new Date(instant.getTime() + offsetMinutes * 60_000).toISOString();
          const forms = [
            instant.toISOString(),
            local.slice(0, 23),
            local.slice(0, 19),
            local.slice(0, 16),
            local.slice(0, 10),
          ];
          for (const form of forms) expect(latestInstant(form)).toBeGreaterThanOrEqual(instant.getTime());
        },
      ),
    );
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
