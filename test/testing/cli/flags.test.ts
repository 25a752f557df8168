import { describe, expect, it } from 'vitest';
import { parseFlags, UsageError } from '../../../src/testing/cli/flags.ts';

function usageErrorOf(...args: string[]): string {
  try {
    parseFlags(args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error(`Expected a UsageError for ${args.join(' ')}`);
}

describe('parseFlags', () => {
  it('nothing → port 4010 of loopback, the play delivered in real time, no webhooks', () => {
    expect(parseFlags([])).toEqual({
      host: '127.0.0.1',
      port: 4010,
      apiKeys: [],
      plays: ['delivered'],
      speed: 1,
      seed: '1',
      hasPerCallPlan: false,
      webhookUrl: undefined,
      webhookSecret: undefined,
      duplicates: 0,
      shuffle: false,
    });
  });

  it('everything → everything', () => {
    const line =
      '-p 0 --host ::1 --play customs --play never-found --speed 60.5 --webhook-url http://127.0.0.1:3000/hooks ' +
      '--webhook-secret hush --duplicates 2 --shuffle --api-key one --api-key two --per-call --seed mine';
    expect(parseFlags(line.split(' '))).toEqual({
      host: '::1',
      port: 0,
      apiKeys: ['one', 'two'],
      plays: ['customs', 'never-found'],
      speed: 60.5,
      seed: 'mine',
      hasPerCallPlan: true,
      webhookUrl: 'http://127.0.0.1:3000/hooks',
      webhookSecret: 'hush',
      duplicates: 2,
      shuffle: true,
    });
  });

  it.each([['--help'], ['-h'], ['--port', 'nonsense', '--help']])('%s %s %s → help', (...args) => {
    expect(parseFlags(args.filter((arg) => arg !== undefined))).toBe('help');
  });

  it.each(['--version', '-v'])('%s → version', (arg) => {
    expect(parseFlags([arg])).toBe('version');
  });

  it.each([
    [['--prot', '1'], "Unknown option '--prot'"],
    [['extra'], "Unexpected argument 'extra'. This command does not take positional arguments"],
    [['--port'], "Option '-p, --port <value>' argument missing"],
    [['--webhook-secret', '-abc'], "Option '--webhook-secret' argument is ambiguous"],
    [['--shuffle=yes'], "Option '--shuffle' does not take an argument"],
    [['--port', '65536'], 'Expected `--port` to be a whole number from 0 to 65535, got "65536"'],
    [['--port', '4e3'], 'Expected `--port` to be a whole number from 0 to 65535, got "4e3"'],
    [['--port='], 'Expected `--port` to be a whole number from 0 to 65535, got ""'],
    [['--host='], 'Expected `--host` to be an address or a host name, got ""'],
    [['--speed', '0.5'], 'Expected `--speed` to be a number of at least 1, got "0.5"'],
    [['--speed', 'fast'], 'Expected `--speed` to be a number of at least 1, got "fast"'],
    [['--duplicates', '1000'], 'Expected `--duplicates` to be a whole number from 0 to 100, got "1000"'],
    [['--play', 'lost'], 'Expected `--play` to be delivered, exception, customs, never-found, got "lost"'],
  ])('%j → %s', (args, message) => {
    expect(usageErrorOf(...args)).toBe(message);
  });

  it.each(['ftp://host/', 'hooks', 'http://user:hunter2@host/'])(
    '--webhook-url %s → refused, and not shown',
    (url) => {
      expect(usageErrorOf('--webhook-url', url)).toBe(
        'Expected `--webhook-url` to be an http or https URL without a user name',
      );
    },
  );

  it.each(['--webhook-secret', '--api-key'])('%s with a space → refused, and not shown', (flag) => {
    expect(usageErrorOf(flag, 'top secret')).toBe(
      `Expected \`${flag}\` to be visible ASCII characters without spaces`,
    );
  });

  it('21 keys → refused', () => {
    const args = Array.from({ length: 21 }, (_, index) => ['--api-key', `key-${index}`]).flat();
    expect(usageErrorOf(...args)).toBe('Expected `--api-key` at most 20 times, got 21');
  });
});
