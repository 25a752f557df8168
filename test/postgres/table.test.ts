import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { inboxTableSql, PostgresDedupeStore } from '../../src/postgres/index.ts';

describe('inboxTableSql', () => {
  test('no name → the default table', () => {
    expect(inboxTableSql()).toContain('CREATE TABLE IF NOT EXISTS "tracking_inbox" (');
  });
});

describe('the name of a table', () => {
  test.each([
    ['tracking_inbox', '"tracking_inbox"'],
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
