import { describe, expect, it } from 'vitest';
import { type Flags, parseFlags } from '../../../src/testing/cli/flags.ts';
import { greeting } from '../../../src/testing/cli/greeting.ts';
import { paintFor } from '../../../src/testing/cli/paint.ts';

const URL = 'http://127.0.0.1:4010/public/v1';

function greet(...args: string[]): string {
  const flags = parseFlags(args);
  if (typeof flags === 'string') throw new Error(`Expected flags, got ${flags}`);
  return greeting(URL, flags satisfies Flags, paintFor(false, {}));
}

describe('greeting', () => {
  it('no flags → where to send requests, and what will happen', () => {
    const text = greet();
    expect(text).toContain(`Base URL  ${URL}`);
    expect(text).toContain('any key is accepted');
    expect(text).toContain('none; --webhook-url turns them on');
    expect(text).toContain('delivered, in real time');
  });

  it('a secret and keys → counted, never shown', () => {
    const text = greet('--webhook-url', 'http://h/', '--webhook-secret', 'hush-1', '--api-key', 'key-1');
    expect(text).toContain('http://h/, with the secret');
    expect(text).toContain('one key is accepted');
    expect(text).not.toMatch(/hush-1|key-1/);
  });

  it('two plays at a speed → in turn', () => {
    expect(greet('--play', 'customs', '--play', 'delivered', '--speed', '60')).toContain(
      'customs, then delivered, 60 times faster than real time',
    );
  });

  it('speed Infinity → all at once', () => {
    expect(greet('--speed', 'Infinity')).toContain('delivered, all at once');
  });
});
