import { describe, expect, test } from 'vitest';
import { ConfigurationError, RequestValidationError } from '../../src/index.ts';
import { makeClient } from '../support/make-client.ts';
import { pass, polledService, read, results } from './polled-service.ts';

const { client } = makeClient();
const METHODS = {
  poll: (options: object) => client.trackers.poll('tracker-1', options),
  pollMany: (options: object) => client.trackers.pollMany(['tracker-1'], options),
};

describe.each(['poll', 'pollMany'] as const)('options of %s', (method) => {
  test.each([999, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, '1000', null])(
    'intervalMs %s → ConfigurationError before anything is sent',
    (intervalMs) => {
      expect(() => METHODS[method]({ intervalMs })).toThrow(ConfigurationError);
      expect(() => METHODS[method]({ intervalMs })).toThrow(
        /^Expected `intervalMs` to be a number of milliseconds from 1000 to 2147483647, or a function, got /,
      );
    },
  );

  test.each([
    ['initialDelayMs', -1],
    ['initialDelayMs', Number.NaN],
    ['initialDelayMs', Number.POSITIVE_INFINITY],
    ['maxDurationMs', 0],
    ['maxDurationMs', Number.NaN],
    ['maxDurationMs', '5000'],
    ['maxConsecutiveErrors', 0],
    ['maxConsecutiveErrors', 1.5],
    ['until', 'delivered'],
    ['searchBy', 'trackingNumber'],
    ['signal', 'stop'],
    ['timeoutMs', -5],
    ['totalTimeoutMs', Number.NaN],
    ['headers', { authorization: 'Bearer other' }],
  ])('%s %s → ConfigurationError that names it', (name, value) => {
    expect(() => METHODS[method]({ [name]: value })).toThrow(ConfigurationError);
    expect(() => METHODS[method]({ [name]: value })).toThrow(new RegExp(`Expected \`${name}`));
  });

  test('a misspelt option → ConfigurationError that names the right one', () => {
    expect(() => METHODS[method]({ intervalMS: 5000 })).toThrow(/got `intervalMS`; known are /);
  });

  test.each([
    ['intervalMs', 1000],
    ['intervalMs', 2 ** 31 - 1],
    ['maxConsecutiveErrors', Number.POSITIVE_INFINITY],
  ])('%s %d → is taken', (name, value) => {
    expect(() => METHODS[method]({ [name]: value })).not.toThrow();
  });
});

describe('options of pollMany alone', () => {
  test.each([
    ['maxPerSecond', 0],
    ['maxPerSecond', -1],
    ['maxPerSecond', Number.NaN],
    ['maxPerSecond', Number.POSITIVE_INFINITY],
    ['maxPerSecond', 1e-9],
    ['maxPerSecond', '2'],
    ['concurrency', 0],
    ['concurrency', 2.5],
  ])('%s %s → ConfigurationError that names it', (name, value) => {
    expect(() => METHODS.pollMany({ [name]: value })).toThrow(new RegExp(`Expected \`${name}\` to be`));
  });

  test('maxPerSecond of one poll in 2^31 - 1 ms → is taken', () => {
    expect(() => METHODS.pollMany({ maxPerSecond: 1000 / (2 ** 31 - 1) })).not.toThrow();
  });

  test.each([['a-tracker-id'], [undefined], [7], [{}]])('ids %s → ConfigurationError', (ids) => {
    // @ts-expect-error a string is no list of ids
    expect(() => client.trackers.pollMany(ids)).toThrow(/^Expected `ids` to be an iterable/);
  });
});

describe('an interval function', () => {
  test.each([999, Number.NaN, Number.POSITIVE_INFINITY, undefined])(
    'returns %s → ConfigurationError when it is asked',
    async (bad) => {
      const service = polledService(() => results([]));
      const intervalMs = () => Number(bad);
      const reading = read(service.client.trackers.poll('tracker-1', { initialDelayMs: 0, intervalMs }));
      await pass(0);
      expect(reading.end?.error).toBeInstanceOf(ConfigurationError);
      expect(reading.end?.error).toMatchObject({ message: expect.stringContaining('`intervalMs()`') });
    },
  );
});

describe('the id of poll', () => {
  test.each(['', '  ', '.', '..', '%2e%2e'])('%j → RequestValidationError at once', (id) => {
    expect(() => client.trackers.poll(id)).toThrow(RequestValidationError);
    expect(() => client.trackers.poll(id)).toThrow(/^Expected `id` to be/);
  });
});
