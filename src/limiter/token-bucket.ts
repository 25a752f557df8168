import * as z from 'zod';
import { ReschedulableTimer, systemClock } from '../common/clock.ts';
import { checkOptions } from '../common/option-checks.ts';
import {
  type AcquireOptions,
  type BucketId,
  type BucketSnapshot,
  Buckets,
  CallQueue,
  type ConfiguredLimit,
  computeLimit,
  computePauseMs,
  LIMITER_SHAPE,
  type Limiter,
  type LimiterOptions,
  MAX_RETURN_MS,
  type Permit,
  type Priority,
  type RateLimitFeedback,
  RETURN_MS,
  reservedTokens,
  UNSENT_LEASE_MS,
  WINDOW_MS,
} from './limiter.ts';

const limiterOptions = z.strictObject(LIMITER_SHAPE);

/**
 * Lets requests leave as fast as the service allows (docs/service.md 6.1), never faster. Clients of one account in one process
 * share the rate limits by sharing the limiter. If responses show that others use the account, too, they get a part.
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
  readonly #buckets: Buckets<Bucket>;

  /**
   * @param options - all optional
   * @throws ConfigurationError if an option makes no sense
   */
  constructor(options: LimiterOptions = {}) {
    const { limits, maxQueue } = checkOptions(limiterOptions, options);
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

/** An estimate may grow after this time: enough for a one-window pause after a 429 and more than one further window. */
const PERIOD_MS = 2_500;

const GAP_MS = 250;

const SPREAD_OVER = 0.8;

/**
 * Estimates how many tokens other users of the same account leave to this bucket.
 * 1. A response says how many requests are left in the window (docs/service.md 6.2). To these we add our own: the
 *    requests whose tokens were out when we sent this request, and those sent since. A sum below the limit shows others.
 * 2. When others are first noticed, we take half of the limit. They do the same, so the limit is shared at once.
 * 3. From then on we keep to what is available, but give up at most half of our tokens in one period. If none is left, we wait.
 * 4. After a period without a change we take half of the tokens that nobody used in it.
 * 5. If we have less than a quarter of the limit, we take one more even if all are used, so that nobody starves.
 * 6. Grants are spread over the window, because a burst sees only one moment of what others use.
 * 7. After a period in which others used nothing, the full limit is ours again.
 * 8. If we fill the first window, others get only 429s, so our responses do not show that there are others. A new bucket
 *    with waiting calls thus keeps its reserved token for `GAP_MS` after its first tokens come back, and a retry gets through.
 */
class ForeignUse {
  #countedSent = 0;
  #countedReturned = 0;
  #maxOut = Number.POSITIVE_INFINITY;
  #minOut = 0;
  #leastAvailable = Number.POSITIVE_INFINITY;
  #gapEndsAt = Number.POSITIVE_INFINITY;
  opensAt = Number.NEGATIVE_INFINITY;
  changesAt = Number.POSITIVE_INFINITY;

  /** Returns how many tokens of counted requests have come back; `noteResponse` takes this number as `returnedBefore`. */
  noteSent(): number {
    this.#countedSent += 1;
    return this.#countedReturned;
  }

  noteReturn(now: number): void {
    this.#countedReturned += 1;
    if (this.#gapEndsAt !== Number.POSITIVE_INFINITY) return;
    this.#gapEndsAt = now + GAP_MS;
    if (this.#maxOut === Number.POSITIVE_INFINITY) this.changesAt = this.#gapEndsAt;
  }

  noteResponse(feedback: RateLimitFeedback, returnedBefore: number, limit: number, now: number): void {
    const { status, remaining, resetMs = WINDOW_MS } = feedback;
    // The service does not count a request that it refuses, so `Bucket` marks its token as not counted, too.
    if (status === 429) this.#countedSent -= 1;
    if (remaining === undefined) return;
    const available = remaining + this.#countedSent - returnedBefore;
    this.#leastAvailable = Math.min(this.#leastAvailable, available);
    if (available >= Math.min(limit, this.#maxOut)) return;
    if (remaining === 0) this.opensAt = now + Math.min(resetMs, WINDOW_MS);
    const isAlone = this.#maxOut === Number.POSITIVE_INFINITY;
    if (isAlone) this.#minOut = Math.ceil(limit / 2);
    const tokens = isAlone ? this.#minOut : Math.max(available, this.#minOut);
    if (tokens === this.#maxOut) return;
    this.#maxOut = tokens;
    this.changesAt = now + PERIOD_MS;
  }

  computeMaxOut(limit: number, now: number, isWaiting: boolean): number {
    if (now < this.changesAt) {
      const isGap = isWaiting && this.#countedReturned > 0 && now < this.#gapEndsAt;
      return Math.min(limit - (isGap ? reservedTokens(limit) : 0), this.#maxOut);
    }
    if (this.#leastAvailable >= limit) {
      this.#maxOut = Number.POSITIVE_INFINITY;
    } else {
      const idle = Math.max(0, Math.floor((this.#leastAvailable - this.#maxOut) / 2));
      this.#maxOut += this.#maxOut < limit / 4 ? Math.max(1, idle) : idle;
    }
    this.#minOut = Math.ceil(this.#maxOut / 2);
    this.#leastAvailable = Number.POSITIVE_INFINITY;
    this.changesAt = Number.isFinite(this.#maxOut) ? now + PERIOD_MS : Number.POSITIVE_INFINITY;
    return Math.min(limit, this.#maxOut);
  }

  get minSpacingMs(): number {
    return (WINDOW_MS * SPREAD_OVER) / this.#maxOut;
  }
}

interface Token {
  state: 'granted' | 'sent' | 'reported' | 'cancelled';
  sentAt: number;
  freeAt: number;
  isCounted: boolean;
  returnedBefore: number;
}

class Bucket {
  readonly #configured: ConfiguredLimit;
  // Each set is in the order in which its tokens come back, so a search can stop at the first token that is still out.
  readonly #granted = new Set<Token>();
  readonly #sent = new Set<Token>();
  readonly #reported = new Set<Token>();
  readonly #queue: CallQueue;
  readonly #timer = new ReschedulableTimer(() => this.#grantWaiting());
  readonly #foreignUse = new ForeignUse();
  #limit: number;
  #limitKnownSince = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #lastGrantAt = Number.NEGATIVE_INFINITY;

  constructor({ endpoint }: BucketId, configured: ConfiguredLimit, maxQueue: number) {
    this.#configured = configured;
    this.#limit = configured.limit;
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
      // Grant before rejecting, because an interactive call may go before the background calls that wait.
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

  /** True if forgetting the bucket loses nothing but the limit that the service announced. */
  isIdle(): boolean {
    const { limit, inUse, queued, pausedUntil } = this.snapshot();
    const isAlone = this.#foreignUse.computeMaxOut(limit, systemClock.now(), false) === limit;
    return inUse === 0 && queued === 0 && pausedUntil === null && isAlone;
  }

  #send(token: Token): void {
    if (token.state !== 'granted') return;
    const now = systemClock.now();
    this.#collect(now);
    token.state = 'sent';
    token.sentAt = now;
    token.freeAt = now + MAX_RETURN_MS;
    token.isCounted = true;
    token.returnedBefore = this.#foreignUse.noteSent();
    this.#granted.delete(token);
    // The token is added even if its lease has ended and the bucket is full, because the service counts the request.
    this.#sent.add(token);
    this.#grantWaiting();
  }

  #report(token: Token, feedback: RateLimitFeedback): void {
    if (token.state !== 'sent') return;
    const now = systemClock.now();
    token.state = 'reported';
    // If the token came back before the response, the response says nothing about the current window.
    if (token.freeAt > now) {
      this.#foreignUse.noteResponse(feedback, token.returnedBefore, this.#limit, now);
      token.isCounted = feedback.status !== 429;
    }
    if (now + RETURN_MS < token.freeAt) {
      token.freeAt = now + RETURN_MS;
      this.#sent.delete(token);
      this.#reported.add(token);
    }
    // Responses can overtake each other, and the response of an older request must not bring an older limit back.
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

  #cancel(token: Token): void {
    if (token.state !== 'granted') return;
    token.state = 'cancelled';
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
    const allowed = this.#foreignUse.computeMaxOut(this.#limit, now, this.#queue.size > 0);
    return { free: allowed - this.#inUse, reserved: reservedTokens(this.#limit) };
  }

  #canGrantAtOnce(priority: Priority, now: number): boolean {
    if (this.#queue.size > 0) return false;
    const { free, reserved } = this.#countFree(now);
    return free > (priority === 'interactive' ? 0 : reserved) && now >= this.#opensAt;
  }

  #grant(now: number): Permit {
    this.#lastGrantAt = now;
    const freeAt = now + UNSENT_LEASE_MS;
    const token: Token = { state: 'granted', sentAt: 0, freeAt, isCounted: false, returnedBefore: 0 };
    this.#granted.add(token);
    return {
      tokensLeft: this.#limit - this.#inUse,
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
