import { describe, expect, test } from 'vitest';
import { ConfigurationError, RequestValidationError } from '../../src/index.ts';
import { makeClient } from '../support/make-client.ts';
import { pass, results, startPoll } from './polled-service.ts';

const { client } = makeClient();
const METHODS = {
  poll: (options: object) => client.trackers.poll('tracker-1', options),
  pollMany: (options: object) => client.trackers.pollMany(['tracker-1'], options),
};

describe.each(['poll', 'pollMany'] as const)('options of %s', (method) => {
  const interval = 'to be a number of milliseconds from 1000 to 2147483647';

  test.each([
    ['intervalMs', 999, interval],
    ['intervalMs', 2 ** 31, interval],
    ['intervalMs', Number.NaN, interval],
    ['intervalMs', '1000', interval],
    ['initialDelayMs', -1, 'to be'],
    ['maxDurationMs', 0, 'to be'],
    ['maxDurationMs', Number.NaN, 'to be'],
    ['maxDurationMs', '5000', 'to be'],
    ['maxConsecutiveErrors', 0, 'to be'],
    ['until', 'delivered', 'to be'],
    ['searchBy', 'trackingNumber', 'to be'],
    ['signal', 'stop', 'to be'],
    ['timeoutMs', -5, 'to be'],
    ['headers', ['x'], "to be a plain object, as in { 'x-source': 'shop' }"],
  ])('%s: %s → ConfigurationError that names the option', (name, value, rule) => {
    expect(() => METHODS[method]({ [name]: value })).toThrow(ConfigurationError);
    expect(() => METHODS[method]({ [name]: value })).toThrow(`Expected \`${name}\` ${rule}`);
  });

  test('a misspelt option → ConfigurationError that names the right option', () => {
    expect(() => METHODS[method]({ intervalMS: 5000 })).toThrow(
      /^Unknown option `intervalMS`; known options: /,
    );
  });

  test.each([
    ['intervalMs', 1000],
    ['intervalMs', 2 ** 31 - 1],
    ['maxConsecutiveErrors', Number.POSITIVE_INFINITY],
  ])('%s: %d → accepted', (name, value) => {
    expect(() => METHODS[method]({ [name]: value })).not.toThrow();
  });
});

test.each([
  ['maxPerSecond', 0],
  ['maxPerSecond', Number.POSITIVE_INFINITY],
  ['maxPerSecond', 1e-9],
  ['concurrency', 0],
])('pollMany, %s: %s → ConfigurationError that names the option', (name, value) => {
  expect(() => METHODS.pollMany({ [name]: value })).toThrow(`Expected \`${name}\` to be`);
});

test('maxPerSecond of one poll in 2^31 - 1 ms → accepted', () => {
  expect(() => METHODS.pollMany({ maxPerSecond: 1000 / (2 ** 31 - 1) })).not.toThrow();
});

test.each([['a-tracker-id'], [undefined], [{}]])('ids %s → ConfigurationError', (ids) => {
  // @ts-expect-error a string is no list of ids
  expect(() => client.trackers.pollMany(ids)).toThrow(/^Expected `ids` to be an iterable/);
});

test.each([999, Number.NaN])(
  'an interval function that returns %s → ConfigurationError',
  async (intervalMs) => {
    const { reading } = startPoll(() => results([]), { initialDelayMs: 0, intervalMs: () => intervalMs });
    await pass(0);
    const message = expect.stringContaining('`intervalMs` to return a number');
    expect(reading.end?.error).toMatchObject({ name: 'ConfigurationError', message });
  },
);

test.each(['', '..', '%2e%2e'])('id %j → RequestValidationError at once', (id) => {
  expect(() => client.trackers.poll(id)).toThrow(RequestValidationError);
  expect(() => client.trackers.poll(id)).toThrow(/^Expected `id` to be/);
});
