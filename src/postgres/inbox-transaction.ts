import { TrackingError } from '../errors.ts';
import { OUTLASTS_SENDER_MS } from '../webhooks/sender-schedule.ts';
import type { InboxStatements } from './inbox-statements.ts';
import { type Queryable, queryRows } from './queryable.ts';
import { inTransaction, type TransactionSource } from './transaction.ts';

/**
 * SQLSTATEs of a wait for another receiver that was given up: `lock_not_available` by `lock_timeout`, `query_canceled` by a
 * `statement_timeout` of the application that is shorter, `deadlock_detected`.
 */
const BUSY_CODES: ReadonlySet<unknown> = new Set(['55P03', '57014', '40P01']);
/** Counting a failure may not hold the answer up behind a rival that has taken the event over since. */
const COUNT_LOCK_TIMEOUT_MS = 1_000;

/** What the table says about keys; a key in none of these is new. */
export interface KnownKeys {
  readonly done: ReadonlySet<string>;
  /** Keys that a `PostgresDedupeStore` on the same table leased, and for how many milliseconds more. */
  readonly leased: ReadonlyMap<string, number>;
}

/** Which keys a transaction took, and at which attempt; the others are known already. */
export interface TakenKeys extends KnownKeys {
  readonly attempts: ReadonlyMap<string, number>;
}

/** How a transaction ended. */
export type TransactionResult =
  | { readonly status: 'committed'; readonly taken: TakenKeys }
  /** Nothing is kept; a redelivery may try again. `taken` holds what it had when the work failed. */
  | { readonly status: 'failed'; readonly taken: TakenKeys; readonly error: unknown }
  /** Another transaction works on one of the keys. */
  | { readonly status: 'busy' }
  /** The database failed before the work began. */
  | { readonly status: 'unavailable'; readonly error: unknown };

/** What is done in the transaction that took the keys. */
export type TakenWork = (transaction: Queryable, taken: TakenKeys, discard: () => void) => Promise<void>;

/** The table of events as the transactional inbox uses it; keys are in their stored form. */
export class InboxTransactions {
  readonly #source: TransactionSource;
  readonly #statements: InboxStatements;
  readonly #retainMs: number;

  constructor(source: TransactionSource, statements: InboxStatements, retainMs: number) {
    this.#source = source;
    this.#statements = statements;
    this.#retainMs = retainMs;
  }

  /** What is known about keys right now. Rejects as the client does. */
  look(keys: readonly string[]): Promise<KnownKeys> {
    return lookUp(this.#source, this.#statements.look, keys);
  }

  /**
   * Marks keys as done and does the work in the same transaction: both last, or neither. Never rejects.
   *
   * @param lockTimeoutMs - how long to wait for another transaction on the same keys, at least 1 ms
   */
  async run(keys: readonly string[], lockTimeoutMs: number, work: TakenWork): Promise<TransactionResult> {
    const reached: { taken?: TakenKeys } = {};
    try {
      const taken = await inTransaction(this.#source, async (transaction, discard) => {
        const found = await this.#take(transaction, keys, lockTimeoutMs);
        reached.taken = found;
        if (found.attempts.size > 0) {
          await work(transaction, found, discard);
          await this.#confirm(transaction, [...found.attempts.keys()]);
        }
        return found;
      });
      return { status: 'committed', taken };
    } catch (error) {
      if (reached.taken !== undefined) return { status: 'failed', taken: reached.taken, error };
      return BUSY_CODES.has(codeOf(error)) ? { status: 'busy' } : { status: 'unavailable', error };
    }
  }

  /** Counts a failed attempt, which the transaction that failed could not. Rejects as the client does. */
  async countFailure(keys: readonly string[]): Promise<void> {
    await inTransaction(this.#source, async (transaction) => {
      await setLockTimeout(transaction, `${COUNT_LOCK_TIMEOUT_MS}ms`);
      await transaction.query(this.#statements.fail, [[...keys], OUTLASTS_SENDER_MS]);
    });
  }

  async #take(transaction: Queryable, keys: readonly string[], lockTimeoutMs: number): Promise<TakenKeys> {
    const before = await setLockTimeout(transaction, `${lockTimeoutMs}ms`);
    const rows = await queryRows(transaction, this.#statements.take, [[...keys], this.#retainMs]);
    // The wait of the application's own statements is the application's to choose.
    await setLockTimeout(transaction, before);
    const attempts = new Map(rows.map((row) => [String(row['key']), Number(row['attempts'])]));
    const refused = keys.filter((key) => !attempts.has(key));
    return { attempts, ...(await lookUp(transaction, this.#statements.look, refused)) };
  }

  /**
   * A statement that failed and was caught has ended the transaction, and so has a `ROLLBACK` of the handler's own; a `COMMIT` after
   * either keeps nothing and says nothing. Without this look such an event would be reported as handled, and lost.
   */
  async #confirm(transaction: Queryable, keys: readonly string[]): Promise<void> {
    const { done } = await lookUp(transaction, this.#statements.look, keys);
    if (keys.every((key) => done.has(key))) return;
    throw new TrackingError(
      'Expected the handler to leave its transaction open, got one that it rolled back',
    );
  }
}

async function lookUp(client: Queryable, look: string, keys: readonly string[]): Promise<KnownKeys> {
  const rows = keys.length === 0 ? [] : await queryRows(client, look, [[...keys]]);
  const done = rows.filter((row) => row['done'] === true);
  const leased = rows.filter((row) => Number(row['retry_after_ms']) > 0);
  return {
    done: new Set(done.map((row) => String(row['key']))),
    leased: new Map(leased.map((row) => [String(row['key']), Number(row['retry_after_ms'])])),
  };
}

/** Sets how long a statement waits for a lock, until the transaction ends; resolves to what it was before. */
async function setLockTimeout(transaction: Queryable, value: string): Promise<string> {
  const [row] = await queryRows(
    transaction,
    `SELECT before, set_config('lock_timeout', $1::text, true) FROM current_setting('lock_timeout') AS before`,
    [value],
  );
  return String(row?.['before']);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
