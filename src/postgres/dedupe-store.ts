import { checkKnownOptions } from '../common/option-checks.ts';
import type { Claim, DedupeStore } from '../webhooks/dedupe-store.ts';
import { OUTLASTS_SENDER_MS } from '../webhooks/sender-schedule.ts';
import { type InboxStatements, inboxStatements } from './inbox-statements.ts';
import { createInboxTable, DEFAULT_INBOX_TABLE, type PurgeOptions, purgeInboxTable } from './inbox-table.ts';
import { type Queryable, queryRows, requireQueryable } from './queryable.ts';
import { storableKey } from './storable-key.ts';

/** Options of {@link PostgresDedupeStore}. */
export interface PostgresDedupeStoreOptions {
  /** A `Pool` or `Client` of `pg`, a PGlite database, or anything else with `query(text, values)`. It stays yours to close. */
  readonly client: Queryable;
  /** The table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
}

/**
 * Remembers handled webhook events in PostgreSQL, for any number of processes. Tested on versions 15 and 18.
 *
 * The keys of a payload are claimed, committed or released by one statement, which locks rows in the order of their keys, so
 * receivers cannot deadlock. Create the table with `createTable()`, or with `inboxTableSql()` in a migration of your own, and
 * call `purge()` now and then. Its methods reject with the client's own errors.
 *
 * @specification service.md 6
 * @example
 * const store = new PostgresDedupeStore({ client: new pg.Pool({ connectionString: process.env.DATABASE_URL }) });
 * await store.createTable();
 * const inbox = new WebhookInbox({ store });
 */
export class PostgresDedupeStore implements DedupeStore {
  readonly #client: Queryable;
  readonly #table: string;
  readonly #statements: InboxStatements;

  /**
   * @param options - see `PostgresDedupeStoreOptions`
   * @throws ConfigurationError when an option makes no sense; nothing is sent yet
   */
  constructor(options: PostgresDedupeStoreOptions) {
    checkKnownOptions('options', options, ['client', 'table'] satisfies (keyof PostgresDedupeStoreOptions)[]);
    requireQueryable(options.client);
    this.#client = options.client;
    this.#table = options.table ?? DEFAULT_INBOX_TABLE;
    this.#statements = inboxStatements(this.#table);
  }

  /** Creates the table and its index unless they exist; safe to call from several processes at once. */
  async createTable(): Promise<void> {
    await createInboxTable(this.#client, this.#table);
  }

  /**
   * Deletes the events whose retention has ended; receivers do not wait for it.
   *
   * @param options - see `PurgeOptions`
   * @returns how many events were deleted
   * @throws ConfigurationError when an option makes no sense
   */
  async purge(options: PurgeOptions = {}): Promise<number> {
    return purgeInboxTable(this.#client, this.#table, options);
  }

  async claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    const { token, leaseMs } = options;
    const stored = keys.map(storableKey);
    const claims = new Map<string, Claim>();
    const forgetMs = Math.max(leaseMs, OUTLASTS_SENDER_MS);
    for (const row of await this.#query(this.#statements.claim, stored, token, leaseMs, forgetMs)) {
      claims.set(String(row['key']), { status: 'acquired', attempt: Number(row['attempts']) });
    }
    const refused = stored.filter((key) => !claims.has(key));
    for (const row of await this.#query(this.#statements.look, refused)) {
      // A row that changed or went away between the two statements is free by now: worth asking for again at once.
      const retryAfterMs = Math.max(1, Number(row['retry_after_ms']));
      claims.set(
        String(row['key']),
        row['done'] === true ? { status: 'done' } : { status: 'busy', retryAfterMs },
      );
    }
    return stored.map((key) => claims.get(key) ?? { status: 'busy', retryAfterMs: 1 });
  }

  async commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void> {
    await this.#query(this.#statements.commit, keys.map(storableKey), options.retainMs);
  }

  async release(keys: readonly string[], options: { readonly token: string }): Promise<void> {
    await this.#query(this.#statements.release, keys.map(storableKey), options.token);
  }

  /** A key twice in one upsert is an error to PostgreSQL, so each goes in once. */
  async #query(statement: string, keys: readonly string[], ...values: unknown[]) {
    if (keys.length === 0) return [];
    return queryRows(this.#client, statement, [[...new Set(keys)], ...values]);
  }
}
