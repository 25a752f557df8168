import * as z from 'zod';
import { checkOptions, countOption, functionOption, type OptionShape } from '../common/option-checks.ts';
import { TrackingError } from '../errors.ts';
import { type Claim, type DedupeStore, OUTLASTS_SENDER_MS } from './dedupe-store.ts';

/** Forgetting is spread over the calls, so that no call has to forget a million keys that expired overnight. */
const MAX_FORGOTTEN_AT_ONCE = 64;

/** Options of `MemoryDedupeStore`. */
export interface MemoryDedupeStoreOptions {
  /** The most keys to remember, at least 1; about 200 bytes each. Default: 1,000,000. */
  readonly maxKeys?: number;
  /** A clock in milliseconds that only goes forward. Default: `performance.now`. */
  readonly now?: () => number;
}

const storeOptions = z.strictObject({
  maxKeys: countOption(1).default(1_000_000),
  // Looked up at every call, so fake timers that a test installs later still count.
  now: functionOption<() => number>().default(() => () => performance.now()),
} satisfies OptionShape<MemoryDedupeStoreOptions>);

const FIRST_CLAIM: Claim = { status: 'acquired', attempt: 1 };

/** A key that is not done: leased by `token`, or given back when there is none. */
interface OpenKey {
  readonly token: string | undefined;
  readonly leaseUntil: number;
  readonly attempts: number;
}

/**
 * Remembers handled events in this process: for one process, tests, and receivers that may repeat work after a restart.
 * When it is full it forgets the least recently used handled key first, and never one that is being worked on.
 *
 * @example
 * const webhooks = createWebhookHandler({ secret, store: new MemoryDedupeStore({ maxKeys: 100_000 }), onEvent });
 */
export class MemoryDedupeStore implements DedupeStore {
  readonly #maxKeys: number;
  readonly #now: () => number;
  readonly #open = new RecencyMap<OpenKey>();
  /** Whole seconds on our clock at which a handled key is forgotten: small integers, which cost no memory of their own. */
  readonly #done = new RecencyMap<number>();

  /**
   * @param options - see `MemoryDedupeStoreOptions`
   * @throws ConfigurationError when `maxKeys` is not a whole number of at least 1
   */
  constructor(options: MemoryDedupeStoreOptions = {}) {
    const { maxKeys, now } = checkOptions(storeOptions, options);
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  /** How many keys are remembered, those being worked on included. */
  get size(): number {
    return this.#open.size + this.#done.size;
  }

  /**
   * Leases keys for a while, all or none.
   *
   * @param keys - distinct keys
   * @param options - `token` identifies the claimant; `leaseMs` is the length of the lease in milliseconds
   * @returns one claim a key, in the same order
   * @throws TrackingError when the store is full of keys that are being worked on
   */
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

  /**
   * Marks keys as done, whoever holds them.
   *
   * @param keys - distinct keys
   * @param options - `retainMs`: how long to remember them, in milliseconds
   * @throws TrackingError when the store is full of keys that are being worked on
   */
  async commit(keys: readonly string[], { retainMs }: { readonly retainMs: number }): Promise<void> {
    const now = this.#now();
    this.#forgetExpired(now);
    const forgetAt = Math.ceil((now + retainMs) / 1000);
    for (const key of keys) {
      // Whoever claimed it has made room for it.
      if (!this.#open.delete(key) && this.#done.get(key) === undefined)
        this.#makeRoom([key], [FIRST_CLAIM], now);
      this.#done.set(key, forgetAt);
    }
  }

  async release(keys: readonly string[], { token }: { readonly token: string }): Promise<void> {
    const now = this.#now();
    for (const key of keys) {
      const open = this.#open.get(key);
      if (open?.token !== token) continue;
      this.#open.set(key, { token: undefined, leaseUntil: now, attempts: open.attempts });
    }
  }

  /** What a claim of the key would find, without making it. */
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

  /**
   * Forgets as many old keys as the new ones need. Nothing that these claims found is forgotten for them,
   * and nothing is changed when there is not enough to forget.
   */
  #makeRoom(keys: readonly string[], claims: readonly Claim[], now: number): void {
    const fresh = keys.filter(
      (key, index) => claims[index]?.status === 'acquired' && this.#open.get(key) === undefined,
    );
    const surplus = this.size + fresh.length - this.#maxKeys;
    // Those just found done are the most recently used ones, so the least recent others come first.
    const found = claims.filter(({ status }) => status === 'done').length;
    const fromDone = Math.min(surplus, this.#done.size - found);
    const idle = this.#idleKeys(surplus - fromDone, new Set(keys), now);
    if (fromDone + idle.length < surplus) {
      throw new TrackingError(
        `Expected at most ${this.#maxKeys} keys to be worked on at once (\`maxKeys\`), got ${fresh.length} more`,
      );
    }
    for (let count = 0; count < fromDone; count += 1) this.#done.delete(this.#done.leastRecent()?.[0] ?? '');
    for (const key of idle) this.#open.delete(key);
  }

  /** Up to `count` keys that nobody works on: they failed, or their lease ran out. */
  #idleKeys(count: number, spared: ReadonlySet<string>, now: number): string[] {
    const idle: string[] = [];
    for (const [key, open] of this.#open) {
      if (idle.length === count) break;
      if (!spared.has(key) && isIdle(open, now)) idle.push(key);
    }
    return idle;
  }

  #forgetExpired(now: number): void {
    for (let count = 0; count < MAX_FORGOTTEN_AT_ONCE; count += 1) {
      const done = this.#done.leastRecent();
      if (done === undefined || done[1] * 1000 > now) break;
      this.#done.delete(done[0]);
    }
    for (let count = 0; count < MAX_FORGOTTEN_AT_ONCE; count += 1) {
      const open = this.#open.leastRecent();
      if (open === undefined || open[1].leaseUntil + OUTLASTS_SENDER_MS > now) break;
      this.#open.delete(open[0]);
    }
  }
}

function isIdle(open: OpenKey, now: number): boolean {
  return open.token === undefined || open.leaseUntil <= now;
}

/**
 * A map that knows which key was used least recently.
 * One cursor walks the keys for good: asking a `Map` for its first key again and again is slow once many were deleted.
 */
class RecencyMap<Value> {
  readonly #values = new Map<string, Value>();
  readonly #cursor = this.#values.entries();
  /** The entry at the cursor; undefined when the cursor has to move on first. */
  #leastRecent: readonly [key: string, value: Value] | undefined;

  get size(): number {
    return this.#values.size;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  /** Stores a value, and makes its key the most recently used one. */
  set(key: string, value: Value): void {
    this.delete(key);
    this.#values.set(key, value);
  }

  /** Returns whether it was there. */
  delete(key: string): boolean {
    if (this.#leastRecent?.[0] === key) this.#leastRecent = undefined;
    return this.#values.delete(key);
  }

  /** The least recently used key with its value; undefined when there is none. */
  leastRecent(): readonly [key: string, value: Value] | undefined {
    // Everything the cursor passed was deleted or put at the end: it does not run out, for good, while there is a key.
    if (this.#values.size > 0) this.#leastRecent ??= this.#cursor.next().value;
    return this.#leastRecent;
  }

  [Symbol.iterator](): Iterator<[key: string, value: Value]> {
    return this.#values.entries();
  }
}
