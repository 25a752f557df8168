// Specification: service.md 6
import { z } from 'zod';
import { checkOptions, type OptionShape } from '../common/option-checks.ts';
import { type Claim, type DedupeStore, OUTLASTS_SENDER_MS } from '../webhooks/dedupe-store.ts';
import { InboxTable, type PurgeOptions, type Queryable, queryableOption } from './table.ts';

/** Options of {@link PostgresDedupeStore}. */
export interface PostgresDedupeStoreOptions {
  /** A `Pool` or `Client` of `pg`, a PGlite database, or anything else with `query(text, values)`. It stays yours to close. */
  readonly client: Queryable;
  /** The table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
}

const storeOptions = z.strictObject({
  client: queryableOption,
  // Checked by the table.
  table: z.custom<string>().optional(),
} satisfies OptionShape<PostgresDedupeStoreOptions>);

/**
 * Remembers handled webhook events in PostgreSQL, for any number of processes. Tested on versions 15 and 18.
 *
 * The keys of a payload are claimed, committed or released by one statement, which locks rows in the order of their keys, so
 * receivers cannot deadlock. Create the table with `createTable()`, or with `inboxTableSql()` in a migration of your own, and
 * call `purge()` now and then. Its methods reject with the client's own errors.
 *
 * @example
 * const store = new PostgresDedupeStore({ client: new pg.Pool({ connectionString: process.env.DATABASE_URL }) });
 * await store.createTable();
 * const inbox = new WebhookInbox({ store });
 */
export class PostgresDedupeStore implements DedupeStore {
  readonly #client: Queryable;
  readonly #table: InboxTable;

  /**
   * @param options - see `PostgresDedupeStoreOptions`
   * @throws ConfigurationError when an option makes no sense; nothing is sent yet
   */
  constructor(options: PostgresDedupeStoreOptions) {
    const { client, table } = checkOptions(storeOptions, options);
    this.#client = client;
    this.#table = new InboxTable(table);
  }

  /** Creates the table unless it exists; safe to call from several processes at once. */
  async createTable(): Promise<void> {
    await this.#table.create(this.#client);
  }

  /**
   * Deletes the events whose retention has ended. It reads the whole table, so once a day is enough; receivers do not wait for it.
   *
   * @param options - see `PurgeOptions`
   * @returns how many events were deleted
   * @throws ConfigurationError when an option makes no sense
   */
  async purge(options: PurgeOptions = {}): Promise<number> {
    return this.#table.purge(this.#client, options);
  }

  async claim(
    keys: readonly string[],
    { token, leaseMs }: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    const values = [token, leaseMs, Math.max(leaseMs, OUTLASTS_SENDER_MS)];
    return this.#table.take(this.#client, 'claim', keys, values, 1);
  }

  async commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void> {
    await this.#table.run(this.#client, 'commit', keys, options.retainMs);
  }

  async release(keys: readonly string[], options: { readonly token: string }): Promise<void> {
    await this.#table.run(this.#client, 'release', keys, options.token);
  }
}
