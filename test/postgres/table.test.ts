import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { inboxTableSql, PostgresDedupeStore } from '../../src/postgres/index.ts';

describe('inboxTableSql', () => {
  test('no name → the default table and its index', () => {
    const sql = inboxTableSql();
    expect(sql).toContain('CREATE TABLE IF NOT EXISTS "tracking_inbox" (');
    expect(sql).toContain('CREATE INDEX IF NOT EXISTS "tracking_inbox_expires_at" ON "tracking_inbox"');
  });

  test('a table in a schema → an index named after the table alone, as PostgreSQL wants it', () => {
    expect(inboxTableSql('hooks.inbox')).toContain(
      'CREATE INDEX IF NOT EXISTS "inbox_expires_at" ON "hooks"."inbox"',
    );
  });

  test('the longest name → an index name that PostgreSQL does not cut', () => {
    const index = /"([^"]+_expires_at)"/.exec(inboxTableSql('t'.repeat(50)))?.[1];
    expect(index?.length).toBeLessThanOrEqual(63);
  });
});

describe('the name of a table', () => {
  test.each([
    ['tracking_inbox', '"tracking_inbox"'],
    ['Hooks.Inbox_2', '"Hooks"."Inbox_2"'],
    ['_private', '"_private"'],
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
    't'.repeat(51),
    null,
    42,
  ])('%j → ConfigurationError, in the same words from the SQL and from a store', (table) => {
    const client = { query: async () => ({ rows: [] }) };
    // @ts-expect-error: what a caller without types may pass
    const makeSql = () => inboxTableSql(table);
    // @ts-expect-error: what a caller without types may pass
    const makeStore = () => new PostgresDedupeStore({ client, table });
    for (const make of [makeSql, makeStore]) {
      expect(make).toThrow(ConfigurationError);
      expect(make).toThrow(/^Expected `table` to be a name of at most 50 letters, digits and underscores/);
    }
  });
});
