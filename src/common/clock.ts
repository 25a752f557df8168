/** The longest delay a timer can hold, in milliseconds; a longer one fires after 1 ms, so longer waits are chained. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Whether this is a Cloudflare Worker, where a timer, a signal and whatever was begun belong to one request and end with it, so
 * that nothing may wait for another request.
 */
export const isWorkerd = globalThis.navigator?.userAgent === 'Cloudflare-Workers';

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

/** A timer that fires sooner than this many milliseconds before its time is one of another clock than `performance`. */
const EARLIEST_MS = 5;

/** What `performance.now` lacks to the time that has passed, in milliseconds. */
let lackingMs = 0;
let latestMs = 0;

/**
 * The machine's clocks. They are looked up at every call, so fake timers that a test installs later still count; those set
 * the monotonic clock back, or leave it alone and move the timers only. Either way the time that was told goes on.
 */
export const systemClock: Clock = {
  now: () => {
    const nowMs = globalThis.performance.now();
    // Whole milliseconds: fake timers stand on such, and what is added to them must not round.
    if (nowMs + lackingMs < latestMs) lackingMs = Math.ceil(latestMs - nowMs);
    latestMs = nowMs + lackingMs;
    return latestMs;
  },
  wallNow: () => globalThis.Date.now(),
  setTimeout: (callback, delayMs) => {
    const firesAt = systemClock.now() + delayMs;
    return globalThis.setTimeout(() => {
      const earlyMs = firesAt - systemClock.now();
      if (earlyMs > EARLIEST_MS) lackingMs += Math.ceil(earlyMs);
      callback();
    }, delayMs);
  },
  // Sound: only what `setTimeout` above returned comes back here.
  clearTimeout: (timer) => globalThis.clearTimeout(timer as ReturnType<typeof setTimeout>),
};

/** One timer that is moved as often as its moment changes. */
export class ReschedulableTimer {
  readonly #clock: Clock;
  readonly #onWake: () => void;
  #set:
    | {
        readonly handle: unknown;
        readonly wakeAt: number;
        readonly keepsAlive: boolean;
        readonly timers: unknown;
      }
    | undefined;

  constructor(clock: Clock, onWake: () => void) {
    this.#clock = clock;
    this.#onWake = onWake;
  }

  /**
   * @param wakeAt - when to call back at the latest, on the clock; Infinity for never
   * @param keepsAlive - false when a program that has nothing else to do may end before
   */
  set(wakeAt: number, keepsAlive = true): void {
    // The timer went with the fake timers that a test took away, or does not move with those that it installed.
    if (this.#set?.timers !== globalThis.setTimeout) this.clear();
    // A timer that fires too soon only looks and is set again; one that fires too late would lose time.
    const isSoonEnough = this.#set !== undefined && this.#set.wakeAt <= wakeAt;
    if (isSoonEnough && wakeAt !== Number.POSITIVE_INFINITY && this.#set?.keepsAlive === keepsAlive) return;
    this.clear();
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(Math.max(1, Math.ceil(wakeAt - this.#clock.now())), MAX_TIMER_MS);
    const handle = this.#clock.setTimeout(() => {
      if (this.#set?.handle === handle) this.#set = undefined;
      this.#onWake();
    }, delayMs);
    if (!keepsAlive) unref(handle);
    this.#set = { handle, wakeAt, keepsAlive, timers: globalThis.setTimeout };
  }

  clear(): void {
    if (this.#set === undefined) return;
    // A timer of other timers than now can't be cleared by these; should it fire, it only looks.
    if (this.#set.timers === globalThis.setTimeout) this.#clock.clearTimeout(this.#set.handle);
    else unref(this.#set.handle);
    this.#set = undefined;
  }
}

/** Timers of Node and the like have the method, those of other clocks may not. */
function unref(handle: unknown): void {
  if (typeof handle !== 'object' || handle === null || !('unref' in handle)) return;
  if (typeof handle.unref === 'function') handle.unref();
}
