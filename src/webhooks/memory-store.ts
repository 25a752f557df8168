import * as z from 'zod';
import { systemClock } from '../common/clock.ts';
import { checkOptions, countOption, functionOption, type OptionShape } from '../common/option-checks.ts';
import { TrackingError } from '../errors.ts';
import { type Claim, type DedupeStore, OUTLASTS_SENDER_MS } from './dedupe-store.ts';

/** Each call forgets at most this many keys, because a million keys may have expired overnight. */
const MAX_FORGOTTEN_AT_ONCE = 64;

/** Options of `MemoryDedupeStore`. */
export interface MemoryDedupeStoreOptions {
  /** Maximum number of keys to remember, at least 1; each takes about 200 bytes. Default: 1,000,000. */
  readonly maxKeys?: number;
  /** A clock in milliseconds. Default: a monotonic one, which follows fake timers; under node:test pass `() => Date.now()`. */
  readonly now?: () => number;
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

/**
 * Remembers handled events in this process, for tests and for a single receiver that may repeat work after a restart.
 * A full store forgets the handled key that was used least recently. If all keys are leased, it rejects with a `TrackingError`.
 *
 * @example
 * const webhooks = createWebhookHandler({ secret, store: new MemoryDedupeStore({ maxKeys: 100_000 }), onEvent });
 */
export class MemoryDedupeStore implements DedupeStore {
  readonly #maxKeys: number;
  readonly #now: () => number;
  readonly #open = new RecencyMap<OpenKey>();
  /** When each handled key is forgotten, in whole seconds: V8 stores small integers without an object of their own. */
  readonly #done = new RecencyMap<number>();

  /**
   * @param options - `maxKeys` and `now`
   * @throws ConfigurationError when `maxKeys` is not a whole number of at least 1
   */
  constructor(options: MemoryDedupeStoreOptions = {}) {
    const { maxKeys, now } = checkOptions(storeOptions, options);
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  /** The number of remembered keys, leased ones included. */
  get size(): number {
    return this.#open.size + this.#done.size;
  }

  async claim(
    keys: readonly string[],
    { token, leaseMs }: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    const now = this.#now();
    this.#forgetExpired(now);
    const claims = keys.map((key) => this.#find(key, token, now));
    if (this.size + keys.length > this.#maxKeys) this.#makeRoom(keys, claims, now);
    for (const [index, claim] of claims.entries()) {
      if (claim.status !== 'acquired') continue;
      this.#open.set(keys[index] ?? '', { token, leaseUntil: now + leaseMs, attempts: claim.attempt });
    }
    return claims;
  }

  async commit(keys: readonly string[], { retainMs }: { readonly retainMs: number }): Promise<void> {
    const now = this.#now();
    this.#forgetExpired(now);
    const forgetAt = Math.ceil((now + retainMs) / 1000);
    for (const key of keys) {
      const isKnown = this.#open.delete(key) || this.#done.get(key) !== undefined;
      if (!isKnown) this.#makeRoom([key], [FIRST_CLAIM], now);
      this.#done.set(key, forgetAt);
    }
  }

  async release(...[keys, { token, uncounted = false }]: Parameters<DedupeStore['release']>): Promise<void> {
    const now = this.#now();
    for (const key of keys) {
      const open = this.#open.get(key);
      if (open?.token !== token) continue;
      const attempts = uncounted ? open.attempts - 1 : open.attempts;
      this.#open.set(key, { token: undefined, leaseUntil: now, attempts });
    }
  }

  #find(key: string, token: string, now: number): Claim {
    const forgetAt = this.#done.get(key);
    if (forgetAt !== undefined) {
      if (forgetAt * 1000 > now) {
        this.#done.set(key, forgetAt);
        return { status: 'done' };
      }
      this.#done.delete(key);
    }
    const open = this.#open.get(key);
    if (open === undefined) return FIRST_CLAIM;
    if (open.token === token) return { status: 'acquired', attempt: open.attempts };
    const leftMs = open.leaseUntil - now;
    if (open.token !== undefined && leftMs > 0) return { status: 'busy', retryAfterMs: Math.ceil(leftMs) };
    return { status: 'acquired', attempt: open.attempts + 1 };
  }

  /** Forgets other keys that nobody leases, done ones first, until `keys` fit. If they cannot fit, throws and forgets none. */
  #makeRoom(keys: readonly string[], claims: readonly Claim[], now: number): void {
    const fresh = keys.filter(
      (key, index) => claims[index]?.status === 'acquired' && this.#open.get(key) === undefined,
    );
    const surplus = this.size + fresh.length - this.#maxKeys;
    // The done keys among `keys` are kept: `#find` moved them to the end, and the loop below stops before it reaches them.
    const keptCount = claims.filter(({ status }) => status === 'done').length;
    const fromDone = Math.min(surplus, this.#done.size - keptCount);
    const idle = this.#findIdleKeys(surplus - fromDone, new Set(keys), now);
    if (fromDone + idle.length < surplus) {
      throw new TrackingError(
        `Expected at most ${this.#maxKeys} keys to be worked on at once (\`maxKeys\`), got ${fresh.length} more`,
      );
    }
    for (let count = 0; count < fromDone; count += 1) this.#done.delete(this.#done.leastRecent()?.[0] ?? '');
    for (const key of idle) this.#open.delete(key);
  }

  #findIdleKeys(count: number, spared: ReadonlySet<string>, now: number): string[] {
    const idle: string[] = [];
    for (const [key, open] of this.#open) {
      if (idle.length === count) break;
      const isIdle = open.token === undefined || open.leaseUntil <= now;
      if (isIdle && !spared.has(key)) idle.push(key);
    }
    return idle;
  }

  #forgetExpired(now: number): void {
    this.#done.forgetOldest((forgetAt) => forgetAt * 1000 <= now);
    this.#open.forgetOldest(({ leaseUntil }) => leaseUntil + OUTLASTS_SENDER_MS <= now);
  }
}

/** Knows the least recently used key. A single iterator is never restarted, because a new one would first skip deleted keys. */
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

  delete(key: string): boolean {
    if (this.#leastRecent?.[0] === key) this.#leastRecent = undefined;
    return this.#values.delete(key);
  }

  leastRecent(): readonly [key: string, value: Value] | undefined {
    // Do not read an empty map, because its iterator ends for good. Else a key follows: all keys before it were deleted.
    if (this.#values.size > 0) this.#leastRecent ??= this.#cursor.next().value;
    return this.#leastRecent;
  }

  forgetOldest(isOld: (value: Value) => boolean): void {
    for (let count = 0; count < MAX_FORGOTTEN_AT_ONCE; count += 1) {
      const oldest = this.leastRecent();
      if (oldest === undefined || !isOld(oldest[1])) return;
      this.delete(oldest[0]);
    }
  }

  [Symbol.iterator](): Iterator<[key: string, value: Value]> {
    return this.#values.entries();
  }
}
