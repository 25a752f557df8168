import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';

/** The text that goes to the database for a key. */
async function storedAs(key: string): Promise<string> {
  let stored: unknown;
  const query = async (_text: string, [keys]: unknown[] = []) => {
    stored = Array.isArray(keys) ? keys[0] : undefined;
    return { rows: [] };
  };
  await new PostgresDedupeStore({ pool: { query } }).commit([key], { retainMs: 1 });
  return String(stored);
}

test('a short key of plain ASCII → itself, so that a table can be read', async () => {
  expect(await storedAs('tracking/events:t-1:4f2c~ e')).toBe('tracking/events:t-1:4f2c~ e');
});

test.each([
  ['a NUL', 'tracking/events:t1:a\u0000b'],
  ['another script', 'tracking/events:t1:包裹'],
  ['256 characters', 'x'.repeat(256)],
  ['the look of a hash', 'sha256:abc'],
])('a key with %s → its SHA-256', async (_, key) => {
  expect(await storedAs(key)).toMatch(/^sha256:[0-9a-f]{64}$/);
});

test('a hashed key → not hashed to itself again', async () => {
  const hashed = await storedAs('包裹');
  expect(await storedAs(hashed)).not.toBe(hashed);
});

test('two halves of surrogate pairs, which UTF-8 makes one → different keys', async () => {
  expect(await storedAs('\ud800')).not.toBe(await storedAs('\ud801'));
});

test('any two keys → stored as the same text only when they are the same', async () => {
  const key = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ maxLength: 400 }));
  await fc.assert(
    fc.asyncProperty(key, key, async (one, other) => {
      expect((await storedAs(one)) === (await storedAs(other))).toBe(one === other);
    }),
  );
});

test('any key → at most 255 characters of printable ASCII', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 1_000 }), async (key) => {
      expect(await storedAs(key)).toMatch(/^[\x20-\x7e]{0,255}$/);
    }),
  );
});
