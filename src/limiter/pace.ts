import { WINDOW_MS } from './token-pool.ts';

/** What a refusal leaves of the share. */
export const CUT_FACTOR = 0.9;
/** How long the share stays as it is after a cut. */
export const HOLD_MS = 30_000;
/** How much of the limit comes back in a second after that. */
export const RECOVERY_PER_SECOND = 0.005;
/** Below this the bucket would wait for minutes after a bad spell that is long over. */
export const SMALLEST_SHARE = 0.1;

/**
 * Leaves room for other users of the same account.
 *
 * A limiter that keeps its own promise is refused only when somebody else uses the allowance too. Each such refusal cuts
 * the share of the limit that is used, holds it for a while and gives it back slowly. Below the full share, grants are
 * spread evenly, because a burst takes from others what they were about to use.
 */
export class Pace {
  #shareAfterCut = 1;
  #cutAt = Number.NEGATIVE_INFINITY;

  /** Share of the limit in use, from 0.1 to 1. */
  share(now: number): number {
    const recoveringMs = Math.max(0, now - this.#cutAt - HOLD_MS);
    return Math.min(1, this.#shareAfterCut + (recoveringMs / 1_000) * RECOVERY_PER_SECOND);
  }

  /** Shortest time in milliseconds between two grants; 0 while nobody else was noticed. */
  spacingMs(limit: number, now: number): number {
    const share = this.share(now);
    return share === 1 ? 0 : WINDOW_MS / (limit * share);
  }

  /**
   * The service refused a request.
   *
   * @param sentAt - when that request was sent; one from before the last cut says nothing about the share since then
   */
  refused(sentAt: number, now: number): void {
    if (sentAt <= this.#cutAt) return;
    this.#shareAfterCut = Math.max(SMALLEST_SHARE, this.share(now) * CUT_FACTOR);
    this.#cutAt = now;
  }
}
