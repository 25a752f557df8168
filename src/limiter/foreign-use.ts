import { type RateLimitFeedback, reservedTokens, WINDOW_MS } from './limiter.ts';

/** How long the estimate stands until it may grow: the pause after a refusal, and more than one window of observation. */
const PERIOD_MS = 2_500;

/** How long a new bucket leaves one token unused when its first ones come back. */
const GAP_MS = 250;

/** The part of a window over which grants are spread while others use the account. */
const SPREAD_OVER = 0.8;

/**
 * Estimates how many tokens other users of the same account leave to this bucket.
 *
 * 1. A response says how many requests are left in the window. Those, and the requests of ours that the service can have
 *    counted in it, are available to us. If that is less than the limit, others use the account.
 * 2. When others are first noticed, we take half of the limit. They do the same, so the limit is shared at once.
 * 3. From then on we keep to what is available, but give up at most half of our tokens in one period.
 *    If others left nothing, we send nothing until the reset, a second at most.
 * 4. After a period without a change we take half of the tokens that nobody used in it.
 * 5. If we have less than a quarter of the limit, we take one more even if all are used, so that nobody starves.
 * 6. Grants are spread over the window, because a burst sees only one moment of what others use.
 * 7. After a period in which others used nothing, the full limit is ours again.
 * 8. Nobody sees that others are refused. So a new bucket of which calls wait leaves one token unused for a moment when its
 *    first ones come back. Others that started at the same time and were refused return in this gap, and are noticed.
 */
export class ForeignUse {
  /** Requests of ours that left and were not refused, and how many of their tokens have come back. */
  #sent = 0;
  #returned = 0;
  /** How many tokens may be out; Infinity while nobody else is noticed. */
  #tokens = Number.POSITIVE_INFINITY;
  /** The fewest tokens this period may end with. */
  #floor = 0;
  /** The least that a response of this period told of. */
  #least = Number.POSITIVE_INFINITY;
  /** Infinity until the first token comes back. */
  #gapEndsAt = Number.POSITIVE_INFINITY;
  /** When the next request may leave after others left nothing. */
  opensAt = Number.NEGATIVE_INFINITY;
  /** When the number of tokens changes without a response. */
  changesAt = Number.POSITIVE_INFINITY;

  /** A request leaves. The result is for `noteResponse`, which needs to know which tokens were back by then. */
  noteSent(): number {
    this.#sent += 1;
    return this.#returned;
  }

  /** The token of a request that was not refused came back. */
  noteReturn(now: number): void {
    this.#returned += 1;
    if (this.#gapEndsAt !== Number.POSITIVE_INFINITY) return;
    this.#gapEndsAt = now + GAP_MS;
    if (this.#tokens === Number.POSITIVE_INFINITY) this.changesAt = this.#gapEndsAt;
  }

  /** @param returnedBefore - what `noteSent` returned for this request */
  noteResponse(feedback: RateLimitFeedback, returnedBefore: number, limit: number, now: number): void {
    const { status, remaining, resetMs = WINDOW_MS } = feedback;
    // The service does not count what it refuses.
    if (status === 429) this.#sent -= 1;
    if (remaining === undefined) return;
    const available = remaining + this.#sent - returnedBefore;
    this.#least = Math.min(this.#least, available);
    if (available >= Math.min(limit, this.#tokens)) return;
    if (remaining === 0) this.opensAt = now + Math.min(resetMs, WINDOW_MS);
    const isAlone = this.#tokens === Number.POSITIVE_INFINITY;
    if (isAlone) this.#floor = Math.ceil(limit / 2);
    const tokens = isAlone ? this.#floor : Math.max(available, this.#floor);
    if (tokens === this.#tokens) return;
    this.#tokens = tokens;
    this.changesAt = now + PERIOD_MS;
  }

  /**
   * How many tokens may be out at the same time.
   *
   * @param isWaiting - whether calls wait for one
   */
  countTokens(limit: number, now: number, isWaiting: boolean): number {
    if (now < this.changesAt) {
      const isGap = isWaiting && this.#returned > 0 && now < this.#gapEndsAt;
      return Math.min(limit - (isGap ? reservedTokens(limit) : 0), this.#tokens);
    }
    if (this.#least >= limit) {
      this.#tokens = Number.POSITIVE_INFINITY;
    } else {
      const idle = Math.max(0, Math.floor((this.#least - this.#tokens) / 2));
      this.#tokens += this.#tokens < limit / 4 ? Math.max(1, idle) : idle;
    }
    this.#floor = Math.ceil(this.#tokens / 2);
    this.#least = Number.POSITIVE_INFINITY;
    this.changesAt = Number.isFinite(this.#tokens) ? now + PERIOD_MS : Number.POSITIVE_INFINITY;
    return Math.min(limit, this.#tokens);
  }

  /** Shortest time between two grants, in milliseconds. */
  get spacingMs(): number {
    return (WINDOW_MS * SPREAD_OVER) / this.#tokens;
  }
}
