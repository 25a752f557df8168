import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { MAX_TIMER_MS } from '../../src/common/clock.ts';
import {
  checkHeaders,
  checkOneOf,
  checkOptions,
  countOption,
  delayOption,
  timeoutOption,
} from '../../src/common/option-checks.ts';
import { ConfigurationError } from '../../src/errors.ts';

const BEYOND_TIMERS = 2 ** 31;
const BAD_NUMBERS = [Number.NaN, -1, Number.POSITIVE_INFINITY, BEYOND_TIMERS, '5', null, undefined, 5n];

describe('timeoutOption', () => {
  test.each([0.5, 1, 30_000, MAX_TIMER_MS])('%d → accepted', (value) => {
    expect(checkOptions(timeoutOption, value, 'timeoutMs')).toBe(value);
  });

  test.each([0, -0, ...BAD_NUMBERS])('%s → ConfigurationError', (value) => {
    expect(() => checkOptions(timeoutOption, value, 'timeoutMs')).toThrow(ConfigurationError);
  });

  test('the message → option, rule and value', () => {
    expect(() => checkOptions(timeoutOption, 0, 'timeoutMs')).toThrow(
      'Expected `timeoutMs` to be a number of milliseconds above 0 and at most 2147483647, got 0',
    );
  });
});

describe('delayOption', () => {
  test.each([0, 1, MAX_TIMER_MS])('%d → accepted', (value) => {
    expect(checkOptions(delayOption, value, 'd')).toBe(value);
  });

  test.each(BAD_NUMBERS)('%s → ConfigurationError', (value) => {
    expect(() => checkOptions(delayOption, value, 'd')).toThrow(ConfigurationError);
  });
});

describe('countOption', () => {
  test.each([0, 1, 1_000_000])('%d → accepted', (value) => {
    expect(checkOptions(countOption(0), value, 'retries')).toBe(value);
  });

  test.each([1.5, ...BAD_NUMBERS.filter((value) => value !== BEYOND_TIMERS)])(
    '%s → ConfigurationError',
    (value) => {
      expect(() => checkOptions(countOption(0), value, 'retries')).toThrow(ConfigurationError);
    },
  );

  test('below the least → ConfigurationError with the rule', () => {
    expect(() => checkOptions(countOption(1), 0, 'limit')).toThrow(
      'Expected `limit` to be a whole number of at least 1, got 0',
    );
  });

  test('Infinity where it is allowed → accepted', () => {
    expect(checkOptions(countOption(0, true), Number.POSITIVE_INFINITY, 'maxQueue')).toBe(
      Number.POSITIVE_INFINITY,
    );
  });
});

describe('checkOneOf', () => {
  test('one of the words → that word', () => {
    expect(checkOneOf('mode', 'b', ['a', 'b'])).toBe('b');
  });

  test.each(['c', 'A', undefined, ['a']])('%j → ConfigurationError with the words', (value) => {
    expect(() => checkOneOf('mode', value, ['a', 'b'])).toThrow(/^Expected `mode` to be "a" or "b", got /);
  });
});

describe('names of options', () => {
  const named = z.strictObject({ timeoutMs: timeoutOption });
  const retry = z.strictObject({ retries: countOption(0).optional(), minDelayMs: delayOption.optional() });

  test('known names → accepted', () => {
    expect(() => checkOptions(named, { timeoutMs: 1 })).not.toThrow();
  });

  test.each(['times', 'minDelayMS'])('the unknown name %s → refused with the list of known ones', (name) => {
    expect(() => checkOptions(retry, { [name]: 1 }, 'retry')).toThrow(
      new ConfigurationError(
        `Expected \`retry\` to hold known options only, got \`${name}\`; known are retries, minDelayMs`,
      ),
    );
  });

  test.each([null, 5, 'x', true])('%j → ConfigurationError', (value) => {
    expect(() => checkOptions(named, value)).toThrow(/^Expected `options` to be an object, got /);
  });
});

describe('checkHeaders', () => {
  test('names and values → the names in lower case, the values trimmed', () => {
    expect(checkHeaders('headers', { 'X-Tenant': ' a ', accept: 'b' })).toEqual({
      accept: 'b',
      'x-tenant': 'a',
    });
  });

  test.each([null, 5, 'x', [['a', 'b']], new Headers(), new Map([['a', 'b']])])(
    '%s → ConfigurationError',
    (value) => {
      expect(() => checkHeaders('headers', value)).toThrow(
        /^Expected `headers` to be an object of header names and values, got /,
      );
    },
  );

  test.each(['authorization', 'Authorization', 'AUTHORIZATION'])('%s → ConfigurationError', (name) => {
    expect(() => checkHeaders('headers', { [name]: 'Bearer hunter2' })).toThrow(
      new ConfigurationError('Expected `headers` to leave `authorization` to `apiKey`'),
    );
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
    expect(() => checkHeaders('headers', { [name]: value })).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringMatching(/^Expected `headers\..*` to be a valid header, got (?!.*hunter2)/),
      }),
    );
  });
});

describe('headers that belong to the transport', () => {
  test.each(['content-length', 'Connection', 'transfer-encoding', 'host', 'expect', 'upgrade', 'keep-alive'])(
    '%s → ConfigurationError that names it',
    (header) => {
      expect(() => checkHeaders('headers', { [header]: '3' })).toThrow(
        `Expected \`headers\` to leave \`${header.toLowerCase()}\` to the transport`,
      );
    },
  );
});

describe('checkOptions', () => {
  const limits = z.strictObject({ 'couriers.list': countOption(1).optional() });
  const schema = z.strictObject({ retries: countOption(0).optional(), limits: limits.optional() });

  test('options that fit → a copy of them', () => {
    const options = { retries: 2, limits: { 'couriers.list': 5 } };
    expect(checkOptions(schema, options)).toEqual(options);
    expect(checkOptions(schema, options)).not.toBe(options);
  });

  test.each([
    [{ retries: -1 }, 'Expected `retries` to be a whole number of at least 0, got -1'],
    [{ limits: 5 }, 'Expected `limits` to be an object, got 5'],
    [
      { limits: { 'couriers.list': 0 } },
      'Expected `limits["couriers.list"]` to be a whole number of at least 1, got 0',
    ],
    [
      { limits: { 'courier.list': 1 } },
      'Expected `limits` to hold known options only, got `courier.list`; known are couriers.list',
    ],
    [
      { retries: -1, retires: 1 },
      'Expected `options` to hold known options only, got `retires`; known are retries, limits',
    ],
  ])('%j → ConfigurationError that names the option', (options, message) => {
    expect(() => checkOptions(schema, options)).toThrow(new ConfigurationError(message));
  });

  test('a part of the options → named with where it stands', () => {
    expect(() => checkOptions(schema, { retries: '2' }, 'retry')).toThrow(
      new ConfigurationError(
        'Expected `retry.retries` to be a whole number of at least 0, got a string of 1 character',
      ),
    );
  });
});
