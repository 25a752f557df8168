import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { sleep } from '../common/clock.ts';
import { type OptionShape, timeoutOption } from '../common/option-schemas.ts';
import { ConfigurationError, TrackingError } from '../errors.ts';
import { reportDriverErrors } from '../observability/logger.ts';
import {
  type Claim,
  callStore,
  DEFAULT_COMMAND_TIMEOUT_MS,
  type DedupeStore,
} from '../webhooks/dedupe-store.ts';
import { toStoredKey } from '../webhooks/stored-key.ts';
import { batched, type Send } from './batched.ts';
import { getSqlState, type Queryable, queryableOption, type Row, runStatement } from './queryable.ts';
import { buildStatements } from './table.ts';

/** One statement of a purge deletes at most this many rows, so that no transaction takes long. */
const MAX_PURGED_AT_ONCE = 10_000;
/** Pause of a commit or a release that met a locked row: other receivers lock rows for a few milliseconds. */
const LOCKED_PAUSE_MS = 250;
/** A claim waits this long for a key that another transaction has inserted and not committed. */
const INSERT_WAIT_MS = 20;
/** The parts of such a claim wait only this long, because that transaction has made the claim wait before. */
const PART_WAIT_MS = 10;
/** A claim that met an uncommitted key is sent again in this many parts. */
const PARTS = 16;
/** Another receiver usually needs less than this to insert one key of many. */
const INSERT_MS_PER_KEY = 0.1;
const LOCK_NOT_AVAILABLE = '55P03';
const UNDEFINED_TABLE = '42P01';
/** The table does not exist, a right is missing, or there is no such schema; a missing right can cause each of these errors. */
const MAY_LACK_RIGHTS = [UNDEFINED_TABLE, '42501', '3F000'];
const NO_REPLY_ADVICE =
  'set `query_timeout` of your `pg` pool, so that it replaces connections that never answer';
/** A key that another receiver holds for an unknown time. */
const BUSY: Claim = { status: 'busy', retryAfterMs: 1_000 };

/** Options of {@link PostgresDedupeStore}. */
export interface PostgresDedupeStoreOptions {
  /**
   * A `Pool` of `pg`, a PGlite database, or another object with `query(text, values)`. You close it yourself. Set
   * `query_timeout` of a `pg` pool to twice `commandTimeoutMs`, so that it replaces connections that never answer. Poolers in
   * transaction mode, such as PgBouncer, work.
   */
  readonly pool: Queryable;
  /** Name of the table, with its schema if it has one. Default: `tracking_inbox`. */
  readonly table?: string | undefined;
  /**
   * Time limit of one call, in milliseconds. A call also waits for a connection, and for the statement of the calls before it: the
   * store sends one claim at a time, and waiting calls share the next one. Commits and releases do the same. Default: 2,000.
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

/** `locked` if the lease of the claimant is neither renewed nor lost. */
type ClaimResult = Claim | 'locked';

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

/**
 * Remembers handled webhook events in PostgreSQL, for any number of processes. Tested on version 15, and on 18 as PGlite.
 *
 * Create the table with `createTable()`, or with `inboxTableSql()` in your own migration, and call `purge()` regularly. Methods
 * reject with the errors of the pool; `claim`, `commit` and `release` also after `commandTimeoutMs`. No call waits for a row that
 * another transaction has locked: a claim of an event that is not done is busy, and a renewal rejects. A commit and a release are
 * tried once more after 250 ms, and then reject. Every isolation level works. Leases and retention run on the clock of the server,
 * so fake timers do not move them.
 *
 * A new event takes two statements: a claim and a commit. A duplicate takes only the claim.
 *
 * @example
 * const config = { connectionString: process.env.DATABASE_URL, query_timeout: 4_000 };
 * const pool = new pg.Pool(config).on('error', console.error);
 * const store = new PostgresDedupeStore({ pool });
 * await store.createTable();
 * const webhooks = createWebhookHandler({ secret, store, onEvent });
 */
export class PostgresDedupeStore implements DedupeStore {
  /** Time limit of one call, in milliseconds. */
  readonly commandTimeoutMs: number;
  readonly #pool: Queryable;
  readonly #statements: ReturnType<typeof buildStatements>;
  readonly #claim: Send<ClaimRequest, ClaimResult | Promise<ClaimResult>>;
  readonly #commit: Send<CommitRequest, boolean>;
  readonly #release: Send<ReleaseRequest, boolean>;

  /**
   * @param options - see `PostgresDedupeStoreOptions`
   * @throws ConfigurationError when an option is invalid; nothing is sent yet
   */
  constructor(options: PostgresDedupeStoreOptions) {
    const { pool, table, commandTimeoutMs } = checkOptions(storeOptions, options);
    this.commandTimeoutMs = commandTimeoutMs;
    this.#pool = pool;
    this.#statements = buildStatements(table);
    this.#claim = batched(commandTimeoutMs, (requests) => this.#claimTogether(requests));
    this.#commit = batched(commandTimeoutMs, (requests) => this.#sendCommits(requests));
    this.#release = batched(commandTimeoutMs, (requests) => this.#sendReleases(requests));
    reportDriverErrors('PostgreSQL', pool);
  }

  /**
   * Creates the table unless it exists; safe to call from several processes at once. Where the table exists, the role needs no right
   * to create it.
   *
   * @throws ConfigurationError when the role lacks a right, or `pool` is not such a pool
   */
  async createTable(): Promise<void> {
    const places = await runStatement(this.#pool, this.#statements.find);
    if (places.some(isFound)) {
      const lacking = describeLacking(places.filter(isFound));
      if (lacking.includes('USAGE')) throw buildRightsError(lacking);
      return;
    }
    await this.#run('create');
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
      const rows = await this.#run('purge', MAX_PURGED_AT_ONCE);
      count = rows.length;
      purged += count;
    } while (count === MAX_PURGED_AT_ONCE);
    return purged;
  }

  async claim(
    ...[keys, { token, leaseMs, retainMs = 0 }]: Parameters<DedupeStore['claim']>
  ): Promise<readonly Claim[]> {
    const requests = keys.map((key) => ({ key: toStoredKey(key), token, leaseMs, retainMs }));
    const claims = await this.#limit(async () => Promise.all(await this.#claim(requests)));
    return claims.map((claim) => {
      if (claim === 'locked') throw buildLockedError('renew the lease of');
      return claim;
    });
  }

  async commit(keys: readonly string[], { retainMs }: { readonly retainMs: number }): Promise<void> {
    const requests = keys.map((key) => ({ key: toStoredKey(key), retainMs }));
    await this.#limit(() => sendTwice(this.#commit, requests, 'commit'));
  }

  async release(...[keys, { token, uncounted }]: Parameters<DedupeStore['release']>): Promise<void> {
    const requests = keys.map(
      (key): ReleaseRequest => ({ key: toStoredKey(key), token, uncounted: uncounted ? 1 : 0 }),
    );
    await this.#limit(() => sendTwice(this.#release, requests, 'release'));
  }

  /** If a key is uncommitted, resolves before the claims do, so that the next statement does not wait for them. */
  async #claimTogether(
    requests: readonly ClaimRequest[],
  ): Promise<readonly (ClaimResult | Promise<ClaimResult>)[]> {
    const claims = await this.#sendClaims(requests, INSERT_WAIT_MS);
    if (claims !== undefined) return claims;
    const later = this.#claimInParts(requests);
    return requests.map(async (_, index) => (await later)[index] ?? BUSY);
  }

  /** Resolves to undefined if another transaction has inserted one of the keys and does not commit within `waitMs`. */
  async #sendClaims(
    requests: readonly ClaimRequest[],
    waitMs: number,
  ): Promise<readonly ClaimResult[] | undefined> {
    let rows: readonly Row[];
    try {
      const columns = toColumns(requests, 'key', 'token', 'leaseMs');
      rows = await this.#run('claim', ...columns, String(waitMs));
    } catch (error) {
      if (getSqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      return undefined;
    }
    const states = new Map(rows.map((row) => [row['key'], row]));
    // The retention begins again only if a tenth of it has passed, so that few duplicates cost a write.
    const aging = new Map<string, number>();
    for (const { key, retainMs } of requests) {
      const known = states.get(key);
      if (known?.['state'] === 'done' && Number(known['retention']) < 0.9 * retainMs)
        aging.set(key, Math.max(retainMs, aging.get(key) ?? 0));
    }
    if (aging.size > 0) await this.#run('retain', [...aging.keys()], [...aging.values()]);
    return requests.map(({ key, token }) => toClaim(states.get(key), token));
  }

  /** Another transaction has inserted one of the keys and not committed: find it in smaller and smaller parts, and claim the others. */
  async #claimInParts(requests: readonly ClaimRequest[]): Promise<readonly ClaimResult[]> {
    if (requests.length === 1) return [BUSY];
    const size = Math.ceil(requests.length / PARTS);
    const parts: ClaimRequest[][] = [];
    for (let start = 0; start < requests.length; start += size)
      parts.push(requests.slice(start, start + size));
    const answers = await Promise.all(parts.map((part) => this.#sendClaims(part, PART_WAIT_MS)));
    const waiting = parts.filter((_, index) => answers[index] === undefined).flat();
    if (size > 1 && waiting.length > requests.length / 4) {
      // Probably another receiver is inserting the same keys. When it is done, one statement answers all.
      const waitMs = Math.max(INSERT_WAIT_MS, Math.ceil(waiting.length * INSERT_MS_PER_KEY));
      const claims = (await this.#sendClaims(waiting, waitMs))?.slice();
      if (claims !== undefined)
        return parts.flatMap((part, index) => answers[index] ?? claims.splice(0, part.length));
    }
    const claims = parts.map((part, index) => answers[index] ?? this.#claimInParts(part));
    return (await Promise.all(claims)).flat();
  }

  async #sendCommits(requests: readonly CommitRequest[]): Promise<readonly boolean[]> {
    const retainMsByKey = new Map(requests.map(({ key, retainMs }) => [key, retainMs]));
    const rows = await this.#run('commit', [...retainMsByKey.keys()], [...retainMsByKey.values()]);
    const locked = new Set(rows.map((row) => row['key']));
    return requests.map(({ key }) => locked.has(key));
  }

  async #sendReleases(requests: readonly ReleaseRequest[]): Promise<readonly boolean[]> {
    const rows = await this.#run('release', ...toColumns(requests, 'key', 'token', 'uncounted'));
    const holders = new Map(rows.map((row) => [row['key'], row['token']]));
    return requests.map(({ key, token }) => holders.get(key) === token);
  }

  async #run(
    statement: 'create' | 'claim' | 'retain' | 'commit' | 'release' | 'purge',
    ...values: readonly unknown[]
  ): Promise<readonly Row[]> {
    try {
      return await runStatement(this.#pool, this.#statements[statement], values);
    } catch (error) {
      throw MAY_LACK_RIGHTS.includes(getSqlState(error)) ? await this.#explain(error) : error;
    }
  }

  /** Tells whether the table is missing or a right. */
  async #explain(error: unknown): Promise<unknown> {
    // The look-up fails, too, if the connection is lost or the caller's transaction is aborted. Then the first error says most.
    const places = await runStatement(this.#pool, this.#statements.find).catch(() => []);
    const found = places.filter(isFound);
    if (found.length === 0 && getSqlState(error) === UNDEFINED_TABLE) {
      const advice = 'call `createTable()`, or run `inboxTableSql()` in a migration';
      return new ConfigurationError(`The table ${this.#statements.name} does not exist; ${advice}`, {
        cause: error,
      });
    }
    const lacking = describeLacking(found.length > 0 ? found : places);
    return lacking === '' ? error : buildRightsError(lacking, error);
  }

  #limit<Result>(call: () => Promise<Result>): Promise<Result> {
    return callStore(call, this.commandTimeoutMs, 'commandTimeoutMs', NO_REPLY_ADVICE);
  }
}

/** Sends the requests, and those whose row is locked once more. `send` resolves to whether the row of each request is locked. */
async function sendTwice<Request>(
  send: Send<Request, boolean>,
  requests: readonly Request[],
  verb: string,
): Promise<void> {
  const findLocked = async (sent: readonly Request[]) => {
    const isLocked = await send(sent);
    return sent.filter((_, index) => isLocked[index]);
  };
  const locked = await findLocked(requests);
  if (locked.length === 0) return;
  await sleep(LOCKED_PAUSE_MS);
  if ((await findLocked(locked)).length > 0) throw buildLockedError(verb);
}

/** A statement takes one list for each field. */
function toColumns<Request>(requests: readonly Request[], ...names: (keyof Request)[]): unknown[][] {
  return names.map((name) => requests.map((request) => request[name]));
}

/** The claim of a key by `token`. */
function toClaim(row: Row | undefined, token: string): ClaimResult {
  if (row?.['claimant'] === token) return { status: 'acquired', attempt: Number(row['attempts']) };
  if (row?.['holder'] === token) return 'locked';
  if (row?.['state'] === 'done') return { status: 'done' };
  const retryAfterMs = Number(row?.['lease']);
  return retryAfterMs > 0 ? { status: 'busy', retryAfterMs } : BUSY;
}

function isFound(place: Row): boolean {
  return place['found'] === 'yes';
}

function describeLacking(places: readonly Row[]): string {
  const texts = places.map(({ lacking }) => String(lacking));
  return texts.filter((text) => text !== '').join(', ');
}

function buildRightsError(lacking: string, cause?: unknown): ConfigurationError {
  const message = `The role of \`pool\` lacks these rights: ${lacking}`;
  return new ConfigurationError(message, cause === undefined ? {} : { cause });
}

function buildLockedError(verb: string): TrackingError {
  return new TrackingError(`Could not ${verb} an event, because another transaction has locked its row`);
}
