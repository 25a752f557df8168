/** What a claim of one key found. */
export type Claim =
  /** The key is ours until the lease ends; `attempt` counts from 1 over all receivers. */
  | { readonly status: 'acquired'; readonly attempt: number }
  /** The key was handled before. */
  | { readonly status: 'done' }
  /** Another receiver works on the key; its lease ends in `retryAfterMs` milliseconds. */
  | { readonly status: 'busy'; readonly retryAfterMs: number };

/**
 * Remembers which webhook events were handled, for one process or many.
 * Every operation is atomic per key. Check your own store with `dedupeStoreContract` of `tracking-client/testing`.
 */
export interface DedupeStore {
  /**
   * Leases keys for a while. Claiming again with the same token renews the lease and does not count as an attempt.
   *
   * @param keys - distinct keys; the answer holds one claim a key, in the same order
   * @param options - `token` identifies the claimant; `leaseMs` is the length of the lease in milliseconds
   */
  claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]>;
  /**
   * Marks keys as done, whoever holds them, and remembers that for `retainMs` milliseconds.
   */
  commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void>;
  /** Gives keys back that are still leased by `token`; does nothing for others. */
  release(keys: readonly string[], options: { readonly token: string }): Promise<void>;
}
