import * as z from 'zod';
import { checkOptions, type OptionShape, timeoutOption } from '../common/option-checks.ts';
import { reportDriverErrors } from '../observability/driver-errors.ts';
import { batched } from '../webhooks/batched.ts';
import {
  type Claim,
  DEFAULT_COMMAND_TIMEOUT_MS,
  type DedupeStore,
  OUTLASTS_SENDER_MS,
} from '../webhooks/dedupe-store.ts';
import { withConnection } from './connection.ts';
import { BUSY, InboxTable, type PurgeOptions, type Queryable, queryableOption } from './table.ts';

/** Options of {@link PostgresDedupeStore}. */
export interface PostgresDedupeStoreOptions {
  /**
   * A `Pool` or `Client` of `pg`, a PGlite database, or anything else with `query(text, values)`. You close it yourself.
   * Only a pool recovers from connections that stopped to reply, because the store lets such a pool replace them.
   */
  readonly pool: Queryable;
  /** The table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
  /** Time limit of one call, the waits for a connection and for a shared statement included, in milliseconds. Default: 2,000. */
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

interface ReleaseRequest {
  readonly key: string;
  readonly token: string;
  readonly uncounted: boolean;
}

type CommitRequest = readonly [key: string, retainMs: number];

/**
 * Remembers handled webhook events in PostgreSQL, for any number of processes. Tested on versions 15 and 18.
 *
 * Create the table with `createTable()`, or with `inboxTableSql()` in your own migration, and call `purge()` regularly.
 * Methods reject with the errors of the pool; `claim`, `commit` and `release` also after `commandTimeoutMs`.
 * Leases and retention run on the clock of the server, so fake timers do not move them.
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
  readonly #table: InboxTable;
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
    this.#table = new InboxTable(table);
    this.#claim = this.#batched((client, requests) => this.#sendClaims(client, requests));
    this.#commit = this.#batched((client, requests) => this.#sendCommits(client, requests));
    this.#release = this.#batched((client, requests) => this.#sendReleases(client, requests));
    reportDriverErrors('PostgreSQL', pool);
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

  async release(...[keys, { token, uncounted = false }]: Parameters<DedupeStore['release']>): Promise<void> {
    await this.#release(keys.map((key) => ({ key, token, uncounted })));
  }

  #batched<Request, Result>(
    send: (client: Queryable, requests: readonly Request[]) => Promise<readonly Result[]>,
  ): (requests: readonly Request[]) => Promise<readonly Result[]> {
    const limitMs = this.commandTimeoutMs;
    return batched((take) => withConnection(this.#pool, limitMs, (client) => send(client, take())), limitMs);
  }

  /** A statement can claim each key only once, so only the first request for a key is sent; other tokens get `BUSY`. */
  async #sendClaims(client: Queryable, requests: readonly ClaimRequest[]): Promise<readonly Claim[]> {
    const sent = new Map<string, ClaimRequest>();
    for (const request of requests) if (!sent.has(request.key)) sent.set(request.key, request);
    const tokens = [...sent.values()].map(({ token }) => token);
    const leases = [...sent.values()].map(({ leaseMs }) => leaseMs);
    const claims = await this.#table.claim(client, [...sent.keys()], tokens, leases, OUTLASTS_SENDER_MS);
    return requests.map(({ key, token }) => {
      const claim = claims.get(key) ?? BUSY;
      return claim.status === 'acquired' && sent.get(key)?.token !== token ? BUSY : claim;
    });
  }

  async #sendCommits(client: Queryable, requests: readonly CommitRequest[]): Promise<readonly undefined[]> {
    const retainMsByKey = new Map(requests);
    await this.#table.run(client, 'commit', [...retainMsByKey.keys()], [...retainMsByKey.values()]);
    return [];
  }

  async #sendReleases(client: Queryable, requests: readonly ReleaseRequest[]): Promise<readonly undefined[]> {
    const keys = requests.map(({ key }) => key);
    const tokens = requests.map(({ token }) => token);
    const areUncounted = requests.map(({ uncounted }) => uncounted);
    await this.#table.run(client, 'release', keys, tokens, areUncounted);
    return [];
  }
}
