// Specification: service.md 6
import { z } from 'zod';
import { checkOptions, type OptionShape, option } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { type Claim, type DedupeStore, OUTLASTS_SENDER_MS, storableKey } from '../webhooks/dedupe-store.ts';
import {
  type RedisClient,
  type RedisScript,
  redisScript,
  type ScriptRunner,
  scriptRunner,
} from './redis-client.ts';

/*
 * One hash a key: `s` is the state (`L` leased, `F` failed, `D` done), `t` the token that holds the lease, `u` the end of the
 * lease in milliseconds of the Redis clock, `n` the number of attempts. Each script touches one key, so it runs anywhere in a
 * cluster, and reads the time from Redis, so the clocks of the receivers do not matter.
 */

/** KEYS: key. ARGV: token, lease in ms, ms after which an unfinished key is forgotten. */
const CLAIM_SCRIPT = redisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('HMGET', KEYS[1], 's', 't', 'u', 'n')
local state, token, leased_until, attempts = found[1], found[2], tonumber(found[3]), tonumber(found[4]) or 0
if state == 'D' then return {'done', 0} end
local renewed = state == 'L' and token == ARGV[1]
if state == 'L' and not renewed and leased_until > now then return {'busy', leased_until - now} end
if not renewed then attempts = attempts + 1 end
redis.call('HSET', KEYS[1], 's', 'L', 't', ARGV[1], 'u', now + tonumber(ARGV[2]), 'n', attempts)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'acquired', attempts}
`);

/** KEYS: key. ARGV: ms to remember it. */
const COMMIT_SCRIPT = redisScript(`
redis.call('HSET', KEYS[1], 's', 'D')
redis.call('HDEL', KEYS[1], 't', 'u', 'n')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`);

/** KEYS: key. ARGV: token. */
const RELEASE_SCRIPT = redisScript(`
local found = redis.call('HMGET', KEYS[1], 's', 't')
if found[1] ~= 'L' or found[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 's', 'F')
redis.call('HDEL', KEYS[1], 't', 'u')
return 1
`);

/** Options of {@link RedisDedupeStore}. */
export interface RedisDedupeStoreOptions {
  /** A connected client, pool, sentinel or cluster of `redis`, or a client or cluster of `ioredis`. It stays yours to close. */
  readonly redis: RedisClient;
  /** Put before every key, so that several inboxes can share a Redis. Default: `tracking-client:dedupe:`. */
  readonly keyPrefix?: string | undefined;
}

const storeOptions = z.strictObject({
  // Checked by what looks for its methods.
  redis: z.custom<RedisClient>(),
  keyPrefix: option<string>(
    'a non-empty string',
    (value) => typeof value === 'string' && value !== '',
  ).default('tracking-client:dedupe:'),
} satisfies OptionShape<RedisDedupeStoreOptions>);

/**
 * Remembers handled webhook events in Redis 5 or newer, for any number of processes. Tested on version 7.
 *
 * One script a key on the clock of Redis; a payload's keys are claimed, or committed, in one round trip. Configure Redis with
 * `maxmemory-policy noeviction`: an evicted key would be handled again. A failover can lose the last writes, which costs
 * duplicates, never events. Its methods reject with the client's own errors.
 *
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
    const { redis, keyPrefix } = checkOptions(storeOptions, options);
    this.#scripts = scriptRunner(redis);
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
    const calls = keys.map((key) => ({
      keys: [this.#keyPrefix + storableKey(key, STORABLE)],
      arguments: input,
    }));
    return this.#scripts.runAll(script, calls);
  }
}

/** Redis holds any text; half a surrogate pair, which JSON allows, does not even get there unchanged. */
const STORABLE = /^\P{Surrogate}*$/u;

function toClaim(reply: unknown): Claim {
  // Texts arrive as buffers from a client that is set to give buffers, numbers as texts from one set to give texts.
  const [status, value] = Array.isArray(reply) ? [String(reply[0]), Number(reply[1])] : [];
  if (status === 'acquired' && value !== undefined) return { status, attempt: value };
  if (status === 'busy' && value !== undefined) return { status, retryAfterMs: value };
  if (status === 'done') return { status };
  throw new TypeError(`Expected the claim script to answer with a status, got ${kindOf(reply)}`);
}
