import { checkKnownOptions } from '../common/option-checks.ts';
import type { Clock } from '../common/timing.ts';
import { AbortGroups } from './abort-groups.ts';
import { Bucket, type PendingCall } from './bucket.ts';
import { BucketRegistry } from './bucket-registry.ts';
import type { AcquireOptions, BucketId, BucketSnapshot, Limiter, Ticket } from './limiter.ts';
import { checkLimits, checkQueueSettings, checkWait, type QueueSettings } from './limiter-options.ts';

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

// Typed against the options, so an option without an entry here does not compile.
const KNOWN_OPTIONS = {
  maxQueue: true,
  maxUplinkMs: true,
  reserve: true,
  clock: true,
} satisfies Record<keyof TokenBucketLimiterOptions, true>;

/**
 * Sends as fast as the service allows and never faster: at most `limit` requests fall into any window of one second, in
 * whatever way the service counts them.
 *
 * Each account has one bucket per endpoint. A token that was used comes back one second after the *answer* arrived, since
 * the service may have counted the request at any moment before that; limiters that count from the moment of sending are
 * refused as soon as the network is uneven. A 429 pauses only its own endpoint, as long as the service asks for, but an hour
 * at most. Clients of one account in one process share the allowance by sharing the limiter.
 *
 * @specification service.md 8
 * @example
 * const limiter = new TokenBucketLimiter({ maxQueue: 1_000 });
 * const web = new TrackingClient({ limiter });
 * const jobs = new TrackingClient({ limiter });
 */
export class TokenBucketLimiter implements Limiter {
  readonly honorsDeadlines = true;
  readonly #settings: QueueSettings;
  readonly #buckets = new BucketRegistry<Bucket>();
  readonly #aborts = new AbortGroups<PendingCall>((call, reason) => call.bucket.giveUp(call, reason));

  /**
   * @param options - all optional; the times are in milliseconds
   * @throws ConfigurationError when an option makes no sense
   */
  constructor(options: TokenBucketLimiterOptions = {}) {
    checkKnownOptions('options', options, Object.keys(KNOWN_OPTIONS));
    this.#settings = checkQueueSettings(options);
  }

  /**
   * Waits for a token of one bucket.
   *
   * @param options - which bucket, its limit, the priority, and when to give up
   * @returns a ticket for one request
   * @throws QueueFullError when `maxQueue` calls wait already; TimeoutError (phase `queue`) after `maxWaitMs`; LongPauseError
   *   when the service asked for a longer pause than `maxPauseMs`; the signal's own reason on abort; ConfigurationError when one of the options makes no sense
   */
  acquire(options: AcquireOptions): Promise<Ticket> {
    // Not an async function: ten thousand waiting calls would pay for a second promise and a suspended frame each.
    return new Promise((resolve, reject) => {
      const { maxWaitMs, maxPauseMs, priority, signal } = options;
      if (signal?.aborted) return reject(signal.reason);
      checkWait(options);
      this.#bucket(options).enqueue({ priority, maxWaitMs, maxPauseMs, signal, resolve, reject });
    });
  }

  /**
   * The state of one bucket.
   *
   * @param bucket - which one
   * @returns undefined when nothing was asked of it, or nothing for so long that it was forgotten
   */
  snapshot(bucket: BucketId): BucketSnapshot | undefined {
    return this.#buckets.get(bucket)?.snapshot();
  }

  #bucket(options: AcquireOptions): Bucket {
    const { bucket: id } = options;
    const known = this.#buckets.get(id);
    if (known) return known;
    const parts = { ...this.#settings, ...checkLimits(options), name: id.endpoint, aborts: this.#aborts };
    return this.#buckets.add(id, new Bucket(parts));
  }
}
