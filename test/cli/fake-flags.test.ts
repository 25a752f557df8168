import { describe, expect, it, vi } from 'vitest';
import type { FakeFlags } from '../../src/cli/fake-flags.ts';
import { CommandError } from '../../src/cli/terminal.ts';
import { parsed } from './parsed.ts';

function optionsOf(...args: string[]): FakeFlags {
  return parsed(['fake', ...args]);
}

function usageErrorOf(...args: string[]): string {
  try {
    optionsOf(...args);
  } catch (error) {
    if (error instanceof CommandError) return error.message;
    throw error;
  }
  throw new Error(`Expected a CommandError for ${args.join(' ')}`);
}

describe('the flags of the fake', () => {
  it('nothing → port 4010 of loopback, in real time', () => {
    const defaults = { host: '127.0.0.1', port: 4010, speed: 1, seed: '1', latency: 0, duplicates: 0 };
    expect(optionsOf()).toEqual(defaults);
  });

  it('everything → everything', () => {
    const line =
      '-p 0 --host ::1 --play customs --play never-found --speed 60.5 --webhook-url http://127.0.0.1:3000/hooks ' +
      '--webhook-secret hush --duplicates 2 --shuffle --api-key one --api-key two --per-call ' +
      '--quota 60 --limit trackers.create:2 --latency 250 --fail all:500:3 --seed mine';
    expect(optionsOf(...line.split(' '))).toEqual({
      host: '::1',
      port: 0,
      apiKey: ['one', 'two'],
      play: ['customs', 'never-found'],
      speed: 60.5,
      seed: 'mine',
      perCall: true,
      quota: 60,
      limit: [{ 'trackers.create': 2 }],
      latency: 250,
      fail: [{ endpoint: '*', failure: { status: 500, times: 3 } }],
      webhookUrl: 'http://127.0.0.1:3000/hooks',
      webhookSecret: 'hush',
      duplicates: 2,
      shuffle: true,
    });
  });

  it.each([
    [['--port', '65536'], 'Expected `--port` to be a whole number from 0 to 65535, got "65536"'],
    [['--port', '4e3'], 'Expected `--port` to be a whole number from 0 to 65535, got "4e3"'],
    [['--port='], 'Expected `--port` to be a whole number from 0 to 65535, got ""'],
    [['--host='], 'Expected `--host` to be an address or a host name, got ""'],
    [['--speed', '0.5'], 'Expected `--speed` to be a number of at least 1, got "0.5"'],
    [['--speed', 'fast'], 'Expected `--speed` to be a number of at least 1, got "fast"'],
    [['--duplicates', '1000'], 'Expected `--duplicates` to be a whole number from 0 to 100, got "1000"'],
    [['--quota', '-1'], 'Expected `--quota` to be a whole number from 0 to 1000000, got "-1"'],
    [['--latency', '1s'], 'Expected `--latency` to be a whole number from 0 to 600000, got "1s"'],
    [['--limit', 'fast'], 'Expected `--limit` to be a whole number from 0 to 1000000, got "fast"'],
    [['--limit', 'a:b:1'], 'Expected `--limit` to be NUMBER, ENDPOINT:NUMBER or off, got "a:b:1"'],
    [
      ['--play', 'lost'],
      'Expected `--play` to be delivered, exception, customs, never-found, none, got "lost"',
    ],
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

  it.each([
    ['500', { endpoint: '*', failure: { status: 500, times: 1 } }],
    ['reset', { endpoint: '*', failure: { kind: 'reset', times: 1 } }],
    ['trackers.create:429', { endpoint: 'trackers.create', failure: { status: 429, times: 1 } }],
    ['trackers.list:badJson:2', { endpoint: 'trackers.list', failure: { kind: 'badJson', times: 2 } }],
    ['all:503:all', { endpoint: '*', failure: { status: 503, times: Number.POSITIVE_INFINITY } }],
  ])('--fail %s → planned', (text, planned) => {
    expect(optionsOf('--fail', text).fail).toEqual([planned]);
  });

  it.each([
    [
      '200',
      /^Expected `--fail` to be \[ENDPOINT:\]WHAT\[:TIMES\], where WHAT is a status from 400 to 599 or reset/,
    ],
    ['trackers.create', /where WHAT is .* got "trackers.create"$/],
    ['trackers.make:500', /^Expected `--fail` to be about an endpoint, one of all, .* got "trackers.make"$/],
    ['all:500:often', /^Expected `--fail` to be a whole number .* got "often"$/],
  ])('--fail %s → refused, with what is missing', (text, message) => {
    expect(usageErrorOf('--fail', text)).toMatch(message);
  });

  it('--limit 5 → every endpoint; --limit off → none', () => {
    expect(new Set(Object.values(optionsOf('--limit', '5').limit?.[0] ?? {}))).toEqual(new Set([5]));
    expect(optionsOf('--limit', 'off').limit).toEqual(['off']);
  });

  it('a secret that starts with a dash → taken as it is', () => {
    expect(optionsOf('--webhook-secret', '-abc').webhookSecret).toBe('-abc');
  });

  it('TRACKING_WEBHOOK_SECRET → the secret, unless the flag says another', () => {
    vi.stubEnv('TRACKING_WEBHOOK_SECRET', 'of-the-environment');
    expect(optionsOf().webhookSecret).toBe('of-the-environment');
    expect(optionsOf('--webhook-secret', 'given').webhookSecret).toBe('given');
    vi.unstubAllEnvs();
  });
});
