import { randomUUID } from 'node:crypto';
import { sleep } from '../common/timing.ts';
import { TrackingError } from '../errors.ts';
import type { Claim } from './dedupe-store.ts';
import type { StoreInboxSettings } from './options.ts';

/** A heartbeat may come this many times late or fail before a lease ends. */
const BEATS_PER_LEASE = 3;
/** Pauses between the tries of a commit: worth some, since the work is done and an unmarked key repeats it. */
const COMMIT_PAUSES_MS = [50, 200, 800];

/**
 * Calls a callback for those of the keys that are ours. An abort of `controller` asks the callback to stop; a callback that
 * took too long may still be running, and the work then rejects with the reason of that abort.
 *
 * @param extra - what goes into the context of the callback beside the usual
 */
export type ClaimedWork<Extra> = (
  claims: ReadonlyMap<string, Claim>,
  extra: Extra,
  controller: AbortController,
) => Promise<void>;

/** What became of keys; those that are ours are done unless there is a `failure`, which holds what the work failed with. */
export interface WorkResult {
  readonly claims: ReadonlyMap<string, Claim>;
  readonly failure?: { readonly error: unknown };
}

/** How an inbox makes sure that the work of one webhook is done once: by leases of a store, or by transactions. */
export interface WorkClaims<Extra extends object> {
  /** Whether `handle` waits for what others work on; if not, it is claimed again after a pause. */
  readonly isWaiting: boolean;
  /** What is known of keys; a key without a claim may be tried. Rejects when the store fails. */
  claim(keys: readonly string[]): Promise<ReadonlyMap<string, Claim>>;
  /**
   * Does work on those of the keys that are still ours, and marks them as done. Rejects when the store fails before that.
   *
   * @param waitMs - how long to wait for what others work on
   */
  handle(keys: readonly string[], work: ClaimedWork<Extra>, waitMs: number): Promise<WorkResult>;
  /** Gives keys back whose work failed. Rejects when the store fails. */
  release(keys: readonly string[]): Promise<void>;
  /** Ends it; returns keys that are still to be given back. */
  end(): readonly string[];
}

/** The keys that one webhook leased from a `DedupeStore`: all under one token, renewed by one heartbeat. */
export class KeyLease implements WorkClaims<object> {
  readonly isWaiting = false;
  readonly #settings: StoreInboxSettings;
  readonly #token = randomUUID();
  readonly #leased = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #beat: Promise<void> | undefined;
  #working: { readonly keys: readonly string[]; readonly controller: AbortController } | undefined;

  constructor(settings: StoreInboxSettings) {
    this.#settings = settings;
  }

  /** Leases keys, or renews those that are leased already. */
  async claim(keys: readonly string[]): Promise<ReadonlyMap<string, Claim>> {
    let claims: ReadonlyMap<string, Claim>;
    try {
      claims = await this.#ask(keys);
    } catch (error) {
      // A claim may fail in part; `end` gives back what the store took all the same.
      for (const key of keys) this.#leased.add(key);
      throw error;
    }
    for (const [key, { status }] of claims) {
      if (status === 'acquired') this.#leased.add(key);
      else this.#leased.delete(key);
    }
    if (this.#leased.size > 0) this.#keepBeating();
    return claims;
  }

  async handle(keys: readonly string[], work: ClaimedWork<object>): Promise<WorkResult> {
    // Without this a slow batch outlives its lease, and its tail is handled twice with no crash at all.
    const claims = await this.claim(keys);
    const ours = keys.filter((key) => claims.get(key)?.status === 'acquired');
    if (ours.length === 0) return { claims };
    const controller = new AbortController();
    this.#working = { keys: ours, controller };
    try {
      await work(claims, {}, controller);
    } catch (error) {
      return { claims, failure: { error } };
    } finally {
      this.#working = undefined;
    }
    await this.#commit(ours);
    return { claims };
  }

  async release(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#leased.delete(key);
    // A renewal that overtakes the release would lease the keys again, with nobody working on them.
    await this.#beat;
    await this.#settings.store.release(keys, { token: this.#token });
  }

  /** Stops the heartbeat; returns what is still leased. */
  end(): readonly string[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return [...this.#leased];
  }

  /** Marks keys as done, trying again for a while; never rejects, since the work is done whatever the store says. */
  async #commit(keys: readonly string[]): Promise<void> {
    const { store, retainMs, onError } = this.#settings;
    for (const pauseMs of [...COMMIT_PAUSES_MS, undefined]) {
      try {
        await store.commit(keys, { retainMs });
        break;
      } catch (error) {
        onError(error, 'commit', keys);
        if (pauseMs !== undefined) await sleep(pauseMs);
      }
    }
    for (const key of keys) this.#leased.delete(key);
  }

  async #ask(keys: readonly string[]): Promise<ReadonlyMap<string, Claim>> {
    const { store, leaseMs } = this.#settings;
    const claims = await store.claim(keys, { token: this.#token, leaseMs });
    if (claims.length !== keys.length) {
      throw new TrackingError(
        `Expected \`store.claim\` to return ${keys.length} claims, one a key, got ${claims.length}`,
      );
    }
    const claimOf = new Map<string, Claim>();
    for (const [index, claim] of claims.entries()) claimOf.set(keys[index] ?? '', claim);
    return claimOf;
  }

  #keepBeating(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#beat = this.#renew().finally(() => {
        this.#beat = undefined;
        if (this.#leased.size > 0) this.#keepBeating();
      });
    }, this.#settings.leaseMs / BEATS_PER_LEASE);
    // Work that still goes on keeps the process alive by itself.
    this.#timer.unref?.();
  }

  async #renew(): Promise<void> {
    const keys = [...this.#leased];
    if (keys.length === 0) return;
    try {
      for (const [key, { status }] of await this.#ask(keys)) {
        if (status === 'acquired' || !this.#leased.delete(key)) continue;
        if (this.#working?.keys.includes(key) !== true) continue;
        this.#working.controller.abort(new TrackingError('Another receiver took the work over'));
      }
    } catch (error) {
      this.#settings.onError(error, 'renew', keys);
    }
  }
}
