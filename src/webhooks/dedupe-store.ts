import { createHash } from 'node:crypto';

/** What a claim of one key found. */
export type Claim =
  | {
      /** The key is ours until the lease ends. */
      readonly status: 'acquired';
      /** Counts from 1, over all receivers. */
      readonly attempt: number;
    }
  | {
      /** The key was handled before. */
      readonly status: 'done';
    }
  | {
      /** Another receiver works on the key. */
      readonly status: 'busy';
      /** When its lease ends, in milliseconds from now. */
      readonly retryAfterMs: number;
    };

/**
 * Remembers which webhook events were handled, for one process or many.
 * Every operation is atomic per key. Check your own store with `dedupeStoreContract` of `tracking-client/testing`.
 */
export interface DedupeStore {
  /**
   * Leases keys for a while. Claiming again with the same token renews the lease and does not count as an attempt.
   *
   * @param keys - distinct keys
   * @param options - `token` identifies the claimant; `leaseMs` is the length of the lease in milliseconds
   * @returns one claim a key, in the same order
   * @throws what the store fails with
   */
  claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]>;
  /**
   * Marks keys as done, whoever holds them.
   *
   * @param keys - distinct keys
   * @param options - `retainMs`: how long to remember them, in milliseconds
   * @throws what the store fails with
   */
  commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void>;
  /**
   * Gives keys back that are still leased by a claimant; does nothing for others.
   *
   * @param keys - distinct keys
   * @param options - `token` identifies the claimant
   * @throws what the store fails with
   */
  release(keys: readonly string[], options: { readonly token: string }): Promise<void>;
}

/** The sender repeats a push for six days, so whatever must outlast it is kept for seven. In milliseconds. */
export const OUTLASTS_SENDER_MS = 7 * 24 * 60 * 60 * 1000;

/** The default of `commandTimeoutMs`: how long one call of a store may take, in milliseconds. */
export const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;

const HASHED = 'sha256:';

/**
 * The key as a store can hold it: itself when it matches, else its SHA-256. Drivers send every broken surrogate as the same
 * character, which would make two keys one.
 *
 * @param storable - matches what the store holds as it is
 */
export function storableKey(key: string, storable: RegExp): string {
  // A key that looks hashed is hashed itself, or it could be taken for the hash of another one.
  if (storable.test(key) && !key.startsWith(HASHED)) return key;
  return `${HASHED}${createHash('sha256').update(key, 'utf16le').digest('hex')}`;
}
