import { kindOf } from '../common/messages.ts';
import { isJsonObject } from '../common/parsing.ts';
import { withTimeLimit } from '../common/time-limit.ts';
import { TrackingError } from '../errors.ts';

/** The result of a claim of one key. */
export type Claim =
  /** The key belongs to the claimant until the lease ends; `attempt` counts from 1, over all receivers. */
  | { readonly status: 'acquired'; readonly attempt: number }
  /** The key was handled before. */
  | { readonly status: 'done' }
  /** Another receiver works on the key; its lease ends in `retryAfterMs` milliseconds. */
  | { readonly status: 'busy'; readonly retryAfterMs: number };

/**
 * Remembers which webhook events were handled, for one process or many. Your own store must keep these rules:
 * - Each operation is atomic for each key, over all processes that share the store.
 * - A key that is done stays done for `retainMs`. A claim with `retainMs` that finds the key done starts this time again (see
 *   `claim`), so that a key that is claimed often enough is not forgotten.
 * - A key that is neither done nor leased is remembered for seven days, so that its attempts are counted until the sender gives up
 *   (docs/service.md 8.5).
 * - An operation that rejects may have been carried out, or may still be under way. If `release` is called after that, the
 *   release must not overtake the operation.
 */
export interface DedupeStore {
  /**
   * Time limit of one call, in milliseconds, counted from the call. A store with this field must itself reject in time. If your own
   * store rejects a `claim` in time, but the claim takes effect after the `release` that follows, the keys of this claim stay busy
   * until the lease ends. For a store without this field, or with a value that is not a finite number above 0, the inbox waits at
   * most 4,500 ms for a call. If a `claim` ends later, the inbox releases its keys.
   */
  readonly commandTimeoutMs?: number | undefined;
  /**
   * Leases keys for a while. Claiming again with the same token renews the lease and does not count as an attempt. A key that is
   * done is remembered for `retainMs` from now, and never for less time than before. To save writes, a store may skip this
   * while at least nine tenths of `retainMs` are left.
   *
   * @param keys - distinct keys
   * @param options - `token` identifies the claimant; `leaseMs`: length of the lease, in milliseconds; `retainMs`: how long to
   * remember keys that are done, in milliseconds. Default: the time is not extended
   * @returns one claim per key, in the same order
   */
  claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number; readonly retainMs?: number | undefined },
  ): Promise<readonly Claim[]>;
  /**
   * Marks keys as done, whoever leases them.
   *
   * @param keys - distinct keys
   * @param options - `retainMs`: how long to remember them, in milliseconds
   */
  commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void>;
  /**
   * Releases the keys that the claimant still leases; does nothing for others.
   *
   * @param keys - distinct keys
   * @param options - `token` identifies the claimant; `uncounted: true` takes its attempt back, because no callback has failed
   */
  release(
    keys: readonly string[],
    options: { readonly token: string; readonly uncounted?: boolean | undefined },
  ): Promise<void>;
}

/** Seven days in milliseconds: the sender redelivers a push for six days (docs/service.md 8.5). */
export const OUTLASTS_SENDER_MS = 7 * 24 * 60 * 60 * 1000;

export const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;

/** A call of a store exceeded its time limit. The call goes on, because no driver can cancel it. */
export class StoreTimeoutError extends TrackingError {
  // `instanceof` compares this name, so that it also works for a class that another entry point bundles.
  static override readonly kind: string = 'StoreTimeoutError';

  readonly #call: Promise<unknown>;

  constructor(limitMs: number, call: Promise<unknown>, option?: string, advice?: string) {
    const hint = option === undefined ? '' : ` (\`${option}\`)`;
    super(
      `The store did not respond within ${limitMs} ms${hint}${advice === undefined ? '' : `; ${advice}`}`,
    );
    this.#call = call;
  }

  /** A getter, so that no log prints the promise. */
  get lateReply(): Promise<unknown> {
    return this.#call;
  }
}

/**
 * Calls a store, and rejects with a `StoreTimeoutError` when the call takes longer than `limitMs`; the error names the `option` and
 * gives the `advice`.
 */
export function callStore<Result>(
  call: () => Promise<Result>,
  limitMs: number,
  option?: string,
  advice?: string,
): Promise<Result> {
  return withTimeLimit(call, limitMs, (late) => new StoreTimeoutError(limitMs, late, option, advice));
}

/** Checks the reply of a store: a user's store may break the types, and a misread claim would lose an event. */
export function checkClaims(reply: unknown, count: number): readonly Claim[] {
  // `every` would skip holes, so turn them into `undefined`.
  const claims: unknown[] = Array.isArray(reply) ? Array.from(reply) : [];
  if (claims.length === count && claims.every(isClaim)) return claims;
  const index = claims.findIndex((claim) => !isClaim(claim));
  const got =
    claims.length === count
      ? `an invalid claim at index ${index}`
      : `${kindOf(reply)} for ${count} key${count === 1 ? '' : 's'}`;
  throw new TrackingError(
    `\`store.claim\` returned ${got}; for each key it must return { status: 'acquired', attempt: <1 or more> }, ` +
      "{ status: 'busy', retryAfterMs: <milliseconds> } or { status: 'done' }",
  );
}

function isClaim(claim: unknown): claim is Claim {
  if (!isJsonObject(claim)) return false;
  const { status, attempt, retryAfterMs } = claim;
  if (status === 'acquired') return Number.isSafeInteger(attempt) && Number(attempt) >= 1;
  if (status === 'busy') return Number.isFinite(retryAfterMs);
  return status === 'done';
}
