import { quoteTable } from './inbox-table.ts';

/*
 * Every statement that locks several rows takes them in the order of their keys. Two receivers that lock the same rows in different
 * orders would wait for each other, and PostgreSQL would fail one of them. All times are of the server's clock.
 */

/** The statements that work on one table of events. */
export interface InboxStatements {
  /** Of the dedupe store. `$1` keys, `$2` token, `$3` lease in ms, `$4` ms after which an unfinished key is forgotten. */
  readonly claim: string;
  /** `$1` keys. */
  readonly look: string;
  /** Of the dedupe store. `$1` keys, `$2` ms to remember them. */
  readonly commit: string;
  /** Of the dedupe store. `$1` keys, `$2` token. */
  readonly release: string;
  /** Of the transactional inbox: done, if the transaction ends well. `$1` keys, `$2` ms to remember them. */
  readonly take: string;
  /** Of the transactional inbox, after its transaction ended badly. `$1` keys, `$2` ms after which they are forgotten. */
  readonly fail: string;
}

const FORGOTTEN = 'inbox.expires_at <= clock_timestamp()';

/** A row that nobody holds and that was not handled yet. */
const FREE = `CASE inbox.state
  WHEN 'failed' THEN true
  WHEN 'leased' THEN inbox.lease_until <= clock_timestamp()
  ELSE ${FORGOTTEN} END`;

const NEXT_ATTEMPT = `CASE WHEN ${FORGOTTEN} THEN 1 ELSE inbox.attempts + 1 END`;

/** Writes the statements for a table. */
export function inboxStatements(table: string): InboxStatements {
  const name = quoteTable(table);
  const endOf = (parameter: string) => `clock_timestamp() + ${parameter}::float8 * interval '1 millisecond'`;
  const sortedKeys = 'FROM unnest($1::text[]) AS wanted (key) ORDER BY wanted.key COLLATE "C"';
  return {
    claim: `INSERT INTO ${name} AS inbox (key, state, token, lease_until, attempts, expires_at)
SELECT wanted.key, 'leased', $2::text, ${endOf('$3')}, 1, ${endOf('$4')} ${sortedKeys}
ON CONFLICT (key) DO UPDATE SET
  state = 'leased', token = excluded.token, lease_until = excluded.lease_until,
  attempts = CASE WHEN inbox.token = excluded.token THEN inbox.attempts ELSE ${NEXT_ATTEMPT} END,
  expires_at = CASE WHEN inbox.token = excluded.token THEN inbox.expires_at ELSE excluded.expires_at END
WHERE inbox.token = excluded.token OR ${FREE}
RETURNING key, attempts`,

    look: `SELECT key, state = 'done' AND expires_at > clock_timestamp() AS done,
  ceil(extract(epoch FROM lease_until - clock_timestamp()) * 1000)::float8 AS retry_after_ms
FROM ${name} WHERE key = ANY ($1::text[])`,

    commit: `INSERT INTO ${name} AS inbox (key, state, attempts, expires_at)
SELECT wanted.key, 'done', 1, ${endOf('$2')} ${sortedKeys}
ON CONFLICT (key) DO UPDATE SET
  state = 'done', token = NULL, lease_until = NULL, expires_at = excluded.expires_at`,

    release: `UPDATE ${name} SET state = 'failed', token = NULL, lease_until = NULL
WHERE key IN (
  SELECT key FROM ${name} WHERE key = ANY ($1::text[]) AND state = 'leased' AND token = $2::text
  ORDER BY key COLLATE "C" FOR UPDATE
)`,

    take: `INSERT INTO ${name} AS inbox (key, state, attempts, expires_at)
SELECT wanted.key, 'done', 1, ${endOf('$2')} ${sortedKeys}
ON CONFLICT (key) DO UPDATE SET
  state = 'done', token = NULL, lease_until = NULL, attempts = ${NEXT_ATTEMPT}, expires_at = excluded.expires_at
WHERE ${FREE}
RETURNING key, attempts`,

    fail: `INSERT INTO ${name} AS inbox (key, state, attempts, expires_at)
SELECT wanted.key, 'failed', 1, ${endOf('$2')} ${sortedKeys}
ON CONFLICT (key) DO UPDATE SET
  state = 'failed', token = NULL, lease_until = NULL, attempts = ${NEXT_ATTEMPT}, expires_at = excluded.expires_at
WHERE ${FREE}`,
  };
}
