import type { Clock } from '../common/timing.ts';
import type { Settlement } from './limiter.ts';
import { WINDOW_MS } from './token-pool.ts';

/**
 * No refusal pauses an endpoint for longer. A delay beyond it is more likely a mistake, as a timestamp that stands where
 * seconds belong; and where it is none, the one request that leaves after the hour is told the rest.
 */
export const LONGEST_PAUSE_MS = 60 * 60 * 1_000;

/** How long a refusal pauses its endpoint, in milliseconds: what the service asked for, else one window. */
export function pauseMsOf({ retryAfterMs }: Settlement): number {
  const isDelay = retryAfterMs !== undefined && Number.isFinite(retryAfterMs) && retryAfterMs >= 0;
  return isDelay ? Math.min(retryAfterMs, LONGEST_PAUSE_MS) : WINDOW_MS;
}

/** The end of a pause as people read it, in milliseconds since the epoch; null when it is over. */
export function pauseEnd(until: number, clock: Clock): number | null {
  const leftMs = until - clock.now();
  return leftMs > 0 ? Math.round(clock.wallNow() + leftMs) : null;
}
