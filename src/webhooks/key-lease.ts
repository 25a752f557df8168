import { randomUUID } from 'node:crypto';
import { sleep } from '../common/timing.ts';
import { TrackingError } from '../errors.ts';
import type { Claim, DedupeStore } from './dedupe-store.ts';

/** A heartbeat may come this many times late or fail before a lease ends. */
const BEATS_PER_LEASE = 3;
/** Pauses between the tries of a commit: worth some, since the work is done and an unmarked key repeats it. */
const COMMIT_PAUSES_MS = [50, 200, 800];

/** What the store was asked for when it failed. */
export type StoreOperation = 'claim' | 'renew' | 'commit' | 'release';

/** What a lease needs to know. */
export interface KeyLeaseOptions {
  readonly store: DedupeStore;
  readonly leaseMs: number;
  readonly retainMs: number;
  /** Told of every failure of the store that the lease survives. */
  readonly onStoreError: (error: unknown, operation: StoreOperation, keys: readonly string[]) => void;
  /** Told of a key that another receiver took over. */
  readonly onLost: (key: string) => void;
}

/** The keys that one call of `process` works on: all under one token, renewed by one heartbeat. */
export class KeyLease {
  readonly #options: KeyLeaseOptions;
  readonly #token = randomUUID();
  readonly #held = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #beat: Promise<void> | undefined;

  constructor(options: KeyLeaseOptions) {
    this.#options = options;
  }

  /** Claims keys, or renews those that are held; rejects as the store does. */
  async claim(keys: readonly string[]): Promise<readonly Claim[]> {
    const claims = await this.#ask(keys).catch((error: unknown) => {
      // A claim may fail in part; `end` gives back what the store took all the same.
      for (const key of keys) this.#held.add(key);
      throw error;
    });
    for (const [index, key] of keys.entries()) {
      if (claims[index]?.status === 'acquired') this.#held.add(key);
      else this.#held.delete(key);
    }
    if (this.#held.size > 0) this.#keepBeating();
    return claims;
  }

  /** Marks keys as done, trying again for a while; never rejects, since the work is done whatever the store says. */
  async commit(keys: readonly string[]): Promise<void> {
    const { store, retainMs, onStoreError } = this.#options;
    for (const pauseMs of [...COMMIT_PAUSES_MS, undefined]) {
      try {
        await store.commit(keys, { retainMs });
        break;
      } catch (error) {
        onStoreError(error, 'commit', keys);
        if (pauseMs !== undefined) await sleep(pauseMs);
      }
    }
    for (const key of keys) this.#held.delete(key);
  }

  /** Gives keys back; never rejects, since a lease that stays ends by itself. */
  async release(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#held.delete(key);
    // A renewal that overtakes the release would lease the keys again, with nobody working on them.
    await this.#beat;
    try {
      await this.#options.store.release(keys, { token: this.#token });
    } catch (error) {
      this.#options.onStoreError(error, 'release', keys);
    }
  }

  /** Stops the heartbeat and gives back whatever is still held. */
  async end(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#held.size > 0) await this.release([...this.#held]);
  }

  async #ask(keys: readonly string[]): Promise<readonly Claim[]> {
    const { store, leaseMs } = this.#options;
    const claims = await store.claim(keys, { token: this.#token, leaseMs });
    if (claims.length === keys.length) return claims;
    throw new TrackingError(
      `Expected \`store.claim\` to return ${keys.length} claims, one a key, got ${claims.length}`,
    );
  }

  #keepBeating(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#beat = this.#renew().finally(() => {
        this.#beat = undefined;
        if (this.#held.size > 0) this.#keepBeating();
      });
    }, this.#options.leaseMs / BEATS_PER_LEASE);
    // Work that still goes on keeps the process alive by itself.
    this.#timer.unref?.();
  }

  async #renew(): Promise<void> {
    const keys = [...this.#held];
    if (keys.length === 0) return;
    try {
      const claims = await this.#ask(keys);
      for (const [index, key] of keys.entries()) {
        if (claims[index]?.status === 'acquired' || !this.#held.delete(key)) continue;
        this.#options.onLost(key);
      }
    } catch (error) {
      this.#options.onStoreError(error, 'renew', keys);
    }
  }
}
