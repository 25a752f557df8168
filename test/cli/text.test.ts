import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { plain, timeText } from '../../src/cli/text.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: new Date(2026, 10, 22), toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('timeText', () => {
  it.each([
    ['2026-11-19T16:33:59+08:00', '19 Nov 16:33'],
    ['2026-11-19T06:03:00Z', '19 Nov 06:03'],
    ['2026-03-04T17:12:57', ' 4 Mar 17:12'],
    ['2026-03-04', ' 4 Mar'],
    ['2025-03-04T17:12:57', ' 4 Mar 2025'],
    ['soon\u001b[2J', 'soon'],
    [null, ''],
  ])('%j → %j', (text, expected) => {
    expect(timeText(text)).toBe(expected);
  });
});

describe('plain', () => {
  it.each([
    ['at\u001b[2J home\r\nnow', 'at home now'],
    ['\u009b31mred\u007f', 'red'],
    ['pdf.\u202egnp', 'pdf. gnp'],
    ['a\u2028b', 'a b'],
    ['Zürich 北京', 'Zürich 北京'],
  ])('%j → %j', (text, expected) => {
    expect(plain(text)).toBe(expected);
  });
});
