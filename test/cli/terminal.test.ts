import { describe, expect, it, vi } from 'vitest';
import { formatTime } from '../../src/cli/terminal.ts';
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

describe('colours', () => {
  const COLOURS = ['NO_COLOR', 'FORCE_COLOR', 'TERM'] as const;

  /** Prints a line to each stream; returns the streams that got colours. */
  function findColoured(variables: Readonly<Record<string, string>>, stdout: boolean, stderr: boolean) {
    for (const name of COLOURS) vi.stubEnv(name, variables[name]);
    const { terminal, output } = makeTerminal({ isLive: { stdout, stderr }, hasColours: true });
    terminal.print(terminal.colours.green('text'));
    terminal.warn('text');
    return Object.entries(output).flatMap(([name, text]) => (text.includes('\u001b[3') ? name : []));
  }

  it.each<[string, boolean, boolean, string[]]>([
    ['two terminals', true, true, ['stdout', 'stderr']],
    ['a terminal, and a file for stderr', true, false, ['stdout']],
    ['a pipe for stdout, and a terminal', false, true, ['stderr']],
    ['two pipes', false, false, []],
  ])('%s → only a terminal gets colours', (_, stdout, stderr, expected) => {
    expect(findColoured({}, stdout, stderr)).toEqual(expected);
    expect(findColoured({ NO_COLOR: '', FORCE_COLOR: '' }, stdout, stderr)).toEqual(expected);
  });

  it.each<[Record<string, string>]>([
    [{ NO_COLOR: '1' }],
    [{ NO_COLOR: '0' }],
    [{ NO_COLOR: '1', FORCE_COLOR: '1' }],
    [{ FORCE_COLOR: '0' }],
    [{ FORCE_COLOR: 'false' }],
    [{ TERM: 'dumb' }],
  ])('%j → no colours', (variables) => {
    expect(findColoured(variables, true, true)).toEqual([]);
  });

  it.each<[Record<string, string>]>([
    [{ FORCE_COLOR: '1' }],
    [{ FORCE_COLOR: 'true' }],
    [{ FORCE_COLOR: '3', TERM: 'dumb' }],
  ])('%j → colours, also in files and pipes', (variables) => {
    expect(findColoured(variables, false, false)).toEqual(['stdout', 'stderr']);
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
