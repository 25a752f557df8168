import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { MAX_TIMER_MS } from '../../src/common/clock.ts';
import {
  checkOptions,
  countOption,
  delayOption,
  headersOption,
  timeoutOption,
} from '../../src/common/option-checks.ts';
import { ConfigurationError } from '../../src/errors.ts';

const RULES = {
  timeout: [timeoutOption, 'a number of milliseconds above 0 and at most 2147483647'],
  delay: [delayOption, 'a number of milliseconds from 0 to 2147483647'],
  count: [countOption(1), 'a whole number of at least 1'],
  endless: [countOption(0, true), 'a whole number of at least 0'],
} as const;

describe('options that are numbers', () => {
  test.each([
    ['timeout', [0.5, 1, 30_000, MAX_TIMER_MS]],
    ['delay', [0, 1, MAX_TIMER_MS]],
    ['count', [1, 1_000_000]],
    ['endless', [0, Number.POSITIVE_INFINITY]],
  ] as const)('%s, values %j → accepted', (name, values) => {
    for (const value of values) expect(checkOptions(RULES[name][0], value, 'a')).toBe(value);
  });

  const bad = [Number.NaN, -1, '5', null, undefined, 5n];
  test.each([
    ['timeout', [0, -0, Number.POSITIVE_INFINITY, MAX_TIMER_MS + 1, ...bad]],
    ['delay', [Number.POSITIVE_INFINITY, MAX_TIMER_MS + 1, ...bad]],
    ['count', [0, 1.5, Number.POSITIVE_INFINITY, 2 ** 53, ...bad]],
    ['endless', [1.5, ...bad]],
  ] as const)('%s, values %s → ConfigurationError with the rule', (name, values) => {
    const [schema, rule] = RULES[name];
    for (const value of values) {
      const check = () => checkOptions(schema, value, 'a');
      expect(check).toThrow(ConfigurationError);
      expect(check).toThrow(`Expected \`a\` to be ${rule}, got `);
    }
  });
});

describe('headers', () => {
  test('names and values → the names in lower case, the values trimmed', () => {
    const headers = checkOptions(headersOption, { 'X-Tenant': ' a ', accept: 'b' });
    expect(headers).toEqual({ accept: 'b', 'x-tenant': 'a' });
  });

  test.each([null, 5, 'x', [['a', 'b']], new Headers(), new Map([['a', 'b']])])(
    '%s → ConfigurationError',
    (value) => {
      const message = /^Expected `headers` to be an object of header names and values, got /;
      expect(() => checkOptions(headersOption, value)).toThrow(message);
    },
  );

  test.each([
    ['Authorization', '`authorization` to `apiKey`'],
    ['Connection', '`connection` to the transport'],
    ['content-length', '`content-length` to the transport'],
    ['transfer-encoding', '`transfer-encoding` to the transport'],
    ['host', '`host` to the transport'],
    ['expect', '`expect` to the transport'],
    ['upgrade', '`upgrade` to the transport'],
    ['keep-alive', '`keep-alive` to the transport'],
  ])('%s → ConfigurationError that names where the header belongs', (name, rest) => {
    const error = new ConfigurationError(`Expected \`headers\` to leave ${rest}`);
    expect(() => checkOptions(headersOption, { [name]: 'Bearer hunter2' })).toThrow(error);
  });

  test.each([
    ['x-a', 'hunter2\nx-b: 1'],
    ['x-a', 'hunter2\u0000'],
    ['x-a', 'hunter2 €'],
    ['x a', 'hunter2'],
    ['', 'hunter2'],
    ['x-a', 5],
    ['x-a', undefined],
  ])('%j: %j → ConfigurationError that does not print the value', (name, value) => {
    const message = /^Expected `headers\..*` to be a valid header, got (?!.*hunter2)/;
    expect(() => checkOptions(headersOption, { [name]: value })).toThrow(message);
  });
});

describe('checkOptions', () => {
  const limits = z.strictObject({ 'couriers.list': countOption(1).optional() });
  const schema = z.strictObject({ retries: countOption(0).optional(), limits: limits.optional() });

  test('valid options → a copy of the options', () => {
    const options = { retries: 2, limits: { 'couriers.list': 5 } };
    expect(checkOptions(schema, options)).toEqual(options);
    expect(checkOptions(schema, options)).not.toBe(options);
  });

  test.each([
    [null, '`options` to be an object, got null'],
    ['x', '`options` to be an object, got a string of 1 character'],
    [{ retries: -1 }, '`retries` to be a whole number of at least 0, got -1'],
    [{ limits: 5 }, '`limits` to be an object, got 5'],
    [
      { limits: { 'couriers.list': 0 } },
      '`limits["couriers.list"]` to be a whole number of at least 1, got 0',
    ],
    [
      { limits: { 'courier.list': 1 } },
      '`limits` to hold known options only, got `courier.list`; known are couriers.list',
    ],
    [
      { retries: -1, retires: 1 },
      '`options` to hold known options only, got `retires`; known are retries, limits',
    ],
  ])('%j → ConfigurationError that names the option', (options, message) => {
    expect(() => checkOptions(schema, options)).toThrow(new ConfigurationError(`Expected ${message}`));
  });

  test('an invalid nested option → ConfigurationError that names its path', () => {
    const message =
      'Expected `retry.retries` to be a whole number of at least 0, got a string of 1 character';
    expect(() => checkOptions(schema, { retries: '2' }, 'retry')).toThrow(new ConfigurationError(message));
  });
});
