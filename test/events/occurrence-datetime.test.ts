import { describe, expect, test } from 'vitest';
import { parseOccurrenceDatetime } from '../../src/index.ts';

const NOON = Date.UTC(2021, 2, 4, 12);

describe('parseOccurrenceDatetime', () => {
  test('local time → no instant', () => {
    expect(parseOccurrenceDatetime('2021-03-04T12:00:00')).toEqual({
      kind: 'local',
      date: '2021-03-04',
      timeMs: 43_200_000,
    });
  });

  test('date only → no time', () => {
    expect(parseOccurrenceDatetime('2021-03-04')).toEqual({ kind: 'date', date: '2021-03-04' });
  });

  test('UTC → the instant', () => {
    expect(parseOccurrenceDatetime('2021-03-04T12:00:00Z')).toMatchObject({ kind: 'utc', epochMs: NOON });
  });

  test.each([
    ['+02:00', -120, 120],
    ['-03:30', 210, -210],
    ['+0200', -120, 120],
    ['+02', -120, 120],
    ['-00:00', 0, 0],
  ])('offset %s → the instant and the offset', (offset, shiftMinutes, offsetMinutes) => {
    expect(parseOccurrenceDatetime(`2021-03-04T12:00:00${offset}`)).toMatchObject({
      kind: 'offset',
      date: '2021-03-04',
      offsetMinutes,
      epochMs: NOON + shiftMinutes * 60_000,
    });
  });

  test.each([
    ['12:00', 43_200_000],
    ['12:00:00.5', 43_200_500],
    ['12:00:00.123456', 43_200_123],
    ['12:34:56', 45_296_000],
    ['12:59', 46_740_000],
    ['12:00:60', 43_260_000],
    ['24:00:00', 86_400_000],
  ])('time %s → milliseconds since midnight', (time, timeMs) => {
    expect(parseOccurrenceDatetime(`2021-03-04T${time}`)).toMatchObject({ timeMs });
  });

  test('a space for the T, and white space around → read all the same', () => {
    expect(parseOccurrenceDatetime(' 2021-03-04 12:00:00 ')).toMatchObject({
      kind: 'local',
      date: '2021-03-04',
    });
  });

  test('a year before 100 → that year', () => {
    expect(parseOccurrenceDatetime('0021-03-04T12:00:00Z')).toMatchObject({
      epochMs: Date.parse('0021-03-04T12:00:00Z'),
    });
  });

  test.each([
    '',
    'yesterday',
    '2021-02-30',
    '2021-13-01',
    '2021-00-10',
    '2021-3-4',
    '2021-03-04T24:00:01',
    '2021-03-04T12:60',
    '2021-03-04T12:00:61',
    '2021-03-04T12',
    '04/03/2021',
  ])('%j → undefined', (text) => {
    expect(parseOccurrenceDatetime(text)).toBeUndefined();
  });
});
