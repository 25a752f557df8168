import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { inboxTableSql, quoteTable } from '../../src/postgres/inbox-table.ts';

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

test.each([['t'.repeat(51)], ['1inbox'], [5]])(
  'inboxTableSql(%j) → the same words as anywhere else the table is named',
  (table) => {
    let refusal: unknown;
    try {
      quoteTable(table as string); // The wrong type on purpose: JavaScript callers have no compiler.
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(ConfigurationError);
    expect(() => inboxTableSql(table as string)).toThrow(refusal as Error);
  },
);

describe('quoteTable', () => {
  test.each([
    ['tracking_inbox', '"tracking_inbox"'],
    ['Hooks.Inbox_2', '"Hooks"."Inbox_2"'],
    ['_private', '"_private"'],
  ])('%s → %s', (table, quoted) => {
    expect(quoteTable(table)).toBe(quoted);
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
    undefined,
    42,
  ])('%j → ConfigurationError', (table) => {
    // @ts-expect-error: what a caller without types may pass
    expect(() => quoteTable(table)).toThrow(ConfigurationError);
  });
});
