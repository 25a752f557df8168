// Specification: service.md 8

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import {
  checkOptions,
  choiceOption,
  countOption,
  functionOption,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-checks.ts';
import type { BucketId, BucketSnapshot, Limiter, Permit } from '../limiter/limiter.ts';
import { type LogAdapter, type Logger, resolveLogger } from '../observability/logger.ts';
import { type AcquireOptions, Buckets, type Clock, checkLimits, SETTINGS_SHAPE } from './old-allowance.ts';
import { type RedisClient, scriptRunner } from './redis-client.ts';
import { SharedBucket } from './shared-bucket.ts';

/** What a limiter does without Redis: go on with this process's share of the limit, or reject. */
export type UnavailablePolicy = 'local' | 'reject';

/** Redis is gone, or answers again. */
export interface FallbackInfo {
  /** Which of the two. */
  readonly state: 'unavailable' | 'recovered';
  /** What the limiter does meanwhile. */
  readonly policy: UnavailablePolicy;
  /** What went wrong; undefined once recovered. */
  readonly error: unknown;
}

/** Options of {@link RedisLimiter}. */
export interface RedisLimiterOptions {
  /** A connected client, pool, sentinel or cluster of `redis`, or a client or cluster of `ioredis`. It stays yours to close. */
  readonly redis: RedisClient;
  /** Put before every key; the same in all processes that share. Without braces. Default: `tracking-client:limiter:`. */
  readonly keyPrefix?: string | undefined;
  /**
   * What happens while Redis does not answer. `local`: this process goes on by itself with its share of the limit, see
   * `processes`. `reject`: calls reject with `ConnectionError`. Default: `local`.
   */
  readonly onUnavailable?: UnavailablePolicy | undefined;
  /**
   * How many processes share the account. Without Redis each keeps to this part of the limit, and to at least 1 request
   * per second. Default: 1, so without Redis several processes together would exceed the limit.
   */
  readonly processes?: number | undefined;
  /** Calls of this process that may wait for one endpoint; the next one rejects with `QueueFullError`. Default: no bound. */
  readonly maxQueue?: number | undefined;
  /** Longest time in milliseconds from sending a request to the service counting it. Default: 500. */
  readonly maxUplinkMs?: number | undefined;
  /** Tokens that `background` calls leave free for `interactive` ones. Default: 1 where the limit is 10 or more, else 0. */
  readonly reserve?: number | undefined;
  /** How long Redis may take to answer, in milliseconds, before it counts as unavailable. Default: 500. */
  readonly commandTimeoutMs?: number | undefined;
  /** Told once when Redis is gone, and once when it is back. Default: `console`. */
  readonly logger?: Logger | undefined;
  /** Called once when Redis is gone, and once when it is back. A failure of it is logged and ignored. */
  readonly onFallback?: ((info: FallbackInfo) => void) | undefined;
  /** Where this process's time comes from; tokens live on the clock of Redis. Default: the machine's clocks. */
  readonly clock?: Clock | undefined;
}

const limiterOptions = z.strictObject({
  ...SETTINGS_SHAPE,
  redis: z.custom<RedisClient>(),
  // In a cluster the first pair of braces decides where a key lives, and that pair must be ours.
  keyPrefix: option<string>(
    'a non-empty string without braces',
    (value) => typeof value === 'string' && /^[^{}]+$/.test(value),
  ).default('tracking-client:limiter:'),
  onUnavailable: choiceOption(['local', 'reject']).default('local'),
  processes: countOption(1).default(1),
  commandTimeoutMs: timeoutOption.default(500),
  logger: z.custom<Logger>().optional(),
  onFallback: functionOption<NonNullable<RedisLimiterOptions['onFallback']>>().optional(),
} satisfies OptionShape<RedisLimiterOptions>);

/**
 * Shares one allowance among all processes that share a Redis (6 or newer, or a server that speaks the same), with the
 * guarantee of `TokenBucketLimiter`: at most `limit` requests fall into any window of one second.
 *
 * Processes that wait take turns, whatever number of calls waits in each; calls of one process go in their order, by
 * priority. Tokens live on the clock of Redis, so the clocks of the processes do not matter, and those of a process that
 * died come back by themselves. A pause after a 429, of an hour at most, and a limit that the service announces hold for all.
 *
 * Without Redis nothing hangs: see `onUnavailable`. The first local request leaves when every token that Redis gave out is
 * surely back, about 1.7 seconds after the last answer of Redis.
 *
 * @example
 * const redis = await createClient({ url: process.env.REDIS_URL }).connect();
 * const client = new TrackingClient({ limiter: new RedisLimiter({ redis, processes: 4 }) });
 */
export class RedisLimiter implements Limiter {
  readonly spansProcesses = true;
  readonly #buckets: Buckets<SharedBucket>;

  /**
   * @param options - `redis` is required; the times are in milliseconds
   * @throws ConfigurationError when an option makes no sense; nothing is sent yet
   */
  constructor(options: RedisLimiterOptions) {
    const { redis, onUnavailable, onFallback, commandTimeoutMs, logger, ...settings } = checkOptions(
      limiterOptions,
      options,
    );
    const shared = {
      ...settings,
      scripts: scriptRunner(redis),
      processId: randomBytes(9).toString('base64url'),
      timeoutMs: commandTimeoutMs,
      isLocalAllowed: onUnavailable === 'local',
      availability: watchAvailability(onUnavailable, resolveLogger(logger, 'info'), onFallback),
    };
    this.#buckets = new Buckets(
      (asked) => new SharedBucket({ ...shared, ...checkLimits(asked), bucket: asked.bucket }),
    );
  }

  /**
   * Waits for a token of one bucket.
   *
   * @param options - which bucket, its limit, the priority, and when to give up
   * @returns a permit for one request
   * @throws QueueFullError when `maxQueue` calls wait already; TimeoutError (phase `queue`) after `maxWaitMs`; the
   *   signal's own reason on abort; LongPauseError; ConnectionError without Redis and with `onUnavailable: 'reject'`;
   *   ConfigurationError when one of the options makes no sense
   */
  acquire(options: AcquireOptions): Promise<Permit> {
    return this.#buckets.acquire(options);
  }

  /**
   * The state of one bucket as this process knows it: its own tokens and calls, and the limit and the pause that Redis
   * last told.
   *
   * @param bucket - which one
   * @returns undefined when this process asked nothing of it, or nothing for so long that it was forgotten
   */
  snapshot(bucket: BucketId): BucketSnapshot | undefined {
    return this.#buckets.snapshot(bucket);
  }
}

/** Notifies the logger and the hook once when Redis is gone, and once when it is back. */
function watchAvailability(
  policy: UnavailablePolicy,
  logger: LogAdapter,
  hook: ((info: FallbackInfo) => void) | undefined,
) {
  let isGone = false;
  const notify = (info: FallbackInfo) => {
    const onFailure = () => logger.warn('The hook `onFallback` failed; the limiter goes on');
    try {
      const returned: unknown = hook?.(info);
      if (returned instanceof Promise) returned.catch(onFailure);
    } catch {
      onFailure();
    }
  };
  return {
    failed(error: unknown): void {
      if (isGone) return;
      isGone = true;
      const reason = error instanceof Error ? error.message : String(error);
      const effect =
        policy === 'local' ? 'this process keeps to its own share of the limit' : 'calls are rejected';
      logger.warn(`The rate limiter lost Redis (${reason}); until it is back ${effect}`);
      notify({ state: 'unavailable', policy, error });
    },
    succeeded(): void {
      if (!isGone) return;
      isGone = false;
      logger.info('The rate limiter has Redis back');
      notify({ state: 'recovered', policy, error: undefined });
    },
  };
}
