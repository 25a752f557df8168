import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { readError } from '../common/foreign.ts';
import { type OptionShape, option, timeoutOption } from '../common/option-schemas.ts';
import { reportDriverErrors } from '../observability/logger.ts';
import {
  type Claim,
  callStore,
  DEFAULT_COMMAND_TIMEOUT_MS,
  type DedupeStore,
  OUTLASTS_SENDER_MS,
} from '../webhooks/dedupe-store.ts';
import { toStoredKey } from '../webhooks/stored-key.ts';
import {
  createScript,
  createScriptRunner,
  type RedisClient,
  type RedisScript,
  type RunScript,
  redisOption,
} from './redis-client.ts';

// The value of a key is `D` if the event is done, `F <attempts>` if the key was released, and `L <attempts> <end> <token>` while
// the key is leased; `<end>` is the end of the lease on the clock of Redis.

/**
 * Replies with one number for each key: the attempt if we hold the lease, 0 if the event is done, and below 0 if another receiver
 * holds the lease, e.g. -500 if that lease ends in 500 ms.
 */
const CLAIM_SCRIPT = createScript(
  `
local my_token, lease_ms, forget_ms, retain_ms = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = string.format(' %d ', now + lease_ms) .. my_token
local claims = {}
for index, key in ipairs(KEYS) do
  local attempts = 1
  if not redis.call('SET', key, 'L 1' .. lease, 'PX', forget_ms, 'NX') then
    local found = redis.call('GET', key)
    local count, leased_until, token = string.match(found, '^L (%d+) (%d+) (.*)$')
    if found == 'D' then
      attempts = 0
      local left_ms = redis.call('PTTL', key)
      if left_ms > 0 and left_ms < tonumber(retain_ms) then redis.call('PEXPIRE', key, retain_ms) end
    elseif not count then attempts = string.match(found, '^F (%d+)$') + 1
    elseif token == my_token then attempts = tonumber(count)
    elseif tonumber(leased_until) > now then attempts = now - leased_until
    else attempts = count + 1 end
    if attempts > 0 then redis.call('SET', key, string.format('L %d', attempts) .. lease, 'PX', forget_ms) end
  end
  claims[index] = attempts
end
return claims
`,
  (keyCount) => keyCount,
);

const COMMIT_SCRIPT = createScript(
  `
local retain_ms = ARGV[1]
for _, key in ipairs(KEYS) do redis.call('SET', key, 'D', 'PX', retain_ms) end
return {}
`,
  () => 0,
);

const RELEASE_SCRIPT = createScript(
  `
local my_token, forget_ms, uncounted = unpack(ARGV)
for _, key in ipairs(KEYS) do
  local count, token = string.match(redis.call('GET', key) or '', '^L (%d+) %d+ (.*)$')
  if token == my_token then redis.call('SET', key, string.format('F %d', count - uncounted), 'PX', forget_ms) end
end
return {}
`,
  () => 0,
);

/** Options of {@link RedisDedupeStore}. */
export interface RedisDedupeStoreOptions {
  /** A connected client of `redis` or `ioredis`. A pool, sentinel or cluster works, too. You close it yourself. */
  readonly redis: RedisClient;
  /**
   * Prefix of every key. With different prefixes, several inboxes can share a Redis. In a cluster, a hash tag such as `{tracking}:`
   * keeps all keys on one node. Default: `tracking-client:webhooks:`.
   */
  readonly keyPrefix?: string | undefined;
  /** Time limit of one call, in milliseconds. The Redis client's wait for a connection counts, too. Default: 2,000. */
  readonly commandTimeoutMs?: number | undefined;
}

const storeOptions = z.strictObject({
  redis: redisOption,
  keyPrefix: option<string>(
    'a non-empty string',
    (value) => typeof value === 'string' && value !== '',
  ).default('tracking-client:webhooks:'),
  commandTimeoutMs: timeoutOption.default(DEFAULT_COMMAND_TIMEOUT_MS),
} satisfies OptionShape<RedisDedupeStoreOptions>);

/**
 * Remembers handled webhook events in Redis 5 or newer, for any number of processes. Tested on version 7.
 *
 * Configure Redis with `maxmemory-policy noeviction`: the event of an evicted key would be handled again. If a failover loses the
 * last writes, events may be handled twice, but no event is lost. Methods reject with the client's errors, and when
 * `commandTimeoutMs` is over. Leases and retention run on the clock of Redis, so fake timers do not move them.
 *
 * @example
 * const redis = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect();
 * const webhooks = createWebhookHandler({ secret, store: new RedisDedupeStore({ redis }), onEvent });
 */
export class RedisDedupeStore implements DedupeStore {
  readonly #runScript: RunScript;
  readonly #keyPrefix: string;
  /** Time limit of one call, in milliseconds. */
  readonly commandTimeoutMs: number;
  #sendsKeysOneByOne = false;

  /**
   * @param options - see `RedisDedupeStoreOptions`
   * @throws ConfigurationError if an option is invalid; nothing is sent yet
   */
  constructor(options: RedisDedupeStoreOptions) {
    const { redis, keyPrefix, commandTimeoutMs } = checkOptions(storeOptions, options);
    this.#runScript = createScriptRunner(redis);
    reportDriverErrors('Redis', redis);
    this.#keyPrefix = keyPrefix;
    this.commandTimeoutMs = commandTimeoutMs;
  }

  async claim(
    ...[keys, { token, retainMs = 0, ...options }]: Parameters<DedupeStore['claim']>
  ): Promise<readonly Claim[]> {
    const leaseMs = Math.ceil(options.leaseMs);
    const forgetMs = Math.max(leaseMs, OUTLASTS_SENDER_MS);
    const values = [token, `${leaseMs}`, `${forgetMs}`, `${Math.ceil(retainMs)}`];
    const replies = await this.#run(CLAIM_SCRIPT, keys, ...values);
    return replies.map(toClaim);
  }

  async commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void> {
    await this.#run(COMMIT_SCRIPT, keys, `${Math.ceil(options.retainMs)}`);
  }

  async release(...[keys, { token, uncounted = false }]: Parameters<DedupeStore['release']>): Promise<void> {
    await this.#run(RELEASE_SCRIPT, keys, token, `${OUTLASTS_SENDER_MS}`, uncounted ? '1' : '0');
  }

  #run(script: RedisScript, keys: readonly string[], ...values: string[]): Promise<readonly number[]> {
    const stored = keys.map((key) => this.#keyPrefix + toStoredKey(key));
    return callStore(() => this.#send(script, stored, values), this.commandTimeoutMs, 'commandTimeoutMs');
  }

  #send(script: RedisScript, keys: readonly string[], values: readonly string[]): Promise<readonly number[]> {
    const parts: (readonly string[])[] = [];
    for (let from = 0; from < keys.length; from += MAX_KEYS_PER_SCRIPT) {
      parts.push(keys.slice(from, from + MAX_KEYS_PER_SCRIPT));
    }
    // Send all parts at once, so that a later release cannot overtake one of them.
    return joinReplies(parts.map((part) => this.#sendPart(script, part, values)));
  }

  async #sendPart(
    script: RedisScript,
    keys: readonly string[],
    values: readonly string[],
  ): Promise<readonly number[]> {
    try {
      if (!this.#sendsKeysOneByOne) return await this.#runScript(script, keys, values);
    } catch (error) {
      // A cluster stores these keys in different slots, so send each alone. The script has not run, so a repeat is safe.
      const hasSeveralSlots = SEVERAL_SLOTS.test(readError(error)?.message ?? '');
      if (!hasSeveralSlots || keys.length === 1) throw error;
      this.#sendsKeysOneByOne = true;
    }
    return joinReplies(keys.map((key) => this.#runScript(script, [key], values)));
  }
}

/** Redis serves no other client while a script runs, and 20,000 keys in one script take half a second. */
const MAX_KEYS_PER_SCRIPT = 500;

/** The refusal of Redis, and that of a pipeline of ioredis. */
const SEVERAL_SLOTS = /^(?:CROSSSLOT|All the keys in a pipeline command should belong to the same slot)/;

/** Waits for all scripts even if one fails, so that a release cannot overtake a claim. */
async function joinReplies(runs: readonly Promise<readonly number[]>[]): Promise<readonly number[]> {
  await Promise.allSettled(runs);
  return (await Promise.all(runs)).flat();
}

function toClaim(attempt: number): Claim {
  if (attempt > 0) return { status: 'acquired', attempt };
  if (attempt < 0) return { status: 'busy', retryAfterMs: -attempt };
  return { status: 'done' };
}
