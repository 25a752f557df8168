import { describe, expect, it } from 'vitest';
import { paintFor } from '../../../src/testing/cli/paint.ts';

describe('paintFor', () => {
  it('a terminal → coloured', () => {
    expect(paintFor(true, { TERM: 'xterm', NO_COLOR: '' }).good('200')).toBe('\u001b[32m200\u001b[39m');
  });

  it.each([
    ['no terminal', false, {}],
    ['NO_COLOR', true, { NO_COLOR: '1' }],
    ['a dumb terminal', true, { TERM: 'dumb' }],
  ])('%s → plain', (_, isTerminal, environment) => {
    expect(paintFor(isTerminal, environment).bad('500')).toBe('500');
  });
});
