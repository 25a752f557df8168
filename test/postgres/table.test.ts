import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { inboxTableSql } from '../../src/postgres/index.ts';

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
