// Specification: service.md 8

import { z } from 'zod';
import { sleep } from '../common/abort.ts';
import { type Clock, isWorkerd, ReschedulableTimer } from '../common/clock.ts';
import { checkOptions, type OptionShape } from '../common/option-checks.ts';
import { TimeoutError } from '../errors.ts';
import {
  createPermit,
  isPlausibleLimit,
  newToken,
  Pace,
  pauseEnd,
  pauseMsOf,
  RESERVE_FROM_LIMIT,
  Room,
  type Token,
  TokenPool,
  WINDOW_MS,
} from './allowance.ts';
import {
  type AcquireOptions,
  type BucketId,
  type BucketSnapshot,
  checkLimits,
  type Limiter,
  type LimiterSettings,
  type Permit,
  type RateLimitFeedback,
  SETTINGS_SHAPE,
} from './limiter.ts';
import { Buckets, CallQueue, checkAsked, queueTimeout, type TokenRequest } from './queue.ts';

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

/** How often a waiting call of a Worker looks for a token. */
const LOOK_EVERY_MS = 25;

const limiterOptions = z.strictObject(SETTINGS_SHAPE satisfies OptionShape<TokenBucketLimiterOptions>);

/**
 * Sends as fast as the service allows and never faster: at most `limit` requests fall into any window of one second, in
 * whatever way the service counts them.
 *
 * Each account has one bucket per endpoint. A token that was used comes back one second after the *answer* arrived, since
 * the service may have counted the request at any moment before that; limiters that count from the moment of sending are
 * refused as soon as the network is uneven. A 429 pauses only its own endpoint, as long as the service asks for, but an hour
 * at most. Clients of one account in one process share the allowance by sharing the limiter. Where answers say that less is
 * left than our own requests explain, somebody else uses the account, and the limiter makes room.
 *
 * @example
 * const limiter = new TokenBucketLimiter({ maxQueue: 1_000 });
 * const web = new TrackingClient({ limiter });
 * const jobs = new TrackingClient({ limiter });
 */
export class TokenBucketLimiter implements Limiter {
  readonly honorsDeadlines = true;
  readonly #buckets: Buckets<Bucket>;

  /**
   * @param options - all optional; the times are in milliseconds
   * @throws ConfigurationError when an option makes no sense
   */
  constructor(options: TokenBucketLimiterOptions = {}) {
    const settings = checkOptions(limiterOptions, options);
    this.#buckets = new Buckets(
      (asked) => new Bucket({ ...settings, ...checkLimits(asked), name: asked.bucket.endpoint }),
    );
  }

  /**
   * Waits for a token of one bucket.
   *
   * @param options - which bucket, its limit, the priority, and when to give up
   * @returns a permit for one request
   * @throws QueueFullError when `maxQueue` calls wait already; TimeoutError (phase `queue`) after `maxWaitMs`; LongPauseError
   *   when the service asked for a longer pause than `maxPauseMs`; the signal's own reason on abort; ConfigurationError when one of the options makes no sense
   */
  acquire(options: AcquireOptions): Promise<Permit> {
    return isWorkerd ? this.#look(options) : this.#buckets.acquire(options);
  }

  /** For a Worker: a call looks for a token by itself, again and again, for a timer of another request may never fire. */
  async #look(options: AcquireOptions): Promise<Permit> {
    checkAsked(options);
    const { bucket, signal, maxWaitMs = Number.POSITIVE_INFINITY } = options;
    const giveUpAt = performance.now() + maxWaitMs;
    for (;;) {
      try {
        return await this.#buckets.acquire({ ...options, maxWaitMs: 0 });
      } catch (error) {
        if (!(error instanceof TimeoutError)) throw error;
      }
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0) throw queueTimeout(bucket.endpoint, maxWaitMs);
      await sleep(Math.min(LOOK_EVERY_MS, leftMs), signal);
    }
  }

  /**
   * The state of one bucket.
   *
   * @param bucket - which one
   * @returns undefined when nothing was asked of it, or nothing for so long that it was forgotten
   */
  snapshot(bucket: BucketId): BucketSnapshot | undefined {
    return this.#buckets.snapshot(bucket);
  }
}

interface BucketOptions extends LimiterSettings {
  readonly name: string;
  readonly limit: number;
  readonly maxLimit: number;
}

/** The allowance of one endpoint for one account: who holds tokens, who waits, and when the next may go. */
class Bucket {
  readonly #options: BucketOptions;
  readonly #clock: Clock;
  readonly #tokens: TokenPool;
  readonly #queue: CallQueue;
  readonly #pace = new Pace();
  readonly #room: Room;
  readonly #timer: ReschedulableTimer;
  #limit: number;
  /** When the request was sent whose answer announced the limit. */
  #limitKnownSince = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** When a window is over that others used up, as a success told. */
  #heldUntil = Number.NEGATIVE_INFINITY;
  #lastGrantAt = Number.NEGATIVE_INFINITY;

  constructor(options: BucketOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#tokens = new TokenPool(options.maxUplinkMs);
    // Nobody else can go sooner because a call gave up.
    this.#queue = new CallQueue({ ...options, onAbort: () => this.#queue.size === 0 && this.#timer.clear() });
    this.#timer = new ReschedulableTimer(options.clock, () => this.#pump());
    this.#limit = Math.min(options.limit, options.maxLimit);
    this.#room = new Room(this.#limit, options.clock.now());
  }

  /** Grants a token to the call now or later, or rejects it. */
  enqueue(request: TokenRequest): void {
    this.#queue.append(request, this.#pausedUntil - this.#clock.now());
    this.#pump();
  }

  snapshot(): BucketSnapshot {
    this.#tokens.collect(this.#clock.now());
    return {
      limit: this.#limit,
      inUse: this.#tokens.inUse,
      queued: this.#queue.size,
      pausedUntil: pauseEnd(this.#pausedUntil, this.#clock),
    };
  }

  /** True when forgetting the bucket changes nothing but the limit the service announced. */
  isIdle(): boolean {
    const { limit, inUse, queued, pausedUntil } = this.snapshot();
    const isUnused = inUse === 0 && queued === 0 && pausedUntil === null;
    const now = this.#clock.now();
    return isUnused && this.#pace.share(now) === 1 && this.#room.tokens(limit, now) === limit;
  }

  send(token: Token): void {
    this.#tokens.send(token, this.#clock.now());
    this.#pump();
  }

  report(token: Token, feedback: RateLimitFeedback): void {
    const now = this.#clock.now();
    if (!this.#tokens.report(token, now)) return;
    const { announcedLimit } = feedback;
    // Answers overtake each other; an older request's must not bring an older limit back.
    const isLatest = token.sentAt >= this.#limitKnownSince;
    if (isLatest && isPlausibleLimit(announcedLimit, this.#options.limit)) {
      this.#limitKnownSince = token.sentAt;
      this.#limit = Math.min(announcedLimit, this.#options.maxLimit);
    }
    if (feedback.status === 429) {
      this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMsOf(feedback));
      this.#queue.rejectImpatient(this.#pausedUntil - now);
    }
    this.#noteOthers(token, feedback, now);
    this.#pump();
  }

  /** Heeds what a response says of others on the account: what it leaves is compared with what our own requests explain. */
  #noteOthers(token: Token, { status, remaining, resetMs = 0 }: RateLimitFeedback, now: number): void {
    const isRefused = status === 429;
    const left = (remaining ?? this.#limit) + this.#tokens.mostCounted(token) - (isRefused ? 1 : 0);
    const isShared = left < this.#limit;
    this.#room.noteLeft(left, this.#limit, now);
    // Where responses tell of others, the tokens become fewer; what is left to do is to spread the grants.
    if (isRefused && (!isShared || this.#pace.share(now) === 1)) this.#pace.refused(token.sentAt, now);
    // A longer window than ours; a timestamp in whole seconds says two where it means one.
    if (isShared && !isRefused && remaining === 0 && resetMs > 2 * WINDOW_MS) {
      this.#heldUntil = now + Math.min(resetMs, token.maxPauseMs);
    }
    if (this.#tokens.count('sent') === 0) this.#room.noteAllAnswered(now);
  }

  cancel(token: Token): void {
    this.#tokens.cancel(token);
    this.#pump();
  }

  #pump(): void {
    const now = this.#clock.now();
    this.#tokens.collect(now);
    while (now >= this.#opensAt(now)) {
      const call = this.#queue.take(now, ...this.#free(now));
      if (!call) break;
      this.#lastGrantAt = now;
      const token = this.#tokens.grant(newToken(now, call.maxPauseMs));
      call.resolve(createPermit(this, token, this.#limit - this.#tokens.inUse));
    }
    this.#queue.rejectExpired(now);
    // Looked at last, so that a call that can go at once never counts as waiting.
    this.#queue.rejectExcess();
    this.#arm(now);
  }

  /** How many tokens are free, and how many of them background calls leave. */
  #free(now: number): [free: number, reserve: number] {
    const allowed = this.#room.tokens(this.#limit, now);
    const reserve = this.#options.reserve ?? (this.#limit >= RESERVE_FROM_LIMIT ? 1 : 0);
    // A reserve of the whole limit would shut background calls out for ever.
    return [allowed - this.#tokens.inUse, Math.min(reserve, allowed - 1)];
  }

  /** When the pause is over and the last grant long enough ago. */
  #opensAt(now: number): number {
    const spacingMs = Math.max(this.#pace.spacingMs(this.#limit, now), this.#room.spacingMs(now));
    return Math.max(this.#pausedUntil, this.#heldUntil, this.#lastGrantAt + spacingMs);
  }

  #arm(now: number): void {
    if (this.#queue.size === 0) {
      this.#timer.clear();
      return;
    }
    const { changesAt } = this.#room;
    const tokenAt = this.#queue.next(...this.#free(now)) ? now : Math.min(this.#tokens.nextFreeAt, changesAt);
    this.#timer.set(Math.min(Math.max(tokenAt, this.#opensAt(now)), this.#queue.earliestDeadline));
  }
}
