import { type ResponseFacts, reservedTokens, WINDOW_MS } from './limiter.ts';

/**
 * After a change of our share, the share may grow only after this time: one window for the pause after a 429, and one and a half
 * windows in which responses show what others use.
 */
const PERIOD_MS = 2_500;

const GAP_MS = 250;

const SPREAD_OVER = 0.8;

/**
 * Estimates how many tokens other users of the same account leave to this bucket.
 * 1. The response to a request says how many requests are left in the window (docs/service.md 6.2). To this number we add our own
 *    requests that may count in the same window: the request itself, those whose tokens were still out when we sent the request,
 *    and those that we have sent since then. The sum is what is available to us. If the sum is below the limit, others are active.
 * 2. When others are first noticed, we take half of the limit. They do the same, so the limit is shared at once.
 * 3. From then on we use no more than what is available to us, but give up at most half of our tokens in one period. If no request
 *    is left in the window, we wait for its end.
 * 4. After a period in which our share did not change, we add half of the tokens that nobody used in that period.
 * 5. If our share is below a quarter of the limit, we add at least one token, even if others use all tokens. So nobody starves.
 * 6. While others are active, grants are spread over the window. The responses then show the use of others at several moments, and
 *    not only at the moment of a burst.
 * 7. After a period in which others used nothing, the full limit is ours again.
 * 8. If we fill the first window, others get only 429s. The service does not count refused requests, so our responses do not show
 *    that others are active. So after its first token has come back, a new bucket with a limit of 10 or more leaves one token
 *    (`reservedTokens`) unused for `GAP_MS` while calls wait. In this time a retry of the others gets through, and our responses
 *    show it.
 */
export class ForeignUse {
  #countedSent = 0;
  #countedReturned = 0;
  #maxOut = Number.POSITIVE_INFINITY;
  #minOut = 0;
  #leastAvailable = Number.POSITIVE_INFINITY;
  #gapEndsAt = Number.POSITIVE_INFINITY;
  opensAt = Number.NEGATIVE_INFINITY;
  /** When `updateMaxOut` may return another number: the end of the period, or the end of the gap if others were not noticed yet. */
  changesAt = Number.POSITIVE_INFINITY;

  /**
   * Notes that a request was sent. Returns how many tokens have come back so far, without the tokens of refused requests.
   * `noteResponse` takes this number as `returnedBefore`.
   */
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

  noteResponse(response: ResponseFacts, returnedBefore: number, limit: number, now: number): void {
    const { status, remaining, resetMs = WINDOW_MS } = response;
    // The service does not count a request that it refuses, so subtract it. `Bucket` marks the token of the request as not counted.
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

  updateMaxOut(limit: number, now: number, isWaiting: boolean): number {
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
