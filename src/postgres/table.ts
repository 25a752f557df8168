import { refuseOption } from '../common/check-options.ts';
import { quoteValue } from '../common/messages.ts';
import { OUTLASTS_SENDER_MS } from '../webhooks/dedupe-store.ts';

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

/** Splits the name of a table into its schema, if it has one, and the table itself. */
function parseTable(table: string = DEFAULT_TABLE): { readonly schema?: string; readonly name: string } {
  const parts = typeof table === 'string' ? table.split('.') : [];
  const isPlain = (part: string) => /^[a-z_][a-z0-9_]*$/i.test(part) && part.length <= MAX_NAME_LENGTH;
  const [first, second] = parts;
  if (first === undefined || parts.length > 2 || !parts.every(isPlain)) {
    const rule = `a name of at most ${MAX_NAME_LENGTH} letters, digits and underscores, such as "tracking_inbox" or "webhooks.inbox"`;
    refuseOption('table', rule, table, quoteValue);
  }
  return second === undefined ? { name: first } : { schema: first, name: second };
}

function quoteTable(table: string | undefined): string {
  const { schema, name } = parseTable(table);
  return schema === undefined ? `"${name}"` : `"${schema}"."${name}"`;
}

const FORGOTTEN = 'inbox.expires_at <= clock_timestamp()';

const FREE = `CASE inbox.state
  WHEN 'failed' THEN true
  WHEN 'leased' THEN inbox.lease_until <= clock_timestamp()
  ELSE ${FORGOTTEN} END`;

const NEXT_ATTEMPT = `CASE WHEN ${FORGOTTEN} THEN 1 ELSE inbox.attempts + 1 END`;

const endAfter = (ms: string) => `clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`;

const remainingMs = (end: string) => `ceil(extract(epoch FROM ${end} - clock_timestamp()) * 1000)::float8`;

/** The schemas in which PostgreSQL looks for a table without a schema, also those that the role may not use. */
const SEARCH_PATH = `regexp_split_to_array(replace(replace(current_setting('search_path'), '"', ''), '$user', current_user), '\\s*,\\s*')`;

/**
 * Builds the statements of a store; all times are on the server's clock. `$1` is a list of keys, except in `purge`, and the other
 * lists have one value for each key. No statement waits for a row that another transaction has locked: `SKIP LOCKED` leaves it out.
 * Rows are locked in the order of their keys, so that receivers do not deadlock. Columns are plain words, because a driver may
 * rename columns such as `lease_ms`.
 *
 * @throws ConfigurationError if the name of the table is invalid
 */
export function buildStatements(table: string | undefined) {
  const quoted = quoteTable(table);
  const { schema, name } = parseTable(table);
  const isPlace = schema === undefined ? `nspname::text = ANY (${SEARCH_PATH})` : `nspname = '${schema}'`;
  return {
    name: quoted,

    // Each schema that may contain the table: whether it does, and which rights the role lacks.
    find: `SELECT CASE WHEN inbox.oid IS NULL THEN 'no' ELSE 'yes' END AS found, concat_ws(', ',
  CASE WHEN NOT has_schema_privilege(place.oid, 'USAGE') THEN format('USAGE ON SCHEMA %I', nspname) END,
  CASE WHEN inbox.oid IS NULL AND NOT has_schema_privilege(place.oid, 'CREATE') THEN format('CREATE ON SCHEMA %I', nspname) END,
  (SELECT string_agg(format('%s ON %I.%I', needed, nspname, relname), ', ')
    FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed
    WHERE NOT has_table_privilege(inbox.oid, needed))
) AS lacking
FROM pg_namespace AS place LEFT JOIN pg_class AS inbox ON relnamespace = place.oid AND relname = '${name}' AND relkind IN ('r', 'p')
WHERE ${isPlace}`,

    // `IF NOT EXISTS` fails when several processes create the table at once, so they take a lock.
    create: `DO $migration$ BEGIN
PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK});
${inboxTableSql(table)}
END $migration$`,

    // For each key that is known or claimed: the claimant and its attempt, if it is claimed, and what was known before. After a
    // week, or after its lease, an unfinished key is forgotten. If several requests name a key, the holder of its lease wins, else
    // the first request. Only an insert waits, while another transaction inserts the same key. `lock_timeout` ends the wait after
    // `$4` milliseconds. It is set back at the end of the statement, because the transaction may be the caller's own.
    claim: `WITH setting AS (
  SELECT current_setting('lock_timeout') AS former, set_config('lock_timeout', $4::text, true)
), known AS (
  SELECT key, token, CASE WHEN ${FREE} THEN 'free' ELSE state END AS state,
    ${remainingMs('lease_until')} AS lease, ${remainingMs('expires_at')} AS retention
  FROM ${quoted} AS inbox WHERE key = ANY ($1::text[])
), unlocked AS (
  SELECT key FROM ${quoted} AS inbox WHERE key = ANY ($1::text[]) AND (token = ANY ($2::text[]) OR ${FREE})
  ORDER BY key FOR UPDATE SKIP LOCKED
), claimed AS (
  INSERT INTO ${quoted} AS inbox (key, state, token, lease_until, attempts, expires_at)
  SELECT DISTINCT ON (key COLLATE "C") key, 'leased', wanted.token, ${endAfter('lease_ms')}, 1,
    ${endAfter(`greatest(${OUTLASTS_SENDER_MS}, lease_ms)`)}
  FROM setting, unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY AS wanted (key, token, lease_ms, place)
    LEFT JOIN known USING (key)
  WHERE known.state IS NULL OR key IN (SELECT key FROM unlocked)
  ORDER BY key COLLATE "C", known.token IS DISTINCT FROM wanted.token, place
  ON CONFLICT (key) DO UPDATE SET
    state = 'leased', token = excluded.token, lease_until = excluded.lease_until,
    attempts = CASE WHEN inbox.token = excluded.token THEN inbox.attempts ELSE ${NEXT_ATTEMPT} END,
    expires_at = excluded.expires_at
  WHERE inbox.token = excluded.token OR ${FREE}
  RETURNING key, token, attempts
)
SELECT key, claimed.token AS claimant, attempts, known.token AS holder, state, lease, retention
FROM known FULL JOIN claimed USING (key)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM setting
WHERE set_config('lock_timeout', setting.former, true) IS NULL`,

    // Begins the retention of done keys again, unless another receiver has extended it even further.
    retain: `UPDATE ${quoted} AS done SET expires_at = ${endAfter('kept.retain_ms')}
FROM (
  SELECT inbox.key, wanted.retain_ms
  FROM unnest($1::text[], $2::float8[]) AS wanted (key, retain_ms)
  JOIN ${quoted} AS inbox ON inbox.key = wanted.key AND inbox.state = 'done'
    AND inbox.expires_at < ${endAfter('wanted.retain_ms')}
  FOR UPDATE OF inbox SKIP LOCKED
) AS kept WHERE done.key = kept.key`,

    // Returns the keys whose row is locked.
    commit: `WITH unlocked AS (
  SELECT key FROM ${quoted} WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE SKIP LOCKED
), locked AS (
  SELECT key FROM ${quoted} WHERE key = ANY ($1::text[]) AND key NOT IN (SELECT key FROM unlocked)
), done AS (
  INSERT INTO ${quoted} (key, state, attempts, expires_at)
  SELECT key, 'done', 1, ${endAfter('retain_ms')}
  FROM unnest($1::text[], $2::float8[]) AS wanted (key, retain_ms)
  WHERE key NOT IN (SELECT key FROM locked) ORDER BY key COLLATE "C"
  ON CONFLICT (key) DO UPDATE SET
    state = 'done', token = NULL, lease_until = NULL, expires_at = excluded.expires_at
)
SELECT key FROM locked`,

    // Returns the keys that the claimant leases, but whose row is locked.
    release: `WITH held AS (
  SELECT inbox.key, token, uncounted
  FROM unnest($1::text[], $2::text[], $3::int[]) AS wanted (key, token, uncounted)
  JOIN ${quoted} AS inbox USING (key, token) WHERE state = 'leased'
), unlocked AS (
  SELECT inbox.key, held.uncounted FROM held JOIN ${quoted} AS inbox USING (key, token)
  WHERE state = 'leased' ORDER BY key COLLATE "C" FOR UPDATE OF inbox SKIP LOCKED
), released AS (
  UPDATE ${quoted} AS inbox
  SET state = 'failed', token = NULL, lease_until = NULL, attempts = inbox.attempts - unlocked.uncounted
  FROM unlocked WHERE inbox.key = unlocked.key
)
SELECT key, token FROM held WHERE key NOT IN (SELECT key FROM unlocked)`,

    // `$1` limits the number of rows.
    purge: `DELETE FROM ${quoted} WHERE key IN (
  SELECT key FROM ${quoted} AS inbox WHERE ${FORGOTTEN} LIMIT $1 FOR UPDATE SKIP LOCKED
) RETURNING key`,
  };
}
