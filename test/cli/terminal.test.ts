import { describe, expect, it, vi } from 'vitest';
import { formatTime, plain } from '../../src/cli/terminal.ts';
import { makeTerminal } from './make-terminal.ts';

describe('printJson', () => {
  it('control characters and line separators → escaped, and equal to the input when parsed', () => {
    const { terminal, output } = makeTerminal();
    const value = { status: 'a\u001b[2J\u007f\u0085\u009b2J\u2028\u2029\u202eb' };
    terminal.printJson(value);
    expect(output.stdout).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(output.stdout)).toEqual(value);
  });
});

describe('formatTime', () => {
  it.each([
    ['2026-11-19T16:33:59+08:00', '19 Nov 16:33'],
    ['2026-11-28T01:05:00Z', '28 Nov 01:05 UTC'],
    ['2026-11-28T01:05:00+00:00', '28 Nov 01:05 UTC'],
    ['2026-11-28T01:05:00', '28 Nov 01:05'],
    ['2026-03-04', ' 4 Mar'],
    ['2025-03-04T01:05:00Z', ' 4 Mar 2025 UTC'],
    ['2025-03-04T17:12:57', ' 4 Mar 2025'],
    ['soon\u001b[2J', 'soon'],
    [null, ''],
  ])('%j in 2026 → %j', (text, expected) => {
    vi.useFakeTimers({ now: new Date(2026, 10, 22), toFake: ['Date'] });
    expect(formatTime(text)).toBe(expected);
  });
});

describe('plain', () => {
  it.each([
    ['at\u001b[2J home\r\nnow', 'at home now'],
    ['\u009b31mred\u007f', 'red'],
    ['pdf.\u202egnp', 'pdf. gnp'],
    ['a\u2028b', 'a b'],
  ])('%j → %j', (text, expected) => {
    expect(plain(text)).toBe(expected);
  });
});
