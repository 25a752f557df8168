import { checkCount, checkKnownOptions } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import type { Queryable } from './queryable.ts';

/** The table that is used when no other is named. */
export const DEFAULT_INBOX_TABLE = 'tracking_inbox';

/** Shorter than PostgreSQL's own limit of 63, for the index is named after the table. */
const MAX_NAME_LENGTH = 50;
/** Any constant that no other program is likely to lock. */
const MIGRATION_LOCK = 7_275_824_301;

/**
 * The statements that create the table of handled events, for your own migrations.
 *
 * @param table - name of the table, with its schema if it has one. Default: `tracking_inbox`
 * @returns SQL that does nothing where the table exists
 * @throws ConfigurationError when that is not a plain name
 * @example
 * console.log(inboxTableSql('webhooks.inbox'));
 * // CREATE TABLE IF NOT EXISTS "webhooks"."inbox" ( … );
 * // CREATE INDEX IF NOT EXISTS "inbox_expires_at" ON "webhooks"."inbox" (expires_at);
 */
export function inboxTableSql(table: string = DEFAULT_INBOX_TABLE): string {
  const name = quoteTable(table);
  const index = `"${table.split('.').at(-1)}_expires_at"`;
  // Room on the pages lets the renewals of a lease, which change no indexed column, stay on their page.
  return `CREATE TABLE IF NOT EXISTS ${name} (
  key text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('leased', 'failed', 'done')),
  token text,
  lease_until timestamptz,
  attempts integer NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX IF NOT EXISTS ${index} ON ${name} (expires_at);`;
}

/** Runs the statements of {@link inboxTableSql}; also when several processes do it at once, which plain `IF NOT EXISTS` does not survive. */
export async function createInboxTable(client: Queryable, table: string): Promise<void> {
  await client.query(`DO $migration$ BEGIN
PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK});
${inboxTableSql(table)}
END $migration$`);
}

/** Options of `purge`. */
export interface PurgeOptions {
  /** How many rows one statement deletes, at least 1. Default: 10,000. */
  readonly batchSize?: number | undefined;
}

/**
 * Deletes rows that nobody needs any more. Rows that are locked wait for the next purge, so it never stands in a receiver's way.
 *
 * @returns how many rows were deleted
 */
export async function purgeInboxTable(
  client: Queryable,
  table: string,
  options: PurgeOptions,
): Promise<number> {
  const name = quoteTable(table);
  checkKnownOptions('options', options, ['batchSize']);
  const batchSize = checkCount('batchSize', options.batchSize ?? 10_000, 1);
  let purged = 0;
  let batch: number;
  do {
    const { rows } = await client.query(
      `DELETE FROM ${name} WHERE key IN (
  SELECT key FROM ${name}
  WHERE expires_at <= clock_timestamp() AND (lease_until IS NULL OR lease_until <= clock_timestamp())
  LIMIT $1 FOR UPDATE SKIP LOCKED
) RETURNING 1`,
      [batchSize],
    );
    batch = rows.length;
    purged += batch;
  } while (batch === batchSize);
  return purged;
}

/**
 * Quotes a table's name.
 *
 * @throws ConfigurationError when it is more than letters, digits and underscores, with at most one schema before it
 */
export function quoteTable(table: string): string {
  const parts = typeof table === 'string' ? table.split('.') : [];
  const isPlain = (part: string) => /^[a-z_][a-z0-9_]*$/i.test(part) && part.length <= MAX_NAME_LENGTH;
  if (parts.length < 1 || parts.length > 2 || !parts.every(isPlain)) {
    throw new ConfigurationError(
      `Expected \`table\` to be a name of at most ${MAX_NAME_LENGTH} letters, digits and underscores, such as "tracking_inbox" or ` +
        `"webhooks.inbox", got ${kindOf(table)}`,
    );
  }
  return parts.map((part) => `"${part}"`).join('.');
}
