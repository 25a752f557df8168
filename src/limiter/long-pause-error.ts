import { TrackingError } from '../errors.ts';

/** The service asked for a pause that is longer than the caller waits; the client makes a `RateLimitError` of it. */
export class LongPauseError extends TrackingError {
  static override readonly kind: string = 'LongPauseError';
  /** What is left of the pause, in milliseconds. */
  readonly pausedForMs: number;

  constructor(pausedForMs: number) {
    super(`Expected a shorter pause of the rate limit, got one of ${Math.ceil(pausedForMs)} ms`);
    this.pausedForMs = pausedForMs;
  }
}
