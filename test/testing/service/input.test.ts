import { describe, expect, it } from 'vitest';
import { toAlpha2, toDay } from '../../../src/testing/service/input.ts';

describe('toDay', () => {
  it.each([
    ['2026-03-01', '2026-03-01'],
    ['2026-03-01T23:30:00', '2026-03-01'],
    ['2026-03-01T23:30:00Z', '2026-03-01'],
    ['2026-03-01T23:30:00-05:00', '2026-03-02'],
    ['2026-03-01T01:30+02:00', '2026-02-28'],
    ['2026-03-01T01:30:00.250+0200', '2026-02-28'],
  ])('%s → %s', (date, day) => {
    expect(toDay(date)).toBe(day);
  });
});

describe('toAlpha2', () => {
  it.each([
    ['FR', 'FR'],
    ['FRA', 'FR'],
    ['chn', 'CN'],
    ['DEU', 'DE'],
    ['GBR', 'GB'],
    ['AUT', 'AT'],
    ['AUS', 'AU'],
    ['XKX', 'XK'],
    ['XX', undefined],
    ['XXX', undefined],
    ['', undefined],
  ])('%j → %j', (code, alpha2) => {
    expect(toAlpha2(code)).toBe(alpha2);
  });

  it('every alpha-2 code of the table → a region that Intl can name', () => {
    const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
    const codes = letters.flatMap((first) => letters.map((second) => first + second));
    const known = codes.filter((code) => toAlpha2(code) === code);
    const names = new Intl.DisplayNames('en', { type: 'region' });
    expect(known).toHaveLength(250);
    expect(known.filter((code) => names.of(code) === code)).toEqual([]);
  });

  it('every alpha-3 code of the table → one alpha-2 code each', () => {
    const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
    const pairs = letters.flatMap((first) => letters.map((second) => first + second));
    const found = pairs.flatMap((pair) => letters.flatMap((third) => toAlpha2(pair + third) ?? []));
    expect(new Set(found).size).toBe(250);
    expect(found).toHaveLength(250);
  });
});
