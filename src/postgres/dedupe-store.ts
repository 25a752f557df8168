import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { systemClock } from '../common/clock.ts';
import { type OptionShape, timeoutOption } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import { reportDriverErrors } from '../observability/logger.ts';
import {
  type Claim,
  DEFAULT_COMMAND_TIMEOUT_MS,
  type DedupeStore,
  OUTLASTS_SENDER_MS,
  storableKey,
} from '../webhooks/dedupe-store.ts';
import { batched, getSqlState, type Queryable, queryableOption, retryConflicts } from './connection.ts';
import { buildStatements } from './table.ts';

/** One statement of a purge deletes at most this many rows, so that no transaction takes long. */
const MAX_PURGED_AT_ONCE = 10_000;
const UNDEFINED_TABLE = '42P01';
/** A key that another receiver holds for an unknown time. */
const BUSY: Claim = { status: 'busy', retryAfterMs: 1_000 };

/** Options of {@link PostgresDedupeStore}. */
export interface PostgresDedupeStoreOptions {
  /**
   * A `Pool` or `Client` of `pg`, a PGlite database, or anything else with `query(text, values)`. You close it yourself.
   * Only a pool recovers from connections that no longer reply: the store lets it replace them. Poolers in transaction mode, such
   * as PgBouncer, work.
   */
  readonly pool: Queryable;
  /** Name of the table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
  /**
   * Time limit of one call in milliseconds, including all waits. A call waits for a connection, and for the statement of the calls
   * before it: the store sends one claim at a time, and waiting calls share the next one. Commits and releases do the same.
   * A statement waits for a locked row for a hundredth of this time, and at least 1 ms. Default: 2,000.
   */
  readonly commandTimeoutMs?: number | undefined;
}

const storeOptions = z.strictObject({
  pool: queryableOption,
  // `buildStatements` checks the name.
  table: z.custom<string>().optional(),
  commandTimeoutMs: timeoutOption.default(DEFAULT_COMMAND_TIMEOUT_MS),
} satisfies OptionShape<PostgresDedupeStoreOptions>);

interface ClaimRequest {
  readonly key: string;
  readonly token: string;
  readonly leaseMs: number;
  readonly retainMs: number;
}

interface ReleaseRequest {
  readonly key: string;
  readonly token: string;
  /** 1 if the claim does not count as an attempt. A number, because some drivers send a list of booleans as one boolean. */
  readonly uncounted: 0 | 1;
}

interface CommitRequest {
  readonly key: string;
  readonly retainMs: number;
}

/** A row of a reply; drivers may return numbers as text. */
interface Row {
  readonly key: string;
  /** The token of the lease, if the statement has not claimed the key. */
  readonly token: string | null;
  readonly attempts: unknown;
  readonly done: boolean | null;
  readonly retry_after_ms: unknown;
}

/**
 * Remembers handled webhook events in PostgreSQL, for any number of processes. Tested on version 15, and on 18 as PGlite.
 *
 * Create the table with `createTable()`, or with `inboxTableSql()` in your own migration, and call `purge()` regularly. Methods
 * reject with the errors of the pool; `claim`, `commit` and `release` also after `commandTimeoutMs`. If another transaction has
 * locked the row of a key, calls for this key are retried for up to a second. After that, a claim of an event that is not done is
 * busy, and a commit, a release or a renewal fails. Calls for other keys do not wait. Every isolation level works. Leases and
 * retention run on the clock of the server, so fake timers do not move them.
 *
 * @example
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL }).on('error', console.error);
 * const store = new PostgresDedupeStore({ pool });
 * await store.createTable();
 * const webhooks = createWebhookHandler({ secret, store, onEvent });
 */
export class PostgresDedupeStore implements DedupeStore {
  /** Time limit of one call, in milliseconds. */
  readonly commandTimeoutMs: number;
  readonly #pool: Queryable;
  readonly #statements: ReturnType<typeof buildStatements>;
  readonly #claim: (requests: readonly ClaimRequest[]) => Promise<readonly Claim[]>;
  readonly #commit: (requests: readonly CommitRequest[]) => Promise<readonly undefined[]>;
  readonly #release: (requests: readonly ReleaseRequest[]) => Promise<readonly undefined[]>;

  /**
   * @param options - see `PostgresDedupeStoreOptions`
   * @throws ConfigurationError when an option is invalid; nothing is sent yet
   */
  constructor(options: PostgresDedupeStoreOptions) {
    const { pool, table, commandTimeoutMs } = checkOptions(storeOptions, options);
    this.commandTimeoutMs = commandTimeoutMs;
    this.#pool = pool;
    // Short, because all calls that share the statement wait, and so do calls that need the connection.
    this.#statements = buildStatements(table, Math.max(1, Math.floor(commandTimeoutMs / 100)));
    this.#claim = batched(
      pool,
      commandTimeoutMs,
      (client, requests) => this.#sendClaims(client, requests),
      (client, request, error) => this.#readClaim(client, request, error),
    );
    this.#commit = batched(pool, commandTimeoutMs, (client, requests) => this.#sendCommits(client, requests));
    this.#release = batched(pool, commandTimeoutMs, (client, requests) =>
      this.#sendReleases(client, requests),
    );
    reportDriverErrors('PostgreSQL', pool);
  }

  /** Creates the table unless it exists; safe to call from several processes at once. */
  async createTable(): Promise<void> {
    await this.#pool.query(this.#statements.create);
  }

  /**
   * Deletes the events whose retention has ended. Once a day is enough; each call reads all rows, but receivers do not wait, and
   * rows that a receiver has locked are left for the next purge.
   *
   * @returns how many events were deleted
   */
  async purge(): Promise<number> {
    let purged = 0;
    let count: number;
    do {
      const rows = await retryConflicts(
        () => this.#run(this.#pool, 'purge', MAX_PURGED_AT_ONCE),
        this.commandTimeoutMs,
        systemClock.now(),
      );
      count = rows.length;
      purged += count;
    } while (count === MAX_PURGED_AT_ONCE);
    return purged;
  }

  async claim(
    ...[keys, { token, leaseMs, retainMs = 0 }]: Parameters<DedupeStore['claim']>
  ): Promise<readonly Claim[]> {
    return this.#claim(keys.map((key) => ({ key: toStoredKey(key), token, leaseMs, retainMs })));
  }

  async commit(keys: readonly string[], { retainMs }: { readonly retainMs: number }): Promise<void> {
    await this.#commit(keys.map((key) => ({ key: toStoredKey(key), retainMs })));
  }

  async release(...[keys, { token, uncounted = false }]: Parameters<DedupeStore['release']>): Promise<void> {
    await this.#release(keys.map((key) => ({ key: toStoredKey(key), token, uncounted: uncounted ? 1 : 0 })));
  }

  /**
   * A statement can claim each key only once, so only the first request for a key is sent. If this request acquires the key, later
   * requests for the key with another token get `BUSY`. If a later request is a renewal, the next statement sends it.
   */
  async #sendClaims(
    client: Queryable,
    requests: readonly ClaimRequest[],
  ): Promise<readonly (Claim | Promise<Claim>)[]> {
    const sent = new Map<string, ClaimRequest>();
    for (const request of requests) if (!sent.has(request.key)) sent.set(request.key, request);
    const columns = toColumns([...sent.values()], 'key', 'token', 'leaseMs', 'retainMs');
    const found = await this.#run(client, 'claim', ...columns, OUTLASTS_SENDER_MS);
    const rows = new Map(found.map((row) => [row.key, row]));
    return requests.map((request) => {
      const { key, token } = request;
      const row = rows.get(key);
      const claim = row === undefined ? BUSY : toClaim(row);
      if (sent.get(key)?.token === token) return claim;
      if (row?.token === token) return this.#claim([request]).then(([renewed = BUSY]) => renewed);
      return claim.status === 'acquired' ? BUSY : claim;
    });
  }

  /** Reads the state of a key whose row stayed locked. If the claim was a renewal, it has failed, but the lease is not lost. */
  async #readClaim(client: Queryable, { key, token }: ClaimRequest, error: unknown): Promise<Claim> {
    const [row] = await this.#run(client, 'read', [key]);
    if (row?.token === token) throw error;
    return row === undefined ? BUSY : toClaim(row);
  }

  async #sendCommits(client: Queryable, requests: readonly CommitRequest[]): Promise<readonly undefined[]> {
    const retainMsByKey = new Map(requests.map(({ key, retainMs }) => [key, retainMs]));
    await this.#run(client, 'commit', [...retainMsByKey.keys()], [...retainMsByKey.values()]);
    return requests.map(() => undefined);
  }

  async #sendReleases(client: Queryable, requests: readonly ReleaseRequest[]): Promise<readonly undefined[]> {
    await this.#run(client, 'release', ...toColumns(requests, 'key', 'token', 'uncounted'));
    return requests.map(() => undefined);
  }

  async #run(
    client: Queryable,
    statement: 'claim' | 'read' | 'commit' | 'release' | 'purge',
    ...values: readonly unknown[]
  ): Promise<readonly Row[]> {
    try {
      const { rows } = await client.query(this.#statements[statement], [...values]);
      // Safe cast: every driver returns a row as an object by column name unless it is asked for arrays.
      return rows as Row[];
    } catch (error) {
      if (getSqlState(error) !== UNDEFINED_TABLE) throw error;
      const advice = 'call `createTable()`, or run `inboxTableSql()` in a migration';
      throw new ConfigurationError(`The table ${this.#statements.name} does not exist; ${advice}`, {
        cause: error,
      });
    }
  }
}

/** A statement takes one list for each field. */
function toColumns<Request>(requests: readonly Request[], ...names: (keyof Request)[]): unknown[][] {
  return names.map((name) => requests.map((request) => request[name]));
}

/** PostgreSQL allows no NUL in a text and no long text in an index, so only short plain ASCII is stored as it is. */
function toStoredKey(key: string): string {
  return storableKey(key, /^[\x20-\x7e]{0,255}$/);
}

function toClaim({ attempts, done, retry_after_ms: retryAfterMs }: Row): Claim {
  if (attempts !== null) return { status: 'acquired', attempt: Number(attempts) };
  if (done === true) return { status: 'done' };
  return Number(retryAfterMs) > 0 ? { status: 'busy', retryAfterMs: Number(retryAfterMs) } : BUSY;
}
