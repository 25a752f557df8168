import { checkKnownOptions } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import type { Claim, DedupeStore } from '../webhooks/dedupe-store.ts';
import { hashedKey, looksHashed } from '../webhooks/hashed-key.ts';
import { OUTLASTS_SENDER_MS } from '../webhooks/sender-schedule.ts';
import { CLAIM_SCRIPT, COMMIT_SCRIPT, RELEASE_SCRIPT } from './dedupe-scripts.ts';
import { type RedisClient, type RedisScript, type ScriptRunner, scriptRunner } from './redis-client.ts';

/** Options of {@link RedisDedupeStore}. */
export interface RedisDedupeStoreOptions {
  /** A connected client, pool, sentinel or cluster of `redis`, or a client or cluster of `ioredis`. It stays yours to close. */
  readonly redis: RedisClient;
  /** Put before every key, so that several inboxes can share a Redis. Default: `tracking-client:dedupe:`. */
  readonly keyPrefix?: string | undefined;
}

/**
 * Remembers handled webhook events in Redis 5 or newer, for any number of processes. Tested on version 7.
 *
 * One script a key on the clock of Redis; a payload's keys are claimed, or committed, in one round trip. Configure Redis with
 * `maxmemory-policy noeviction`: an evicted key would be handled again. A failover can lose the last writes, which costs
 * duplicates, never events. Its methods reject with the client's own errors.
 *
 * @specification service.md 6
 * @example
 * const redis = await createClient({ url: process.env.REDIS_URL }).connect();
 * const inbox = new WebhookInbox({ store: new RedisDedupeStore({ redis }) });
 */
export class RedisDedupeStore implements DedupeStore {
  readonly #scripts: ScriptRunner;
  readonly #keyPrefix: string;

  /**
   * @param options - see `RedisDedupeStoreOptions`
   * @throws ConfigurationError when an option makes no sense; nothing is sent yet
   */
  constructor(options: RedisDedupeStoreOptions) {
    checkKnownOptions('options', options, ['redis', 'keyPrefix'] satisfies (keyof RedisDedupeStoreOptions)[]);
    const { keyPrefix = 'tracking-client:dedupe:' } = options;
    if (typeof keyPrefix !== 'string' || keyPrefix === '') {
      throw new ConfigurationError(
        `Expected \`keyPrefix\` to be a non-empty string, got ${kindOf(keyPrefix)}`,
      );
    }
    this.#scripts = scriptRunner(options.redis);
    this.#keyPrefix = keyPrefix;
  }

  async claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    const leaseMs = Math.ceil(options.leaseMs);
    const forgetMs = Math.max(leaseMs, OUTLASTS_SENDER_MS);
    const replies = await this.#runForEach(CLAIM_SCRIPT, keys, options.token, `${leaseMs}`, `${forgetMs}`);
    return replies.map(toClaim);
  }

  async commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void> {
    await this.#runForEach(COMMIT_SCRIPT, keys, `${Math.ceil(options.retainMs)}`);
  }

  async release(keys: readonly string[], options: { readonly token: string }): Promise<void> {
    await this.#runForEach(RELEASE_SCRIPT, keys, options.token);
  }

  async #runForEach(script: RedisScript, keys: readonly string[], ...input: string[]) {
    if (keys.length === 0) return [];
    const calls = keys.map((key) => ({ keys: [this.#keyPrefix + storableKey(key)], arguments: input }));
    return this.#scripts.runAll(script, calls);
  }
}

/** Redis holds any text; half a surrogate pair, which JSON allows, does not even get there unchanged. */
function storableKey(key: string): string {
  return looksHashed(key) || /\p{Surrogate}/u.test(key) ? hashedKey(key) : key;
}

function toClaim(reply: unknown): Claim {
  // Texts arrive as buffers from a client that is set to give buffers, numbers as texts from one set to give texts.
  const [status, value] = Array.isArray(reply) ? [String(reply[0]), Number(reply[1])] : [];
  if (status === 'acquired' && value !== undefined) return { status, attempt: value };
  if (status === 'busy' && value !== undefined) return { status, retryAfterMs: value };
  if (status === 'done') return { status };
  throw new TypeError(`Expected the claim script to answer with a status, got ${kindOf(reply)}`);
}
