import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkOptions } from '../../src/common/check-options.ts';
import { MAX_TIMER_MS } from '../../src/common/clock.ts';
import { kindOf } from '../../src/common/messages.ts';
import { countOption, delayOption, timeoutOption } from '../../src/common/option-schemas.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { readMessages } from '../support/parse.ts';

test.each([
  [null, 'null'],
  [undefined, 'undefined'],
  ['', 'an empty string'],
  ['a', 'a string of 1 character'],
  ['secret', 'a string of 6 characters'],
  [5, 'a number'],
  [Number.NaN, 'NaN'],
  [Number.POSITIVE_INFINITY, 'Infinity'],
  [[], 'an empty array'],
  [[1, 2], 'an array of 2 items'],
  [{}, 'an object'],
  [new Date(), 'a Date'],
  [true, 'a boolean'],
  [5n, 'a bigint'],
  [() => 1, 'a function'],
  [Symbol('secret'), 'a symbol'],
])('kindOf, %s → %s', (value, kind) => {
  expect(kindOf(value)).toBe(kind);
});

describe('messages for rules of zod itself', () => {
  const schema = z.object({
    count: z.number().min(1).max(5),
    names: z.array(z.string()).max(1),
    mode: z.enum(['a', 'b']),
    link: z.url(),
  });
  const valid = { count: 1, names: [], mode: 'a', link: 'https://x.test' };

  test.each([
    [{ count: 'x' }, 'Expected `count` to be a number, got a string of 1 character'],
    [{ names: {} }, 'Expected `names` to be an array, got an object'],
    [{ count: 0 }, 'Expected `count` to be at least 1, got 0'],
    [{ count: 6 }, 'Expected `count` to be at most 5, got 6'],
    [{ names: ['a', 'b'] }, 'Expected `names` to be at most 1, got an array of 2 items'],
    [{ mode: 'c' }, `Expected \`mode\` to be "a" or "b", got 'c'`],
    [{ link: 'secret' }, 'Expected `link` to follow the rule "invalid_format", got a string of 6 characters'],
  ])('%j → %s', (fields, message) => {
    expect(readMessages(schema, { ...valid, ...fields })).toEqual([message]);
  });

  test('the whole value is wrong → the message uses the given name', () => {
    expect(readMessages(schema, 5, 'patch')).toEqual(['Expected `patch` to be an object, got a number']);
  });
});

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

describe('checkOptions', () => {
  const limits = z.strictObject({ 'couriers.list': countOption(1).optional() });
  const schema = z.strictObject({ retries: countOption(0).optional(), limits: limits.optional() });

  test('valid options → a copy of the options', () => {
    const options = { retries: 2, limits: { 'couriers.list': 5 } };
    expect(checkOptions(schema, options)).toEqual(options);
    expect(checkOptions(schema, options)).not.toBe(options);
  });

  test.each([
    [null, 'Expected `options` to be an object, got null'],
    ['x', 'Expected `options` to be an object, got a string of 1 character'],
    [{ retries: -1 }, 'Expected `retries` to be a whole number of at least 0, got -1'],
    [{ limits: 5 }, 'Expected `limits` to be an object, got a number'],
    [
      { limits: { 'couriers.list': 0 } },
      'Expected `limits["couriers.list"]` to be a whole number of at least 1, got 0',
    ],
    [
      { limits: { 'courier.list': 1 } },
      'Unknown option `limits["courier.list"]`; known options: couriers.list',
    ],
    [{ retries: -1, retires: 1 }, 'Unknown option `retires`; known options: retries, limits'],
  ])('%j → ConfigurationError that names the option', (options, message) => {
    expect(() => checkOptions(schema, options)).toThrow(new ConfigurationError(message));
  });

  test('an invalid nested option → ConfigurationError that names its path', () => {
    const message =
      'Expected `retry.retries` to be a whole number of at least 0, got a string of 1 character';
    expect(() => checkOptions(schema, { retries: '2' }, 'retry')).toThrow(new ConfigurationError(message));
  });
});
