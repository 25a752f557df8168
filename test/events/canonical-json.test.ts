import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../src/events/keys.ts';

test('keys at any depth → sorted', () => {
  expect(canonicalJson({ b: [{ d: 1, c: 2 }], a: null })).toBe('{"a":null,"b":[{"c":2,"d":1}]}');
});

test('undefined in an object → left out; in an array → null', () => {
  expect(canonicalJson({ a: undefined, b: [undefined] })).toBe('{"b":[null]}');
});

test('any JSON value → text that parses back to it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(JSON.parse(canonicalJson(JSON.parse(text)))).toEqual(JSON.parse(text));
    }),
  );
});

test('a value nested 200,000 levels deep → no stack overflow', () => {
  let deep: unknown = 1;
  for (let level = 0; level < 200_000; level += 1) deep = [deep];
  expect(canonicalJson(deep)).toHaveLength(400_001);
});
