/** The longest delay a timer can hold, in milliseconds; a longer one fires after 1 ms, so longer waits are chained. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Where the time comes from; give your own to run without real time. */
export interface Clock {
  /** Milliseconds of a clock that only goes forward; the zero point means nothing. */
  now(): number;
  /** Milliseconds since the epoch, for what people read; this clock can jump. */
  wallNow(): number;
  /**
   * Calls back once.
   *
   * @param delayMs - in milliseconds, at most 2^31 - 1
   */
  setTimeout(callback: () => void, delayMs: number): unknown;
  /** Takes back what `setTimeout` of the same clock returned. */
  clearTimeout(timer: unknown): void;
}

/** The machine's clocks. They are looked up at every call, so fake timers that a test installs later still count. */
export const systemClock: Clock = {
  now: () => globalThis.performance.now(),
  wallNow: () => globalThis.Date.now(),
  setTimeout: (callback, delayMs) => globalThis.setTimeout(callback, delayMs),
  // Sound: only what `setTimeout` above returned comes back here.
  clearTimeout: (timer) => globalThis.clearTimeout(timer as ReturnType<typeof setTimeout>),
};
