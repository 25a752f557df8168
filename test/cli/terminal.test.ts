import { describe, expect, it } from 'vitest';
import { formatReason, printJson } from '../../src/cli/terminal.ts';
import { makeTerminal } from './make-terminal.ts';

describe('printJson', () => {
  it('characters that a terminal obeys or that end a line elsewhere → escaped, and the same when read', () => {
    const { terminal, output } = makeTerminal();
    const value = { status: 'a\u001b[2J\u007f\u0085\u009b2J\u2028\u2029\u202eb' };
    printJson(terminal, value);
    expect(output.stdout).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(output.stdout)).toEqual(value);
  });
});

describe('formatReason', () => {
  it.each([
    ["EACCES: permission denied, open '/x'", 'permission denied (EACCES)'],
    ['ENOSPC: no space left on device, write', 'no space left on device (ENOSPC)'],
    ['listen EADDRINUSE: address already in use 127.0.0.1:80', 'address already in use (EADDRINUSE)'],
    ['Something else', 'Something else'],
  ])('%s → %s', (message, reason) => {
    expect(formatReason(new Error(message))).toBe(reason);
  });
});
