import * as z from 'zod';
import { ReschedulableTimer, systemClock } from '../common/clock.ts';
import { checkOptions, countOption, type OptionShape } from '../common/option-checks.ts';
import { ForeignUse } from './foreign-use.ts';
import {
  type AcquireOptions,
  type BucketId,
  type BucketSnapshot,
  computeLimit,
  computePauseMs,
  type Limiter,
  MAX_RETURN_MS,
  type Permit,
  type Priority,
  type RateLimitFeedback,
  RETURN_MS,
  reservedTokens,
  UNSENT_LEASE_MS,
} from './limiter.ts';
import { Buckets, CallQueue } from './queue.ts';

/** Options of `TokenBucketLimiter`. */
export interface TokenBucketLimiterOptions {
  /** Calls that may wait for one endpoint; the next one is rejected with `QueueFullError`. Default: no bound. */
  readonly maxQueue?: number | undefined;
}

const limiterOptions = z.strictObject({
  maxQueue: countOption(0, true).default(Number.POSITIVE_INFINITY),
} satisfies OptionShape<TokenBucketLimiterOptions>);

/**
 * Sends as fast as the service allows and never faster: at most `limit` requests fall into any window of one second,
 * in whatever way the service counts them.
 *
 * Each account has one bucket per endpoint. A used token comes back one second after the *response* arrived, because the
 * service may have counted the request at any moment before that. A 429 pauses only its own endpoint, for as long as the
 * service asks, but an hour at most. Clients of one account in one process share the allowance by sharing the limiter.
 * If responses show that others use the account as well, the limiter leaves them their part.
 *
 * @example
 * const limiter = new TokenBucketLimiter({ maxQueue: 1_000 });
 * const web = new TrackingClient({ limiter });
 * const jobs = new TrackingClient({ limiter });
 */
export class TokenBucketLimiter implements Limiter {
  readonly spansProcesses = false;
  readonly #buckets: Buckets<Bucket>;

  /**
   * @param options - all optional
   * @throws ConfigurationError if an option makes no sense
   */
  constructor(options: TokenBucketLimiterOptions = {}) {
    const { maxQueue } = checkOptions(limiterOptions, options);
    this.#buckets = new Buckets((first) => new Bucket(first, maxQueue));
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

/** A token that a call holds, and the permit to use it. Only its bucket writes to the fields. */
class Token implements Permit {
  readonly #bucket: Bucket;
  readonly tokensLeft: number;
  state: 'granted' | 'sent' | 'answered' | 'cancelled' = 'granted';
  sentAt = 0;
  freeAt: number;
  /** False until it is sent, and after a 429: the service does not count what it refuses. */
  isCounted = false;
  /** How many counted tokens had come back when this one was sent. */
  returnedBefore = 0;

  constructor(bucket: Bucket, tokensLeft: number, freeAt: number) {
    this.#bucket = bucket;
    this.tokensLeft = tokensLeft;
    this.freeAt = freeAt;
  }

  send(): void {
    this.#bucket.send(this);
  }

  report(feedback: RateLimitFeedback): void {
    this.#bucket.report(this, feedback);
  }

  cancel(): void {
    this.#bucket.cancel(this);
  }
}

/** The allowance of one endpoint for one account: who holds tokens, who waits, and when the next call may go. */
class Bucket {
  readonly #configured: { readonly limit: number; readonly maxLimit: number };
  // Each set is in the order in which its tokens come back, so only the first one needs a look.
  readonly #granted = new Set<Token>();
  readonly #sent = new Set<Token>();
  readonly #answered = new Set<Token>();
  readonly #queue: CallQueue;
  readonly #timer = new ReschedulableTimer(() => this.#grantWaiting());
  readonly #foreignUse = new ForeignUse();
  #limit: number;
  /** When the request left whose response announced the limit last. */
  #limitKnownSince = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #lastGrantAt = Number.NEGATIVE_INFINITY;

  constructor({ bucket, limit, maxLimit = Number.POSITIVE_INFINITY }: AcquireOptions, maxQueue: number) {
    this.#configured = { limit, maxLimit };
    this.#limit = Math.min(limit, maxLimit);
    const onAbort = () => this.#queue.size === 0 && this.#timer.clear();
    this.#queue = new CallQueue({ endpoint: bucket.endpoint, maxQueue, onAbort });
  }

  acquire({ priority, signal, maxPauseMs }: AcquireOptions): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const now = systemClock.now();
    this.#collect(now);
    if (this.#canGrantAtOnce(priority, now)) return Promise.resolve(this.#grant(now));
    return new Promise((resolve, reject) => {
      this.#queue.append({ priority, signal, maxPauseMs, resolve, reject }, this.#pausedUntil - now);
      // An interactive call may go before background calls that wait, so it is not in excess until this is known.
      this.#grantWaiting();
      this.#queue.rejectExcess();
    });
  }

  snapshot(): BucketSnapshot {
    const now = systemClock.now();
    this.#collect(now);
    const pauseLeftMs = this.#pausedUntil - now;
    return {
      limit: this.#limit,
      inUse: this.#inUse,
      queued: this.#queue.size,
      pausedUntil: pauseLeftMs > 0 ? Math.round(systemClock.wallNow() + pauseLeftMs) : null,
    };
  }

  /** True if forgetting the bucket changes nothing but the limit that the service announced. */
  isIdle(): boolean {
    const { limit, inUse, queued, pausedUntil } = this.snapshot();
    const isAlone = this.#foreignUse.countTokens(limit, systemClock.now(), false) === limit;
    return inUse === 0 && queued === 0 && pausedUntil === null && isAlone;
  }

  send(token: Token): void {
    if (token.state !== 'granted') return;
    const now = systemClock.now();
    this.#collect(now);
    token.state = 'sent';
    token.sentAt = now;
    token.freeAt = now + MAX_RETURN_MS;
    token.isCounted = true;
    token.returnedBefore = this.#foreignUse.noteSent();
    this.#granted.delete(token);
    // Even if its lease has ended and the bucket is full: the service will count the request.
    this.#sent.add(token);
    this.#grantWaiting();
  }

  report(token: Token, feedback: RateLimitFeedback): void {
    if (token.state !== 'sent') return;
    const now = systemClock.now();
    token.state = 'answered';
    const isOut = this.#sent.has(token) && token.freeAt > now;
    if (isOut) {
      this.#foreignUse.noteResponse(feedback, token.returnedBefore, this.#limit, now);
      token.isCounted = feedback.status !== 429;
    }
    if (isOut && now + RETURN_MS < token.freeAt) {
      token.freeAt = now + RETURN_MS;
      this.#sent.delete(token);
      this.#answered.add(token);
    }
    // Responses overtake each other, and that of an older request must not bring an older limit back.
    if (token.sentAt >= this.#limitKnownSince) {
      this.#limit = computeLimit(feedback, this.#limit, this.#configured);
      if (feedback.announcedLimit !== undefined) this.#limitKnownSince = token.sentAt;
    }
    if (feedback.status === 429) {
      this.#pausedUntil = Math.max(this.#pausedUntil, now + computePauseMs(feedback));
      this.#queue.rejectIfPauseExceeds(this.#pausedUntil - now);
    }
    this.#grantWaiting();
  }

  cancel(token: Token): void {
    if (token.state !== 'granted') return;
    token.state = 'cancelled';
    this.#granted.delete(token);
    this.#grantWaiting();
  }

  get #inUse(): number {
    return this.#granted.size + this.#sent.size + this.#answered.size;
  }

  /** Takes back every token whose time has come. */
  #collect(now: number): void {
    for (const tokens of [this.#granted, this.#sent, this.#answered]) {
      for (const token of tokens) {
        if (token.freeAt > now) break;
        tokens.delete(token);
        if (token.isCounted) this.#foreignUse.noteReturn(now);
      }
    }
  }

  /** When the pause is over, and the last grant long enough ago if others use the account. */
  get #opensAt(): number {
    const { opensAt, spacingMs } = this.#foreignUse;
    return Math.max(this.#pausedUntil, opensAt, this.#lastGrantAt + spacingMs);
  }

  /** How many tokens are free, and how many of them background calls leave. */
  #countFree(now: number): { readonly free: number; readonly reserved: number } {
    const allowed = this.#foreignUse.countTokens(this.#limit, now, this.#queue.size > 0);
    return { free: allowed - this.#inUse, reserved: reservedTokens(this.#limit) };
  }

  #canGrantAtOnce(priority: Priority, now: number): boolean {
    if (this.#queue.size > 0) return false;
    const { free, reserved } = this.#countFree(now);
    return free > (priority === 'interactive' ? 0 : reserved) && now >= this.#opensAt;
  }

  #grant(now: number): Token {
    this.#lastGrantAt = now;
    const token = new Token(this, this.#limit - this.#inUse - 1, now + UNSENT_LEASE_MS);
    this.#granted.add(token);
    return token;
  }

  /** Grants tokens to waiting calls as far as it can, and sets the timer for the next one. */
  #grantWaiting(): void {
    if (this.#queue.size === 0) return;
    const now = systemClock.now();
    this.#collect(now);
    while (now >= this.#opensAt) {
      const { free, reserved } = this.#countFree(now);
      const call = this.#queue.take(free, reserved);
      if (call === undefined) break;
      call.resolve(this.#grant(now));
    }
    this.#setTimer(now);
  }

  #setTimer(now: number): void {
    if (this.#queue.size === 0) {
      this.#timer.clear();
      return;
    }
    const { free, reserved } = this.#countFree(now);
    const hasToken = this.#queue.next(free, reserved) !== undefined;
    this.#timer.set(Math.max(hasToken ? now : this.#nextFreeAt, this.#opensAt));
  }

  /** When the next token comes back, or when others may leave more of them. */
  get #nextFreeAt(): number {
    let nextFreeAt = this.#foreignUse.changesAt;
    for (const tokens of [this.#granted, this.#sent, this.#answered]) {
      for (const { freeAt } of tokens) {
        nextFreeAt = Math.min(nextFreeAt, freeAt);
        break;
      }
    }
    return nextFreeAt;
  }
}
