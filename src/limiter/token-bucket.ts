import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { ReschedulableTimer, systemClock } from '../common/clock.ts';
import { ForeignUse } from './foreign-use.ts';
import {
  type AcquireOptions,
  AnnouncedLimit,
  type BucketId,
  type BucketSnapshot,
  Buckets,
  buildSnapshot,
  type ConfiguredLimit,
  computePauseMs,
  LIMITER_SHAPE,
  type Limiter,
  type LimiterOptions,
  markCancelled,
  markReported,
  markSent,
  type Permit,
  type Priority,
  type RateLimitFeedback,
  reservedTokens,
  type TokenState,
} from './limiter.ts';
import { CallQueue } from './queue.ts';

const limiterOptions = z.strictObject(LIMITER_SHAPE);

/**
 * Lets requests leave as fast as the service allows (docs/service.md 6.1), never faster. Clients of one account in one process
 * share the rate limits by sharing the limiter. If responses show that others use the account, too, the limiter leaves
 * a part of the limit to them.
 *
 * A used token comes back one second after the *response* arrived, because the service may have counted the request at any
 * moment until then. A 429 pauses only its own endpoint (6.3), for an hour at most.
 *
 * @example
 * const limiter = new TokenBucketLimiter({ maxQueue: 1_000 });
 * const web = new TrackingClient({ limiter });
 * const jobs = new TrackingClient({ limiter });
 */
export class TokenBucketLimiter implements Limiter {
  readonly spansProcesses = false;
  readonly maxQueue: number;
  readonly #buckets: Buckets<Bucket>;

  /**
   * @param options - all optional
   * @throws ConfigurationError if an option is invalid
   */
  constructor(options: LimiterOptions = {}) {
    const { limits, maxQueue } = checkOptions(limiterOptions, options);
    this.maxQueue = maxQueue;
    this.#buckets = new Buckets(limits, (id, configured) => new Bucket(id, configured, maxQueue));
  }

  /** @internal */
  acquire(options: AcquireOptions): Promise<Permit> {
    return this.#buckets.get(options.bucket).acquire(options);
  }

  /** @internal */
  snapshot(bucket: BucketId): BucketSnapshot {
    return this.#buckets.snapshot(bucket);
  }
}

interface Token extends TokenState {
  isCounted: boolean;
  returnedBefore: number;
}

class Bucket {
  // Each set is in the order in which its tokens come back, so a search can stop at the first token that is still out.
  readonly #granted = new Set<Token>();
  readonly #sent = new Set<Token>();
  readonly #reported = new Set<Token>();
  readonly #queue: CallQueue;
  readonly #timer = new ReschedulableTimer(() => this.#grantWaiting());
  readonly #foreignUse = new ForeignUse();
  readonly #limit: AnnouncedLimit;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #lastGrantAt = Number.NEGATIVE_INFINITY;

  constructor({ endpoint }: BucketId, configured: ConfiguredLimit, maxQueue: number) {
    this.#limit = new AnnouncedLimit(configured);
    const onAbort = () => this.#queue.size === 0 && this.#timer.clear();
    this.#queue = new CallQueue({ endpoint, maxQueue, onAbort });
  }

  acquire({ priority, signal, maxPauseMs }: AcquireOptions): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const now = systemClock.now();
    this.#collect(now);
    if (this.#canGrantAtOnce(priority, now)) return Promise.resolve(this.#grant(now));
    return new Promise((resolve, reject) => {
      this.#queue.append({ priority, signal, maxPauseMs, resolve, reject }, this.#pausedUntil - now);
      // Grant first: if this call is interactive, it may get a token before the background calls that wait. `rejectExcess` rejects
      // the latest call of a full queue, so it would reject this call.
      this.#grantWaiting();
      this.#queue.rejectExcess();
    });
  }

  snapshot(): BucketSnapshot {
    const now = systemClock.now();
    this.#collect(now);
    return buildSnapshot(this.#limit.value, this.#inUse, this.#queue.size, this.#pausedUntil - now);
  }

  #send(token: Token): void {
    const now = systemClock.now();
    this.#collect(now);
    if (!markSent(token, now)) return;
    token.isCounted = true;
    token.returnedBefore = this.#foreignUse.noteSent();
    this.#granted.delete(token);
    this.#sent.add(token);
    this.#grantWaiting();
  }

  #report(token: Token, feedback: RateLimitFeedback): void {
    const now = systemClock.now();
    const latestReturnAt = token.freeAt;
    if (!markReported(token, now)) return;
    // If the token came back before the response, the response says nothing about the current window.
    if (latestReturnAt > now) {
      this.#foreignUse.noteResponse(feedback, token.returnedBefore, this.#limit.value, now);
      token.isCounted = feedback.status !== 429;
    }
    if (token.freeAt < latestReturnAt) {
      this.#sent.delete(token);
      this.#reported.add(token);
    }
    this.#limit.note(feedback, token);
    if (feedback.status === 429) {
      this.#pausedUntil = Math.max(this.#pausedUntil, now + computePauseMs(feedback));
      this.#queue.rejectIfPauseExceeds(this.#pausedUntil - now);
    }
    this.#grantWaiting();
  }

  #cancel(token: Token): void {
    if (!markCancelled(token)) return;
    this.#granted.delete(token);
    this.#grantWaiting();
  }

  get #inUse(): number {
    return this.#granted.size + this.#sent.size + this.#reported.size;
  }

  #collect(now: number): void {
    for (const tokens of [this.#granted, this.#sent, this.#reported]) {
      for (const token of tokens) {
        if (token.freeAt > now) break;
        tokens.delete(token);
        if (token.isCounted) this.#foreignUse.noteReturn(now);
      }
    }
  }

  get #opensAt(): number {
    const { opensAt, minSpacingMs } = this.#foreignUse;
    return Math.max(this.#pausedUntil, opensAt, this.#lastGrantAt + minSpacingMs);
  }

  #countFree(now: number): { readonly free: number; readonly reserved: number } {
    const allowed = this.#foreignUse.computeMaxOut(this.#limit.value, now, this.#queue.size > 0);
    return { free: allowed - this.#inUse, reserved: reservedTokens(this.#limit.value) };
  }

  #canGrantAtOnce(priority: Priority, now: number): boolean {
    if (this.#queue.size > 0) return false;
    const { free, reserved } = this.#countFree(now);
    return free > (priority === 'interactive' ? 0 : reserved) && now >= this.#opensAt;
  }

  #grant(now: number): Permit {
    this.#lastGrantAt = now;
    const freeAt = Number.POSITIVE_INFINITY;
    const token: Token = { state: 'granted', sentAt: 0, freeAt, isCounted: false, returnedBefore: 0 };
    this.#granted.add(token);
    return {
      tokensLeft: this.#limit.value - this.#inUse,
      send: () => this.#send(token),
      report: (feedback) => this.#report(token, feedback),
      cancel: () => this.#cancel(token),
    };
  }

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
    this.#timer.set(Math.max(hasToken ? now : this.#nextChangeAt, this.#opensAt));
  }

  get #nextChangeAt(): number {
    const firstFreeAt = (tokens: Set<Token>) =>
      tokens.values().next().value?.freeAt ?? Number.POSITIVE_INFINITY;
    const returns = [this.#granted, this.#sent, this.#reported].map(firstFreeAt);
    return Math.min(this.#foreignUse.changesAt, ...returns);
  }
}
