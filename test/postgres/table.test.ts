import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { inboxTableSql, PostgresDedupeStore } from '../../src/postgres/index.ts';

describe('the name of a table', () => {
  test.each([
    [undefined, '"tracking_inbox"'],
    ['Hooks.Inbox_2', '"Hooks"."Inbox_2"'],
    ['_private', '"_private"'],
    ['t'.repeat(63), `"${'t'.repeat(63)}"`],
  ])('%s → %s', (table, quoted) => {
    expect(inboxTableSql(table)).toContain(`CREATE TABLE IF NOT EXISTS ${quoted} (`);
  });

  test.each([
    '',
    '.',
    'a.b.c',
    'inbox"',
    'in box',
    'inbox; DROP TABLE users',
    '1inbox',
    'inbox$1',
    'schema.',
    't'.repeat(64),
    null,
    42,
  ])('%j → ConfigurationError, in the same words from the SQL and from a store', (table) => {
    const client = { query: async () => ({ rows: [] }) };
    // @ts-expect-error: what a caller without types may pass
    const makeSql = () => inboxTableSql(table);
    // @ts-expect-error: what a caller without types may pass
    const makeStore = () => new PostgresDedupeStore({ pool: client, table });
    for (const make of [makeSql, makeStore]) {
      expect(make).toThrow(ConfigurationError);
      expect(make).toThrow(/^Expected `table` to be a name of at most 63 letters, digits and underscores/);
    }
  });
});

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

test('any two keys → printable ASCII of at most 255 characters, the same only for the same key', async () => {
  const key = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ maxLength: 400 }));
  await fc.assert(
    fc.asyncProperty(key, key, async (a, b) => {
      const [storedA, storedB] = [await storedAs(a), await storedAs(b)];
      expect(storedA).toMatch(/^[\x20-\x7e]{0,255}$/);
      expect(storedA === storedB).toBe(a === b);
    }),
  );
}, 30_000);
