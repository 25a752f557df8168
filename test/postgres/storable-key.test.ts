import fc from 'fast-check';
import { expect, test } from 'vitest';
import { storableKey } from '../../src/postgres/storable-key.ts';

test('a short key of plain ASCII → itself, so that a table can be read', () => {
  expect(storableKey('tracking/events:t-1:4f2c~ e')).toBe('tracking/events:t-1:4f2c~ e');
});

test.each([
  ['a NUL', 'tracking/events:t1:a\u0000b'],
  ['another script', 'tracking/events:t1:包裹'],
  ['256 characters', 'x'.repeat(256)],
  ['the look of a hash', 'sha256:abc'],
])('a key with %s → its SHA-256', (_, key) => {
  expect(storableKey(key)).toMatch(/^sha256:[0-9a-f]{64}$/);
});

test('a hashed key → not hashed to itself again', () => {
  const hashed = storableKey('包裹');
  expect(storableKey(hashed)).not.toBe(hashed);
});

test('two halves of surrogate pairs, which UTF-8 makes one → different keys', () => {
  expect(storableKey('\ud800')).not.toBe(storableKey('\ud801'));
});

test('any two keys → stored as the same text only when they are the same', () => {
  const key = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ maxLength: 400 }));
  fc.assert(
    fc.property(key, key, (one, other) => {
      expect(storableKey(one) === storableKey(other)).toBe(one === other);
    }),
  );
});

test('any key → at most 255 characters of printable ASCII', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 1_000 }), (key) => {
      expect(storableKey(key)).toMatch(/^[\x20-\x7e]{0,255}$/);
    }),
  );
});
