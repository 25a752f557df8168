import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { systemClock } from '../common/clock.ts';
import {
  checkOptions,
  choiceOption,
  countOption,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-checks.ts';
import type { AcquireOptions, BucketId, BucketSnapshot, Limiter, Permit } from '../limiter/limiter.ts';
import { Buckets } from '../limiter/queue.ts';
import { formatError, type Logger, resolveLogger } from '../observability/logger.ts';
import { type RedisClient, scriptRunner } from './redis-client.ts';
import { SharedBucket } from './shared-bucket.ts';

/** A bucket that nobody uses does not try Redis, so after this time its failure no longer counts. */
const FORGET_FAILURE_MS = 60_000;

/** Options of {@link RedisLimiter}. */
export interface RedisLimiterOptions {
  /** A connected client, pool, sentinel or cluster of `redis`, or a client or cluster of `ioredis`. It stays yours to close. */
  readonly redis: RedisClient;
  /** Put before every key; the same in all processes that share. Without braces. Default: `tracking-client:limiter:`. */
  readonly keyPrefix?: string | undefined;
  /**
   * How many processes share the account. Without Redis each keeps to this part of the limit, and to at least 1 request
   * per second. Default: 1, so without Redis several processes together exceed the limit.
   */
  readonly processes?: number | undefined;
  /** How long Redis may take to reply, in milliseconds, before it counts as unavailable. Default: 500. */
  readonly commandTimeoutMs?: number | undefined;
  /**
   * What happens while Redis does not reply. `local`: this process goes on with its share of the limit, see `processes`.
   * `reject`: calls reject with `ConnectionError`. Default: `local`.
   */
  readonly onUnavailable?: 'local' | 'reject' | undefined;
  /** Calls of this process that may wait for one endpoint; the next one rejects with `QueueFullError`. Default: no bound. */
  readonly maxQueue?: number | undefined;
  /** Gets one line when Redis goes away, and one when it is back. Default: `console`. */
  readonly logger?: Logger | undefined;
}

const limiterOptions = z.strictObject({
  // Checked by what looks for its methods.
  redis: z.custom<RedisClient>(),
  // In a cluster the first pair of braces decides where a key lives, and that pair must be ours.
  keyPrefix: option<string>(
    'a non-empty string without braces',
    (value) => typeof value === 'string' && /^[^{}]+$/.test(value),
  ).default('tracking-client:limiter:'),
  processes: countOption(1).default(1),
  commandTimeoutMs: timeoutOption.default(500),
  onUnavailable: choiceOption(['local', 'reject']).default('local'),
  maxQueue: countOption(0, true).default(Number.POSITIVE_INFINITY),
  logger: z.custom<Logger>().optional(),
} satisfies OptionShape<RedisLimiterOptions>);

/**
 * Shares one allowance among all processes that share a Redis (6 or newer, or a server that speaks the same), with the
 * guarantee of `TokenBucketLimiter`: at most `limit` requests fall into any window of one second.
 *
 * Processes that wait take turns, however many calls wait in each. Tokens live on the clock of Redis, so the clocks of the
 * processes do not matter, and the tokens of a process that died come back by themselves. A pause after a 429 and a limit
 * that the service announces hold for all.
 *
 * Without Redis nothing hangs: see `onUnavailable`. The first local request leaves when every token that Redis gave out is
 * surely back, about two seconds after its last reply. Configure Redis with `maxmemory-policy noeviction`: when it loses
 * its keys, requests of up to one second may be refused.
 *
 * @example
 * const redis = await createClient({ url: process.env.REDIS_URL }).connect();
 * const client = new TrackingClient({ limiter: new RedisLimiter({ redis, processes: 4 }) });
 */
export class RedisLimiter implements Limiter {
  readonly spansProcesses = true;
  readonly #buckets: Buckets<SharedBucket>;

  /**
   * @param options - `redis` is required; times are in milliseconds
   * @throws ConfigurationError if an option makes no sense; nothing is sent yet
   */
  constructor(options: RedisLimiterOptions) {
    const { redis, onUnavailable, logger, ...settings } = checkOptions(limiterOptions, options);
    const isLocalAllowed = onUnavailable === 'local';
    const shared = {
      ...settings,
      ...watchRedis(isLocalAllowed, logger),
      isLocalAllowed,
      scripts: scriptRunner(redis),
      processId: randomBytes(9).toString('base64url'),
    };
    this.#buckets = new Buckets((first) => new SharedBucket(first, shared));
  }

  /** @internal */
  acquire(options: AcquireOptions): Promise<Permit> {
    return this.#buckets.get(options).acquire(options);
  }

  /** @internal */
  snapshot(bucket: BucketId): BucketSnapshot | undefined {
    return this.#buckets.snapshot(bucket);
  }
}

/** Logs a line when the first bucket loses Redis, and one when the last has it back; shards of a cluster fail alone. */
function watchRedis(isLocalAllowed: boolean, logger: Logger | undefined) {
  const log = resolveLogger(logger, 'info');
  const effect = isLocalAllowed ? 'this process keeps to its own share of the limit' : 'calls are rejected';
  const lastFailures = new Map<SharedBucket, number>();
  return {
    onFailure(bucket: SharedBucket, error: unknown): void {
      if (lastFailures.size === 0)
        log.warn(`The rate limiter lost Redis (${formatError(error)}); until it is back ${effect}`);
      lastFailures.set(bucket, systemClock.now());
    },
    onSuccess(bucket: SharedBucket): void {
      if (lastFailures.size === 0) return;
      lastFailures.delete(bucket);
      const oldest = systemClock.now() - FORGET_FAILURE_MS;
      for (const [other, failedAt] of lastFailures) if (failedAt < oldest) lastFailures.delete(other);
      if (lastFailures.size === 0) log.info('The rate limiter has Redis back');
    },
  };
}
