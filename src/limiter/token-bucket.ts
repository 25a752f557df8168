import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { ReschedulableTimer, systemClock } from '../common/clock.ts';
import { ForeignUse } from './foreign-use.ts';
import {
  type AcquireOptions,
  type BucketId,
  BucketLimiter,
  type BucketSnapshot,
  type ConfiguredLimit,
  computeLimit,
  createPermit,
  LIMITER_SHAPE,
  type LimiterOptions,
  type Permit,
  type Priority,
  type ResponseFacts,
  reservedTokens,
  type Token,
} from './limiter.ts';
import { CallQueue } from './queue.ts';

const limiterOptions = z.strictObject(LIMITER_SHAPE);

/**
 * Lets requests leave as fast as the service allows (docs/service.md 6.1), never faster. Clients of one account in one process
 * share the rate limits by sharing the limiter. If responses show that others use the account, too, the limiter leaves
 * a part of the limit to them.
 *
 * A used token comes back one second after the *response* arrived, because the service may have counted the request at any
 * moment until then. If the response is late, the token comes back 1.5 seconds after the request was sent. A 429 pauses only its
 * own endpoint (docs/service.md 6.3), for an hour at most.
 *
 * @example
 * const limiter = new TokenBucketLimiter({ maxQueue: 1_000 });
 * const web = new TrackingClient({ limiter });
 * const jobs = new TrackingClient({ limiter });
 */
export class TokenBucketLimiter extends BucketLimiter {
  /** False, because only the clients of this process share the limits. */
  readonly spansProcesses = false;

  /**
   * @param options - all optional
   * @throws ConfigurationError if an option is invalid
   */
  constructor(options: LimiterOptions = {}) {
    const settings = checkOptions(limiterOptions, options);
    super(settings, (id, configured) => new LocalBucket(id, configured, settings.maxQueue));
  }
}

interface LocalToken extends Token {
  /** False if the service did not count the request, because it refused the request. */
  isCounted: boolean;
  /** See `ForeignUse.noteSent`. */
  returnedBefore: number;
}

class LocalBucket {
  readonly #granted = new Set<LocalToken>();
  // Each of these sets is in the order in which its tokens come back, so a search can stop at the first token that is still out.
  readonly #sent = new Set<LocalToken>();
  readonly #reported = new Set<LocalToken>();
  readonly #queue: CallQueue;
  readonly #timer = new ReschedulableTimer(() => this.#grantWaiting());
  readonly #foreignUse = new ForeignUse();
  readonly #configured: ConfiguredLimit;
  #limit: number;
  #lastGrantAt = Number.NEGATIVE_INFINITY;

  constructor({ endpoint }: BucketId, configured: ConfiguredLimit, maxQueue: number) {
    this.#configured = configured;
    this.#limit = configured.limit;
    this.#queue = new CallQueue(endpoint, maxQueue, () => this.#queue.size === 0 && this.#timer.clear());
  }

  acquire(options: AcquireOptions): Promise<Permit> {
    const now = systemClock.now();
    this.#collect(now);
    if (this.#canGrantAtOnce(options.priority, now)) return Promise.resolve(this.#grant(now));
    const permit = this.#queue.wait(options, now);
    // Grant first: an interactive call may get a token before the background calls that wait. `rejectExcess` rejects the latest
    // call of a full queue. If it ran first, it would reject this call.
    this.#grantWaiting();
    this.#queue.rejectExcess();
    return permit;
  }

  snapshot(): BucketSnapshot {
    const now = systemClock.now();
    this.#collect(now);
    return this.#queue.snapshot(this.#limit, this.#inUse, now);
  }

  onSend(token: LocalToken, now: number): void {
    this.#collect(now);
    token.isCounted = true;
    token.returnedBefore = this.#foreignUse.noteSent();
    this.#granted.delete(token);
    this.#sent.add(token);
    this.#grantWaiting();
  }

  onPause(until: number, now: number): void {
    this.#queue.pauseUntil(until, now);
  }

  onResponse(token: LocalToken, response: ResponseFacts, now: number, latestReturnAt: number): void {
    // If the token came back before the response, the response says nothing about the current window.
    if (latestReturnAt > now) {
      this.#foreignUse.noteResponse(response, token.returnedBefore, this.#limit, now);
      token.isCounted = response.status !== 429;
    }
    if (token.freeAt < latestReturnAt) {
      this.#sent.delete(token);
      this.#reported.add(token);
    }
    this.#limit = computeLimit(response, this.#limit, this.#configured);
    this.#grantWaiting();
  }

  onCancel(token: LocalToken): void {
    this.#granted.delete(token);
    this.#grantWaiting();
  }

  get #inUse(): number {
    return this.#granted.size + this.#sent.size + this.#reported.size;
  }

  #collect(now: number): void {
    for (const tokens of [this.#sent, this.#reported]) {
      for (const token of tokens) {
        if (token.freeAt > now) break;
        tokens.delete(token);
        if (token.isCounted) this.#foreignUse.noteReturn(now);
      }
    }
  }

  get #opensAt(): number {
    const { opensAt, minSpacingMs } = this.#foreignUse;
    return Math.max(this.#queue.pausedUntil, opensAt, this.#lastGrantAt + minSpacingMs);
  }

  #countFree(now: number): { readonly free: number; readonly reserved: number } {
    const allowed = this.#foreignUse.updateMaxOut(this.#limit, now, this.#queue.size > 0);
    return { free: allowed - this.#inUse, reserved: reservedTokens(this.#limit) };
  }

  #canGrantAtOnce(priority: Priority, now: number): boolean {
    if (this.#queue.size > 0) return false;
    const { free, reserved } = this.#countFree(now);
    return free > (priority === 'interactive' ? 0 : reserved) && now >= this.#opensAt;
  }

  #grant(now: number): Permit {
    this.#lastGrantAt = now;
    const token: LocalToken = {
      tokensLeft: this.#limit - this.#inUse - 1,
      state: 'granted',
      freeAt: Number.POSITIVE_INFINITY,
      isCounted: false,
      returnedBefore: 0,
    };
    this.#granted.add(token);
    return createPermit(token, this);
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
    const firstFreeAt = ([first]: Set<LocalToken>) => first?.freeAt ?? Number.POSITIVE_INFINITY;
    return Math.min(this.#foreignUse.changesAt, firstFreeAt(this.#sent), firstFreeAt(this.#reported));
  }
}
