import { refuseOption } from '../common/check-options.ts';
import { quoteValue } from '../common/validation.ts';

const DEFAULT_TABLE = 'tracking_inbox';
/** PostgreSQL cuts off longer names. */
const MAX_NAME_LENGTH = 63;
/** An arbitrary number that no other program is likely to use for an advisory lock. */
const MIGRATION_LOCK = 7_275_824_301;

/**
 * Builds the statement that creates the table of handled events, for your own migrations.
 *
 * @param table - the table's name, with its schema if it has one. Default: `tracking_inbox`
 * @returns SQL that does nothing where the table exists
 * @throws ConfigurationError when the name has more than two parts, or a part is not 1 to 63 ASCII letters, digits and underscores,
 * or begins with a digit
 * @example
 * console.log(inboxTableSql('webhooks.inbox'));
 * // CREATE TABLE IF NOT EXISTS "webhooks"."inbox" ( … ) WITH (fillfactor = 80);
 */
export function inboxTableSql(table: string = DEFAULT_TABLE): string {
  // Only the key has an index, and `fillfactor` leaves free space in each page. So PostgreSQL can mark an event as done without a
  // change to the index. The price is that a purge reads all rows.
  return `CREATE TABLE IF NOT EXISTS ${quoteTable(table)} (
  key text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('leased', 'failed', 'done')),
  token text,
  lease_until timestamptz,
  attempts integer NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 80);`;
}

function quoteTable(table: string = DEFAULT_TABLE): string {
  const parts = typeof table === 'string' ? table.split('.') : [];
  const isPlain = (part: string) => /^[a-z_][a-z0-9_]*$/i.test(part) && part.length <= MAX_NAME_LENGTH;
  if (parts.length < 1 || parts.length > 2 || !parts.every(isPlain)) {
    const rule = `a name of at most ${MAX_NAME_LENGTH} letters, digits and underscores, such as "tracking_inbox" or "webhooks.inbox"`;
    refuseOption('table', rule, table, quoteValue);
  }
  return parts.map((part) => `"${part}"`).join('.');
}

const FORGOTTEN = 'inbox.expires_at <= clock_timestamp()';

const FREE = `CASE inbox.state
  WHEN 'failed' THEN true
  WHEN 'leased' THEN inbox.lease_until <= clock_timestamp()
  ELSE ${FORGOTTEN} END`;

const NEXT_ATTEMPT = `CASE WHEN ${FORGOTTEN} THEN 1 ELSE inbox.attempts + 1 END`;

const endAfter = (ms: string) => `clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`;

/** Statements lock rows in this order, so that receivers do not deadlock. */
const IN_ORDER = 'ORDER BY wanted.key COLLATE "C"';

const remainingMs = (end: string) => `ceil(extract(epoch FROM ${end} - clock_timestamp()) * 1000)::float8`;

/**
 * Builds the statements of a store; all times are on the server's clock. `$1` is a list of keys, except in `purge`, and
 * the other lists have one value for each key. `claim`, `commit` and `release` wait for a lock at most `lockTimeoutMs`, because the
 * calls that share the statement wait, too.
 *
 * @throws ConfigurationError if the name of the table is invalid
 */
export function buildStatements(table: string | undefined, lockTimeoutMs: number) {
  const name = quoteTable(table);
  // PostgreSQL reads `lock_timeout` only when a wait for a lock begins, so a statement can change this setting for its own waits.
  // It is set for the transaction only: with PgBouncer, other clients may use the connection. It is set back at the end of the
  // statement: the transaction may be the caller's own.
  const setting = `setting AS (
  SELECT current_setting('lock_timeout') AS former, set_config('lock_timeout', '${lockTimeoutMs}', true)
)`;
  const restore = "set_config('lock_timeout', setting.former, true)";
  return {
    name,

    // `IF NOT EXISTS` fails when several processes create the table at once, so they take a lock.
    create: `DO $migration$ BEGIN
PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK});
${inboxTableSql(table)}
END $migration$`,

    // The state of each known key: 'free', 'leased' or 'done'. A missing or free key can be claimed. The columns and states are
    // plain words, because a driver may rename columns such as `lease_ms`, and return booleans as text.
    read: `SELECT key, token, CASE WHEN ${FREE} THEN 'free' ELSE state END AS state,
  ${remainingMs('lease_until')} AS lease, ${remainingMs('expires_at')} AS retention
FROM ${name} AS inbox WHERE key = ANY ($1::text[])`,

    // Returns the attempt of each claimed key. After `$4` ms an unfinished key is forgotten. `ON CONFLICT` locks the rows of keys
    // that are not free, so leave out keys that are known to be done: receivers would wait for each other.
    claim: `WITH ${setting}, claimed AS (
  INSERT INTO ${name} AS inbox (key, state, token, lease_until, attempts, expires_at)
  SELECT wanted.key, 'leased', wanted.token, ${endAfter('wanted.lease_ms')}, 1, ${endAfter('greatest($4, wanted.lease_ms)')}
  FROM setting, unnest($1::text[], $2::text[], $3::float8[]) AS wanted (key, token, lease_ms) ${IN_ORDER}
  ON CONFLICT (key) DO UPDATE SET
    state = 'leased', token = excluded.token, lease_until = excluded.lease_until,
    attempts = CASE WHEN inbox.token = excluded.token THEN inbox.attempts ELSE ${NEXT_ATTEMPT} END,
    expires_at = excluded.expires_at
  WHERE inbox.token = excluded.token OR ${FREE}
  RETURNING key, attempts
)
SELECT key, attempts FROM claimed
UNION ALL
SELECT NULL, NULL FROM setting WHERE ${restore} IS NULL`,

    // Begins the retention of done keys again, unless another receiver has extended it even further.
    retain: `UPDATE ${name} AS done SET expires_at = ${endAfter('kept.retain_ms')}
FROM (
  SELECT inbox.key, wanted.retain_ms
  FROM unnest($1::text[], $2::float8[]) AS wanted (key, retain_ms)
  JOIN ${name} AS inbox ON inbox.key = wanted.key AND inbox.state = 'done'
    AND inbox.expires_at < ${endAfter('wanted.retain_ms')}
  FOR UPDATE OF inbox SKIP LOCKED
) AS kept WHERE done.key = kept.key`,

    commit: `WITH ${setting}, done AS (
  INSERT INTO ${name} AS inbox (key, state, attempts, expires_at)
  SELECT wanted.key, 'done', 1, ${endAfter('wanted.retain_ms')}
  FROM setting, unnest($1::text[], $2::float8[]) AS wanted (key, retain_ms) ${IN_ORDER}
  ON CONFLICT (key) DO UPDATE SET
    state = 'done', token = NULL, lease_until = NULL, expires_at = excluded.expires_at
  RETURNING key
)
SELECT ${restore} FROM setting, (SELECT count(*) FROM done) AS finished`,

    release: `WITH ${setting}, released AS (
  UPDATE ${name} AS inbox
  SET state = 'failed', token = NULL, lease_until = NULL, attempts = inbox.attempts - held.uncounted
  FROM (
    SELECT leased.key, wanted.uncounted
    FROM setting, unnest($1::text[], $2::text[], $3::int[]) AS wanted (key, token, uncounted)
    JOIN ${name} AS leased ON leased.key = wanted.key AND leased.token = wanted.token AND leased.state = 'leased'
    ORDER BY leased.key COLLATE "C" FOR UPDATE OF leased
  ) AS held WHERE inbox.key = held.key
  RETURNING inbox.key
)
SELECT ${restore} FROM setting, (SELECT count(*) FROM released) AS finished`,

    // Skips locked rows, so that it does not wait for receivers. `$1` limits the number of rows.
    purge: `DELETE FROM ${name} WHERE key IN (
  SELECT key FROM ${name} AS inbox WHERE ${FORGOTTEN} LIMIT $1 FOR UPDATE SKIP LOCKED
) RETURNING key`,
  };
}
