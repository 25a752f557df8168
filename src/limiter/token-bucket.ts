import { type Clock, systemClock } from '../clock.ts';
import { ConfigurationError } from '../errors.ts';
import { kindOf } from '../validation.ts';
import { AbortGroups } from './abort-groups.ts';
import { Bucket, type BucketOptions, type PendingCall } from './bucket.ts';
import type { AcquireOptions, BucketId, BucketSnapshot, Limiter, Ticket } from './limiter.ts';

const DEFAULT_MAX_UPLINK_MS = 500;

/** With this many buckets the limiter looks for idle ones to forget, so a key that changes daily leaks nothing. */
const CLEAN_FROM_BUCKETS = 256;

/** Options of `TokenBucketLimiter`. */
export interface TokenBucketLimiterOptions {
  /** Calls that may wait for one endpoint; the next one is rejected with `QueueFullError`. Default: no bound. */
  readonly maxQueue?: number | undefined;
  /**
   * Longest time in milliseconds from sending a request to the service counting it, with name lookup, connection and
   * TLS, and while this process is busy. Too small a value provokes answers of 429; too large a one costs throughput when
   * answers are slow. Default: 500.
   */
  readonly maxUplinkMs?: number | undefined;
  /** Tokens that `background` calls leave free for `interactive` ones. Default: 1 where the limit is 10 or more, else 0. */
  readonly reserve?: number | undefined;
  /** Where the time comes from. Default: the machine's clocks. */
  readonly clock?: Clock | undefined;
}

/**
 * Sends as fast as the service allows and never faster: at most `limit` requests fall into any window of one second, in
 * whatever way the service counts them.
 *
 * Each account has one bucket per endpoint. A token that was used comes back one second after the *answer* arrived, since
 * the service may have counted the request at any moment before that; limiters that count from the moment of sending are
 * refused as soon as the network is uneven. A 429 pauses only its own endpoint. Clients of one account in one process
 * share the allowance by sharing the limiter (service.md 8).
 *
 * @example
 * const limiter = new TokenBucketLimiter({ maxQueue: 1_000 });
 * const web = new TrackingClient({ limiter });
 * const jobs = new TrackingClient({ limiter });
 */
export class TokenBucketLimiter implements Limiter {
  readonly #options: Pick<BucketOptions, 'maxQueue' | 'maxUplinkMs' | 'reserve' | 'clock'>;
  readonly #buckets = new Map<string, Bucket>();
  readonly #aborts = new AbortGroups<PendingCall>((call, reason) => call.bucket.giveUp(call, reason));
  #cleanFrom = CLEAN_FROM_BUCKETS;

  /**
   * @param options - all optional; the times are in milliseconds
   * @throws ConfigurationError when an option makes no sense
   */
  constructor(options: TokenBucketLimiterOptions = {}) {
    const { maxQueue = Number.POSITIVE_INFINITY, maxUplinkMs = DEFAULT_MAX_UPLINK_MS, reserve } = options;
    if (maxQueue !== Number.POSITIVE_INFINITY) requireWhole('maxQueue', maxQueue, 0);
    requireFinite('maxUplinkMs', maxUplinkMs);
    if (reserve !== undefined) requireWhole('reserve', reserve, 0);
    this.#options = { maxQueue, maxUplinkMs, reserve, clock: options.clock ?? systemClock };
  }

  /**
   * Waits for a token of one bucket.
   *
   * @param options - which bucket, its limit, the priority, and when to give up
   * @returns a ticket for one request
   * @throws QueueFullError when `maxQueue` calls wait already; TimeoutError (phase `queue`) after `maxWaitMs`; LongPauseError; the
   *   signal's own reason on abort; ConfigurationError when `limit`, `maxLimit` or `maxWaitMs` makes no sense
   */
  acquire(options: AcquireOptions): Promise<Ticket> {
    // Not an async function: ten thousand waiting calls would pay for a second promise and a suspended frame each.
    return new Promise((resolve, reject) => {
      const { maxWaitMs, maxPauseMs, priority, signal } = options;
      if (signal?.aborted) return reject(signal.reason);
      if (maxWaitMs !== undefined && maxWaitMs !== Number.POSITIVE_INFINITY)
        requireFinite('maxWaitMs', maxWaitMs);
      this.#bucket(options).enqueue({ priority, maxWaitMs, maxPauseMs, signal, resolve, reject });
    });
  }

  /** The state of one bucket; undefined when nothing was asked of it, or nothing for so long that it was forgotten. */
  snapshot(bucket: BucketId): BucketSnapshot | undefined {
    return this.#buckets.get(keyOf(bucket))?.snapshot();
  }

  #bucket({ bucket: id, limit, maxLimit = Number.POSITIVE_INFINITY }: AcquireOptions): Bucket {
    const key = keyOf(id);
    const known = this.#buckets.get(key);
    if (known) return known;
    requireWhole('limit', limit, 1);
    if (maxLimit !== Number.POSITIVE_INFINITY) requireWhole('maxLimit', maxLimit, 1);
    this.#forgetIdle();
    const bucket = new Bucket({ ...this.#options, name: id.endpoint, limit, maxLimit, aborts: this.#aborts });
    this.#buckets.set(key, bucket);
    return bucket;
  }

  /** Doubling the mark keeps the cost of looking constant per bucket that was made. */
  #forgetIdle(): void {
    if (this.#buckets.size < this.#cleanFrom) return;
    for (const [key, bucket] of this.#buckets) if (bucket.isIdle()) this.#buckets.delete(key);
    this.#cleanFrom = Math.max(CLEAN_FROM_BUCKETS, 2 * this.#buckets.size);
  }
}

/** One string per bucket; JSON keeps `a|b` and `c` apart from `a` and `b|c`. */
function keyOf({ baseUrl, account, endpoint }: BucketId): string {
  return JSON.stringify([baseUrl, account, endpoint]);
}

function requireWhole(name: string, value: unknown, atLeast: number): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= atLeast) return;
  throw new ConfigurationError(
    `Expected \`${name}\` to be a whole number of ${atLeast} or more, got ${shown(value)}`,
  );
}

function requireFinite(name: string, value: unknown): void {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return;
  throw new ConfigurationError(
    `Expected \`${name}\` to be a number of milliseconds of 0 or more, got ${shown(value)}`,
  );
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : kindOf(value);
}
