import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { inboxTableSql, PostgresDedupeStore } from '../../src/postgres/index.ts';
import { anyText } from '../support/any-text.ts';

describe('the name of a table', () => {
  test.each([
    [undefined, '"tracking_inbox"'],
    ['Hooks.Inbox_2', '"Hooks"."Inbox_2"'],
    ['_private', '"_private"'],
    ['t'.repeat(63), `"${'t'.repeat(63)}"`],
  ])('%s → %s', (table, quoted) => {
    expect(inboxTableSql(table)).toContain(`CREATE TABLE IF NOT EXISTS ${quoted} (`);
  });

  test.each(['', 'a.b.c', 'inbox; DROP TABLE "users"', '1inbox', 'inbox$1', 'schema.', 't'.repeat(64), 42])(
    '%j → ConfigurationError',
    (table) => {
      // @ts-expect-error: what a caller without types may pass
      const build = () => inboxTableSql(table);
      expect(build).toThrow(ConfigurationError);
      expect(build).toThrow(/^Expected `table` to be a name of at most 63 letters, digits and underscores/);
    },
  );
});

/** Makes a store; the function commits a key and returns the text that the database got. */
function makeStore() {
  let stored: unknown;
  const query = async (_text: string, [keys]: unknown[] = []) => {
    stored = Array.isArray(keys) ? keys[0] : undefined;
    return { rows: [] };
  };
  const store = new PostgresDedupeStore({ pool: { query } });
  return async (key: string) => {
    await store.commit([key], { retainMs: 1 });
    return String(stored);
  };
}

test.each([
  ['short plain ASCII → stored as itself', 'tracking/events:t-1:4f2c~ e', /^tracking.events:t-1:4f2c~ e$/],
  ['255 characters → stored as itself', 'x'.repeat(255), /^x{255}$/],
  ['256 characters → stored as its SHA-256', 'x'.repeat(256), /^sha256:[0-9a-f]{64}$/],
  ['text with a NUL → stored as its SHA-256', 'tracking/events:t1:a\u0000b', /^sha256:[0-9a-f]{64}$/],
  ['another script → stored as its SHA-256', 'tracking/events:t1:包裹', /^sha256:[0-9a-f]{64}$/],
  ['text that looks like a hash → stored as its SHA-256', 'sha256:abc', /^sha256:[0-9a-f]{64}$/],
])('a key of %s', async (_title, key, stored) => {
  expect(await makeStore()(key)).toMatch(stored);
});

test('any two keys → stored as printable ASCII of at most 255 characters, equal only for equal keys', async () => {
  const storedAs = makeStore();
  const key = fc.oneof(anyText({ maxLength: 3 }), anyText({ maxLength: 400 }), fc.string({ maxLength: 400 }));
  await fc.assert(
    fc.asyncProperty(key, key, async (a, b) => {
      const [storedA, storedB] = [await storedAs(a), await storedAs(b)];
      expect(storedA).toMatch(/^[\x20-\x7e]{0,255}$/);
      expect(storedA === storedB).toBe(a === b);
    }),
  );
});
