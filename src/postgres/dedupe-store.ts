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
} from '../webhooks/dedupe-store.ts';
import { toStoredKey } from '../webhooks/stored-key.ts';
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

/** A row that `read` has found. Drivers may return numbers as text. */
interface KeyState {
  readonly key: string;
  /** The token of the lease, if there is one. */
  readonly token: string | null;
  readonly state: 'free' | 'leased' | 'done';
  /** Remaining milliseconds of the lease; null if there is none. */
  readonly lease: unknown;
  /** Remaining milliseconds until the key is forgotten. */
  readonly retention: unknown;
}

/** A row that `claim` has claimed. */
interface Claimed {
  readonly key: string;
  readonly attempts: unknown;
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
 * A new event takes three statements, one after the other: a read, a claim and a commit. A duplicate takes only the read.
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
    // Keep the wait for a lock short: all calls that share the statement wait, and so do calls that need the connection.
    this.#statements = buildStatements(table, Math.max(1, Math.floor(commandTimeoutMs / 100)));
    this.#claim = batched(
      pool,
      commandTimeoutMs,
      (client, requests, hasGivenUp) => this.#sendClaims(client, requests, hasGivenUp),
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

  /** Reads the keys first, because a read locks no rows and costs much less than a claim. Most duplicates need only the read. */
  async #sendClaims(
    client: Queryable,
    requests: readonly ClaimRequest[],
    hasGivenUp: (index: number) => boolean,
  ): Promise<readonly Claim[]> {
    const states = await this.#read(client, [...new Set(requests.map(({ key }) => key))]);
    const wanted = new Map<string, ClaimRequest>();
    const aging = new Map<string, ClaimRequest>();
    for (const [index, request] of requests.entries()) {
      if (hasGivenUp(index)) continue;
      const { key, token, retainMs } = request;
      const known = states.get(key);
      const isRenewal = known?.token === token;
      const isFree = known === undefined || known.state === 'free';
      // A statement can claim each key only once. A renewal replaces other requests, so that the lease is not lost.
      if (isRenewal || (isFree && !wanted.has(key))) wanted.set(key, request);
      // The retention begins again only if a tenth of it has passed, so that few duplicates cost a write.
      else if (known?.state === 'done' && Number(known.retention) < 0.9 * retainMs)
        aging.set(key, longerRetained(request, aging.get(key)));
    }
    // Claim last: if the other statement failed afterwards, the calls would reject, although they had leases.
    await this.#retain(client, [...aging.values()]);
    const attempts = await this.#acquire(client, [...wanted.values()]);
    return requests.map(({ key, token }) => {
      const sent = wanted.get(key);
      if (sent === undefined) return toClaim(states.get(key));
      const attempt = sent.token === token ? attempts.get(key) : undefined;
      // Another receiver, or another request of this statement, has claimed the key since the read.
      return attempt === undefined ? BUSY : { status: 'acquired', attempt };
    });
  }

  /** Claims keys. Resolves to the attempt of each key that is not held by another receiver. */
  async #acquire(client: Queryable, requests: readonly ClaimRequest[]): Promise<ReadonlyMap<string, number>> {
    if (requests.length === 0) return new Map();
    const columns = toColumns(requests, 'key', 'token', 'leaseMs');
    const rows = await this.#run<Claimed>(client, 'claim', ...columns, OUTLASTS_SENDER_MS);
    return new Map(rows.map(({ key, attempts }) => [key, Number(attempts)]));
  }

  async #retain(client: Queryable, requests: readonly ClaimRequest[]): Promise<void> {
    if (requests.length > 0) await this.#run(client, 'retain', ...toColumns(requests, 'key', 'retainMs'));
  }

  /** Reads the state of a key whose row stayed locked. If the claim was a renewal, it has failed, but the lease is not lost. */
  async #readClaim(client: Queryable, { key, token }: ClaimRequest, error: unknown): Promise<Claim> {
    const known = (await this.#read(client, [key])).get(key);
    if (known?.token === token) throw error;
    return toClaim(known);
  }

  async #read(client: Queryable, keys: readonly string[]): Promise<ReadonlyMap<string, KeyState>> {
    const rows = await this.#run<KeyState>(client, 'read', keys);
    return new Map(rows.map((row) => [row.key, row]));
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

  async #run<Row>(
    client: Queryable,
    statement: 'read' | 'claim' | 'retain' | 'commit' | 'release' | 'purge',
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

function longerRetained(request: ClaimRequest, other: ClaimRequest = request): ClaimRequest {
  return other.retainMs > request.retainMs ? other : request;
}

/** The claim of a key that is not free, or whose row is locked. */
function toClaim(known: KeyState | undefined): Claim {
  if (known?.state === 'done') return { status: 'done' };
  const retryAfterMs = Number(known?.lease);
  return retryAfterMs > 0 ? { status: 'busy', retryAfterMs } : BUSY;
}
