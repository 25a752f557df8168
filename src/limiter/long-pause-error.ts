import { TrackingError } from '../errors.ts';

/**
 * The service asked for a pause that is longer than a call waits (`maxPauseMs`). A limiter rejects with it; the client makes a
 * `RateLimitError` of it.
 */
export class LongPauseError extends TrackingError {
  static override readonly kind: string = 'LongPauseError';
  /** What is left of the pause, in milliseconds. */
  readonly pausedForMs: number;

  /** @param pausedForMs - what is left of the pause, in milliseconds */
  constructor(pausedForMs: number) {
    super(`Expected a shorter pause of the rate limit, got one of ${Math.ceil(pausedForMs)} ms`);
    this.pausedForMs = pausedForMs;
  }
}
