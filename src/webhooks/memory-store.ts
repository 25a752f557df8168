import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { systemClock } from '../common/clock.ts';
import { countOption, functionOption, type OptionShape } from '../common/option-schemas.ts';
import { TrackingError } from '../errors.ts';
import { type Claim, type DedupeStore, OUTLASTS_SENDER_MS } from './dedupe-store.ts';
import { toStoredKey } from './stored-key.ts';

/** Maximum number of keys that one call forgets. A million keys may have expired overnight. */
const MAX_FORGOTTEN_AT_ONCE = 64;

/** Options of `MemoryDedupeStore`. */
export interface MemoryDedupeStoreOptions {
  /** Maximum number of keys, at least 1. Each takes about 260 bytes. Default: 1,000,000. */
  readonly maxKeys?: number | undefined;
  /**
   * A function that returns the time in milliseconds. Default: a monotonic clock, which follows fake timers, but not those of
   * node:test; there, pass `() => Date.now()`.
   */
  readonly now?: (() => number) | undefined;
}

const storeOptions = z.strictObject({
  maxKeys: countOption(1).default(1_000_000),
  now: functionOption<() => number>().default(() => systemClock.now),
} satisfies OptionShape<MemoryDedupeStoreOptions>);

const FIRST_CLAIM: Claim = { status: 'acquired', attempt: 1 };

/** A key that is not done: leased by `token`, or released when `token` is undefined. */
interface OpenKey {
  readonly token: string | undefined;
  readonly leaseUntil: number;
  readonly attempts: number;
}

/** An open key, or the expiry of a handled key in whole seconds: V8 stores small integers without an extra object. */
type KeyState = OpenKey | number;

/**
 * Remembers handled events in this process, for tests and for a single receiver that may repeat work after a restart.
 * A full store forgets the key that was used least recently. If all keys are leased, it rejects with a `TrackingError`.
 *
 * @example
 * const webhooks = createWebhookHandler({ secret, store: new MemoryDedupeStore({ maxKeys: 100_000 }), onEvent });
 */
export class MemoryDedupeStore implements DedupeStore {
  readonly #maxKeys: number;
  readonly #now: () => number;
  readonly #keys = new RecencyMap<KeyState>();

  /**
   * @param options - `maxKeys` and `now`
   * @throws ConfigurationError when an option is invalid
   */
  constructor(options: MemoryDedupeStoreOptions = {}) {
    const { maxKeys, now } = checkOptions(storeOptions, options);
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  /** The number of remembered keys, leased ones included. */
  get size(): number {
    return this.#keys.size;
  }

  async claim(
    ...[given, { token, leaseMs, retainMs = 0 }]: Parameters<DedupeStore['claim']>
  ): Promise<readonly Claim[]> {
    const keys = given.map(toStoredKey);
    const now = this.#now();
    this.#forgetExpired(now);
    const claims = keys.map((key) => this.#find(key, token, now, retainMs));
    this.#makeRoom(keys, now);
    for (const [index, claim] of claims.entries()) {
      if (claim.status !== 'acquired') continue;
      this.#keys.set(keys[index] ?? '', { token, leaseUntil: now + leaseMs, attempts: claim.attempt });
    }
    return claims;
  }

  async commit(keys: readonly string[], { retainMs }: { readonly retainMs: number }): Promise<void> {
    const stored = keys.map(toStoredKey);
    const now = this.#now();
    this.#forgetExpired(now);
    this.#makeRoom(stored, now);
    for (const key of stored) this.#keys.set(key, toExpiry(now + retainMs));
  }

  async release(...[keys, { token, uncounted = false }]: Parameters<DedupeStore['release']>): Promise<void> {
    const now = this.#now();
    for (const key of keys.map(toStoredKey)) {
      const state = this.#keys.get(key);
      if (typeof state !== 'object' || state.token !== token) continue;
      const attempts = uncounted ? state.attempts - 1 : state.attempts;
      this.#keys.set(key, { token: undefined, leaseUntil: now, attempts });
    }
  }

  #find(key: string, token: string, now: number, retainMs: number): Claim {
    const state = this.#keys.get(key);
    if (state === undefined) return FIRST_CLAIM;
    if (isExpired(state, now)) {
      this.#keys.delete(key);
      return FIRST_CLAIM;
    }
    if (typeof state === 'number') {
      this.#keys.set(key, Math.max(state, toExpiry(now + retainMs)));
      return { status: 'done' };
    }
    this.#keys.set(key, state);
    if (state.token === token) return { status: 'acquired', attempt: state.attempts };
    if (isLeased(state, now)) return { status: 'busy', retryAfterMs: Math.ceil(state.leaseUntil - now) };
    return { status: 'acquired', attempt: state.attempts + 1 };
  }

  /** Forgets the least recently used keys until `keys` fit. Leased keys and `keys` themselves stay. */
  #makeRoom(keys: readonly string[], now: number): void {
    if (this.size + keys.length <= this.#maxKeys) return;
    const newCount = keys.filter((key) => this.#keys.get(key) === undefined).length;
    const wanted = new Set(keys);
    for (let unseen = this.size; this.size + newCount > this.#maxKeys; unseen -= 1) {
      const oldest = this.#keys.leastRecent();
      if (unseen === 0 || oldest === undefined) {
        throw new TrackingError(
          `The MemoryDedupeStore is full (\`maxKeys\` is ${this.#maxKeys}), because too many events are being handled at the same time; raise \`maxKeys\``,
        );
      }
      const [key, state] = oldest;
      this.#keys.delete(key);
      if (isLeased(state, now) || wanted.has(key)) this.#keys.set(key, state);
    }
  }

  #forgetExpired(now: number): void {
    for (let count = 0; count < MAX_FORGOTTEN_AT_ONCE; count += 1) {
      const oldest = this.#keys.leastRecent();
      if (oldest === undefined || !isExpired(oldest[1], now)) return;
      this.#keys.delete(oldest[0]);
    }
  }
}

function toExpiry(ms: number): number {
  return Math.ceil(ms / 1000);
}

function isLeased(state: KeyState, now: number): boolean {
  return typeof state === 'object' && state.token !== undefined && state.leaseUntil > now;
}

function isExpired(state: KeyState, now: number): boolean {
  return (typeof state === 'number' ? state * 1000 : state.leaseUntil + OUTLASTS_SENDER_MS) <= now;
}

/**
 * Finds the least recently used key. It keeps one iterator: a `Map` keeps an empty slot for each deleted key for a while, and a new
 * iterator would first step over all of these slots, which is slow.
 */
class RecencyMap<Value> {
  readonly #values = new Map<string, Value>();
  readonly #cursor = this.#values.entries();
  /** The entry at the cursor; undefined when the cursor must move on. */
  #leastRecent: readonly [key: string, value: Value] | undefined;

  get size(): number {
    return this.#values.size;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  /** Also makes the key the most recently used one. */
  set(key: string, value: Value): void {
    this.delete(key);
    this.#values.set(key, value);
  }

  delete(key: string): void {
    if (this.#leastRecent?.[0] === key) this.#leastRecent = undefined;
    this.#values.delete(key);
  }

  leastRecent(): readonly [key: string, value: Value] | undefined {
    // An iterator that has reached the end stays there, even if keys are added later. So do not move it while the map is empty.
    if (this.#values.size > 0) this.#leastRecent ??= this.#cursor.next().value;
    return this.#leastRecent;
  }
}
