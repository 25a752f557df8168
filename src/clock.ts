/** The longest delay a timer can hold, in milliseconds; a longer one fires after 1 ms, so longer waits are chained. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Where the time comes from; give your own to run without real time. */
export interface Clock {
  /**
   * A clock that only goes forward.
   *
   * @returns milliseconds, from whatever zero
   */
  now(): number;
  /**
   * What people read; this clock can jump.
   *
   * @returns milliseconds since the epoch
   */
  wallNow(): number;
  /**
   * Calls back once.
   *
   * @param callback - what to call
   * @param delayMs - after how many milliseconds, at most 2^31 - 1
   * @returns what `clearTimeout` takes
   */
  setTimeout(callback: () => void, delayMs: number): unknown;
  /**
   * Takes a call back.
   *
   * @param timer - what `setTimeout` of the same clock returned
   */
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
