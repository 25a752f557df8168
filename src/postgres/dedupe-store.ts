import * as z from 'zod';
import { checkOptions, type OptionShape, timeoutOption } from '../common/option-checks.ts';
import {
  batched,
  type Claim,
  DEFAULT_COMMAND_TIMEOUT_MS,
  type DedupeStore,
  OUTLASTS_SENDER_MS,
} from '../webhooks/dedupe-store.ts';
import { withTimeLimit } from '../webhooks/work.ts';
import { BUSY, InboxTable, type PurgeOptions, type Queryable, queryableOption } from './table.ts';

/** Options of {@link PostgresDedupeStore}. */
export interface PostgresDedupeStoreOptions {
  /** A `Pool` or `Client` of `pg`, a PGlite database, or anything else with `query(text, values)`. You close it yourself. */
  readonly pool: Queryable;
  /** The table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
  /** How long one statement may take, including the wait for a connection, in milliseconds. Default: 2,000. */
  readonly commandTimeoutMs?: number | undefined;
}

const storeOptions = z.strictObject({
  pool: queryableOption,
  // `InboxTable` checks the name.
  table: z.custom<string>().optional(),
  commandTimeoutMs: timeoutOption.default(DEFAULT_COMMAND_TIMEOUT_MS),
} satisfies OptionShape<PostgresDedupeStoreOptions>);

interface ClaimRequest {
  readonly key: string;
  readonly token: string;
  readonly leaseMs: number;
}

/**
 * Remembers handled webhook events in PostgreSQL, for any number of processes. Tested on versions 15 and 18.
 *
 * Create the table with `createTable()`, or with `inboxTableSql()` in your own migration, and call `purge()` regularly.
 * Methods reject with the errors of the pool; `claim`, `commit` and `release` also after `commandTimeoutMs`.
 *
 * @example
 * const store = new PostgresDedupeStore({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) });
 * await store.createTable();
 * const webhooks = createWebhookHandler({ secret, store, onEvent });
 */
export class PostgresDedupeStore implements DedupeStore {
  readonly #pool: Queryable;
  readonly #table: InboxTable;
  readonly #commandTimeoutMs: number;
  readonly #claim: (requests: readonly ClaimRequest[]) => Promise<readonly Claim[]>;
  readonly #commit: (requests: readonly [key: string, retainMs: number][]) => Promise<readonly undefined[]>;

  /**
   * @param options - see `PostgresDedupeStoreOptions`
   * @throws ConfigurationError when an option makes no sense; nothing is sent yet
   */
  constructor(options: PostgresDedupeStoreOptions) {
    const { pool, table, commandTimeoutMs } = checkOptions(storeOptions, options);
    this.#pool = pool;
    this.#table = new InboxTable(table);
    this.#commandTimeoutMs = commandTimeoutMs;
    this.#claim = batched((requests) => this.#limit(() => this.#sendClaims(requests)));
    this.#commit = batched((requests) => this.#limit(() => this.#sendCommits(requests)));
  }

  /** Creates the table unless it exists; safe to call from several processes at once. */
  async createTable(): Promise<void> {
    await this.#table.create(this.#pool);
  }

  /**
   * Deletes the events whose retention has ended. Once a day is enough; each call reads all rows, but receivers do not wait.
   *
   * @param options - `batchSize`: how many rows one statement deletes, at least 1. Default: 10,000
   * @returns how many events were deleted
   */
  async purge(options: PurgeOptions = {}): Promise<number> {
    return this.#table.purge(this.#pool, options);
  }

  async claim(
    keys: readonly string[],
    { token, leaseMs }: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    return this.#claim(keys.map((key) => ({ key, token, leaseMs })));
  }

  async commit(keys: readonly string[], { retainMs }: { readonly retainMs: number }): Promise<void> {
    await this.#commit(keys.map((key) => [key, retainMs]));
  }

  async release(keys: readonly string[], { token }: { readonly token: string }): Promise<void> {
    await this.#limit(() => this.#table.run(this.#pool, 'release', keys, token));
  }

  #limit<Result>(send: () => Promise<Result>): Promise<Result> {
    return withTimeLimit(send, this.#commandTimeoutMs);
  }

  /** A statement can claim each key only once, so only the first request for a key is sent; other tokens get `BUSY`. */
  async #sendClaims(requests: readonly ClaimRequest[]): Promise<readonly Claim[]> {
    const sent = new Map<string, ClaimRequest>();
    for (const request of requests) if (!sent.has(request.key)) sent.set(request.key, request);
    const tokens = [...sent.values()].map(({ token }) => token);
    const leases = [...sent.values()].map(({ leaseMs }) => leaseMs);
    const keys = [...sent.keys()];
    const claims = await this.#table.claim(this.#pool, keys, tokens, leases, OUTLASTS_SENDER_MS);
    return requests.map(({ key, token }) => {
      const claim = claims.get(key) ?? BUSY;
      return claim.status === 'acquired' && sent.get(key)?.token !== token ? BUSY : claim;
    });
  }

  async #sendCommits(requests: readonly [key: string, retainMs: number][]): Promise<readonly undefined[]> {
    const retainMsByKey = new Map(requests);
    await this.#table.run(this.#pool, 'commit', [...retainMsByKey.keys()], [...retainMsByKey.values()]);
    return [];
  }
}
