import * as z from 'zod';
import { checkOptions, countOption, hasMethods, type OptionShape, option } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import { type Claim, storableKey } from '../webhooks/dedupe-store.ts';

/** Anything that runs a statement: a `Pool` or `Client` of `pg`, a PGlite database, or your own adapter. */
export interface Queryable {
  /**
   * Runs one statement.
   *
   * @param text - SQL whose values are numbered `$1`, `$2`, …
   * @param values - the values
   * @returns the rows, each an object by column name
   * @throws an error with the SQLSTATE as `code`
   */
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

export const queryableOption = option<Queryable>('anything with a method `query(text, values)`', (value) =>
  hasMethods(value, 'query'),
);

const DEFAULT_TABLE = 'tracking_inbox';
/** PostgreSQL cuts off longer names. */
const MAX_NAME_LENGTH = 63;
/** An arbitrary number that no other program is likely to use for an advisory lock. */
const MIGRATION_LOCK = 7_275_824_301;
const UNDEFINED_TABLE = '42P01';

/**
 * Builds the statement that creates the table of handled events, for your own migrations.
 *
 * @param table - the table's name, with its schema if it has one. Default: `tracking_inbox`
 * @returns SQL that does nothing where the table exists
 * @throws ConfigurationError when a part of the name is not 1 to 63 letters, digits and underscores
 * @example
 * console.log(inboxTableSql('webhooks.inbox'));
 * // CREATE TABLE IF NOT EXISTS "webhooks"."inbox" ( … ) WITH (fillfactor = 80);
 */
export function inboxTableSql(table: string = DEFAULT_TABLE): string {
  // Only the keys are indexed and pages keep free room, so a commit updates no index. In return a purge reads all rows.
  return `CREATE TABLE IF NOT EXISTS ${quoteTable(table)} (
  key text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('leased', 'failed', 'done')),
  token text,
  lease_until timestamptz,
  attempts integer NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 80);`;
}

/** Options of `purge`. */
export interface PurgeOptions {
  /** How many rows one statement deletes, at least 1. Default: 10,000. */
  readonly batchSize?: number | undefined;
}

const purgeOptions = z.strictObject({
  batchSize: countOption(1).default(10_000),
} satisfies OptionShape<PurgeOptions>);

type Row = Readonly<Record<string, unknown>>;

/** A table of handled events. */
export class InboxTable {
  readonly #name: string;
  readonly #quotedName: string;
  readonly #statements: Statements;

  constructor(name: string = DEFAULT_TABLE) {
    this.#name = name;
    this.#quotedName = quoteTable(name);
    this.#statements = buildStatements(this.#quotedName);
  }

  /** Takes a lock, because `IF NOT EXISTS` fails when several processes create the table at once. */
  async create(client: Queryable): Promise<void> {
    await client.query(`DO $migration$ BEGIN
PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK});
${inboxTableSql(this.#name)}
END $migration$`);
  }

  /** A purge skips locked rows, so that it does not wait for receivers. */
  async purge(client: Queryable, options: PurgeOptions = {}): Promise<number> {
    const { batchSize } = checkOptions(purgeOptions, options);
    let purged = 0;
    let batch: number;
    do {
      const { rows } = await client.query(
        `DELETE FROM ${this.#quotedName} WHERE key IN (
  SELECT key FROM ${this.#quotedName}
  WHERE expires_at <= clock_timestamp()
  LIMIT $1 FOR UPDATE SKIP LOCKED
) RETURNING 1`,
        [batchSize],
      );
      batch = rows.length;
      purged += batch;
    } while (batch === batchSize);
    return purged;
  }

  /** Claims keys, and looks up the keys it did not get. A key is missing in the result if its row was deleted meanwhile. */
  async claim(
    client: Queryable,
    keys: readonly string[],
    ...values: readonly unknown[]
  ): Promise<ReadonlyMap<string, Claim>> {
    const claims = new Map<string, Claim>();
    for (const [key, { attempts }] of await this.run(client, 'claim', keys, ...values)) {
      claims.set(key, { status: 'acquired', attempt: Number(attempts) });
    }
    const refused = keys.filter((key) => !claims.has(key));
    for (const [key, row] of await this.run(client, 'look', refused)) {
      const leftMs = Number(row['retry_after_ms']);
      const busy: Claim = leftMs > 0 ? { status: 'busy', retryAfterMs: leftMs } : BUSY;
      claims.set(key, row['done'] === true ? { status: 'done' } : busy);
    }
    return claims;
  }

  async run(
    client: Queryable,
    statement: keyof Statements,
    keys: readonly string[],
    ...values: readonly unknown[]
  ): Promise<[key: string, row: Row][]> {
    if (keys.length === 0) return [];
    const storedKeys = keys.map(toStoredKey);
    const keyOfStored = new Map(storedKeys.map((stored, index) => [stored, keys[index]]));
    const { rows } = await client
      .query(this.#statements[statement], [storedKeys, ...values])
      .catch((error) => this.#rethrow(error));
    // Sound: every driver returns a row as an object by column name unless it is asked for arrays.
    return (rows as Row[]).map((row) => {
      const stored = String(row['key']);
      return [keyOfStored.get(stored) ?? stored, row];
    });
  }

  #rethrow(error: unknown): never {
    if (getSqlState(error) !== UNDEFINED_TABLE) throw error;
    const message = `Expected the table ${this.#quotedName} to exist, got none`;
    const advice = 'call `createTable()`, or run `inboxTableSql()` in a migration';
    throw new ConfigurationError(`${message}; ${advice}`, { cause: error });
  }
}

/** A key that another receiver holds for an unknown time. */
export const BUSY: Claim = { status: 'busy', retryAfterMs: 1_000 };

export function getSqlState(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** PostgreSQL allows no NUL in a text and no long text in an index, so only short plain ASCII is stored as it is. */
function toStoredKey(key: string): string {
  return storableKey(key, /^[\x20-\x7e]{0,255}$/);
}

function quoteTable(table: string): string {
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

// Statements lock rows in the order of their keys, so that receivers do not deadlock. All times are on the server's clock.

const FORGOTTEN = 'inbox.expires_at <= clock_timestamp()';

const FREE = `CASE inbox.state
  WHEN 'failed' THEN true
  WHEN 'leased' THEN inbox.lease_until <= clock_timestamp()
  ELSE ${FORGOTTEN} END`;

const NEXT_ATTEMPT = `CASE WHEN ${FORGOTTEN} THEN 1 ELSE inbox.attempts + 1 END`;

type Statements = ReturnType<typeof buildStatements>;

/** `$1` of each statement is a list of keys. */
function buildStatements(name: string) {
  const endAfter = (ms: string) => `clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`;
  const inOrder = 'ORDER BY wanted.key COLLATE "C"';
  // Leave done rows out, because `ON CONFLICT` would lock them and make receivers wait for each other.
  const unlessDone = `WHERE NOT EXISTS (
  SELECT FROM ${name} AS known WHERE known.key = wanted.key AND known.state = 'done' AND known.expires_at > clock_timestamp()
)`;
  return {
    // After `$4` ms an unfinished key is forgotten.
    claim: `INSERT INTO ${name} AS inbox (key, state, token, lease_until, attempts, expires_at)
SELECT wanted.key, 'leased', wanted.token, ${endAfter('wanted.lease_ms')}, 1, ${endAfter('greatest($4, wanted.lease_ms)')}
FROM unnest($1::text[], $2::text[], $3::float8[]) AS wanted (key, token, lease_ms) ${unlessDone} ${inOrder}
ON CONFLICT (key) DO UPDATE SET
  state = 'leased', token = excluded.token, lease_until = excluded.lease_until,
  attempts = CASE WHEN inbox.token = excluded.token THEN inbox.attempts ELSE ${NEXT_ATTEMPT} END,
  expires_at = excluded.expires_at
WHERE inbox.token = excluded.token OR ${FREE}
RETURNING key, attempts`,

    look: `SELECT key, state = 'done' AND expires_at > clock_timestamp() AS done,
  ceil(extract(epoch FROM lease_until - clock_timestamp()) * 1000)::float8 AS retry_after_ms
FROM ${name} WHERE key = ANY ($1::text[])`,

    commit: `INSERT INTO ${name} AS inbox (key, state, attempts, expires_at)
SELECT wanted.key, 'done', 1, ${endAfter('wanted.retain_ms')}
FROM unnest($1::text[], $2::float8[]) AS wanted (key, retain_ms) ${inOrder}
ON CONFLICT (key) DO UPDATE SET
  state = 'done', token = NULL, lease_until = NULL, expires_at = excluded.expires_at`,

    release: `UPDATE ${name} AS inbox
SET state = 'failed', token = NULL, lease_until = NULL, attempts = inbox.attempts - held.uncounted::int
FROM (
  SELECT leased.key, wanted.uncounted
  FROM unnest($1::text[], $2::text[], $3::bool[]) AS wanted (key, token, uncounted)
  JOIN ${name} AS leased ON leased.key = wanted.key AND leased.token = wanted.token AND leased.state = 'leased'
  ORDER BY leased.key COLLATE "C" FOR UPDATE OF leased
) AS held WHERE inbox.key = held.key`,
  };
}
