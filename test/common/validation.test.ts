import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { formatPath, kindOf } from '../../src/common/validation.ts';
import { readMessages } from '../support/parse.ts';

describe('kindOf', () => {
  test.each([
    [null, 'null'],
    [undefined, 'undefined'],
    ['', 'an empty string'],
    ['a', 'a string of 1 character'],
    ['secret', 'a string of 6 characters'],
    [5, 'a number'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [[], 'an array of 0'],
    [[1, 2], 'an array of 2'],
    [{}, 'an object'],
    [new Date(), 'a Date'],
    [true, 'a boolean'],
    [5n, 'a bigint'],
    [() => 1, 'a function'],
    [Symbol('secret'), 'a symbol'],
  ])('%s → %s', (value, kind) => {
    expect(kindOf(value)).toBe(kind);
  });
});

describe('formatPath', () => {
  test.each([
    [[], 'value'],
    [['trackingNumber'], 'trackingNumber'],
    [['recipient', 'email'], 'recipient.email'],
    [[3, 'recipient', 'email'], 'items[3].recipient.email'],
  ])('%j → %s', (path, text) => {
    expect(formatPath(path)).toBe(text);
  });

  test.each([
    [[], 'input'],
    [['name'], 'name'],
    [[1, 'name'], 'input[1].name'],
  ])('%j below a root with a name → %s', (path, text) => {
    expect(formatPath(path, 'input')).toBe(text);
  });
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
    [{ names: ['a', 'b'] }, 'Expected `names` to be at most 1, got an array of 2'],
    [{ mode: 'c' }, 'Expected `mode` to be one of a, b, got a string of 1 character'],
    [{ link: 'secret' }, 'Expected `link` to have a valid value, got a string of 6 characters'],
  ])('%j → %s', (fields, message) => {
    expect(readMessages(schema, { ...valid, ...fields })).toEqual([message]);
  });

  test('the whole value is wrong → the message uses the given name', () => {
    expect(readMessages(schema, 5, 'patch')).toEqual(['Expected `patch` to be an object, got a number']);
  });
});
