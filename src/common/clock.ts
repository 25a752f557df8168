import { onAbort } from './abort.ts';

/** If a delay is longer than this, Node fires the timer after 1 ms. So a longer wait uses several timers, one after the other. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Real timers fire up to 1 ms early. If a timer fires more than 5 ms early, we conclude that timers are faked and
 * `performance.now()` is not.
 */
const TIMER_TOLERANCE_MS = 5;

/** Offset added to `performance.now()` so that it keeps up with faked timers. */
let clockOffsetMs = 0;
let latestReadingMs = 0;
let latestMs = 0;

function advanceTo(momentMs: number): void {
  const readingMs = globalThis.performance.now();
  const behindMs = Math.max(momentMs, latestMs) - (readingMs + clockOffsetMs);
  const wasSetBack = readingMs < latestReadingMs;
  // Round up: fake clocks show whole milliseconds, and a fraction in the offset would cause rounding errors.
  if (behindMs > (wasSetBack ? 0 : TIMER_TOLERANCE_MS)) clockOffsetMs += Math.ceil(behindMs);
  latestReadingMs = readingMs;
  latestMs = Math.max(momentMs, latestMs, readingMs + clockOffsetMs);
}

/**
 * The machine's clock and timers, looked up at every call, so that fake timers work whether a test installs them before
 * or after the client is made. Fake timers set `performance.now()` back to 0 (vitest, jest) or do not move it at all
 * (node:test); this clock goes on from where it was and moves with the timers either way.
 */
export const systemClock = {
  /** Milliseconds on a clock that only goes forward. */
  now(): number {
    advanceTo(latestMs);
    return latestMs;
  },
  /** Milliseconds since the epoch; this clock can jump. */
  wallNow(): number {
    return globalThis.Date.now();
  },
  setTimeout(callback: () => void, delayMs: number): ReturnType<typeof setTimeout> {
    const firesAt = systemClock.now() + delayMs;
    return globalThis.setTimeout(() => {
      advanceTo(firesAt);
      callback();
    }, delayMs);
  },
  clearTimeout(timer: ReturnType<typeof setTimeout> | undefined): void {
    globalThis.clearTimeout(timer);
  },
};

/** A timer that fires later than this was held back, because the process was frozen or busy. */
const MAX_LATENESS_MS = 50;
/** Enough to read what has arrived while the process was frozen. */
const MAX_CATCH_UP_MS = 1_000;
/** `globalThis.setTimeout` is another function while timers are faked. */
const initialSetTimeout = globalThis.setTimeout;

/**
 * Returns when a time limit really ends, after its timer has fired. If the timer was held back, data that has arrived meanwhile is
 * read first: for as long as the timer was late, at most a second.
 */
export function endAfterCatchingUp(endsAt: number): number {
  // A test that moves faked timers moves them once, and the real clock may not agree with them.
  if (globalThis.setTimeout !== initialSetTimeout) return endsAt;
  const now = systemClock.now();
  const latenessMs = now - endsAt;
  return latenessMs > MAX_LATENESS_MS ? now + Math.min(latenessMs, MAX_CATCH_UP_MS) : endsAt;
}

interface ActiveTimer {
  readonly handle: ReturnType<typeof setTimeout>;
  readonly wakeAt: number;
  readonly keepsAlive: boolean;
  readonly setTimeout: typeof globalThis.setTimeout;
}

/** A timer that can be set again and again. It may fire early, so `onWake` must check the time. */
export class ReschedulableTimer {
  readonly #onWake: () => void;
  #active: ActiveTimer | undefined;

  constructor(onWake: () => void) {
    this.#onWake = onWake;
  }

  /** @param wakeAt - latest time of the callback, on `systemClock`; Infinity for never */
  set(wakeAt: number, keepsAlive = true): void {
    // If fake timers were installed or removed since, the old timer may never fire.
    if (this.#active?.setTimeout !== globalThis.setTimeout) this.clear();
    if (wakeAt === Number.POSITIVE_INFINITY) {
      this.clear();
      return;
    }
    // An earlier timer is kept, because waking early and setting it again is cheaper than moving it each time.
    if (this.#active && this.#active.wakeAt <= wakeAt && this.#active.keepsAlive === keepsAlive) return;
    this.clear();
    const delayMs = Math.min(Math.max(1, Math.ceil(wakeAt - systemClock.now())), MAX_TIMER_MS);
    const handle = systemClock.setTimeout(() => {
      if (this.#active?.handle === handle) this.#active = undefined;
      this.#onWake();
    }, delayMs);
    if (!keepsAlive) unref(handle);
    this.#active = { handle, wakeAt, keepsAlive, setTimeout: globalThis.setTimeout };
  }

  clear(): void {
    if (this.#active === undefined) return;
    const { handle, setTimeout } = this.#active;
    this.#active = undefined;
    // If fake timers were installed or removed since, the timer cannot be cleared. It may fire: waking early does no harm.
    if (setTimeout === globalThis.setTimeout) systemClock.clearTimeout(handle);
    else unref(handle);
  }
}

/** Lets the process end while the timer runs. Timers are numbers in browsers, Workers and jsdom, and those have no `unref`. */
export function unref(handle: unknown): void {
  if (typeof handle !== 'object' || handle === null || !('unref' in handle)) return;
  if (typeof handle.unref === 'function') handle.unref();
}

/** Waits for `ms` milliseconds, at most 2^31 - 1, or rejects with the signal's own reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let unsubscribe = () => {};
    const timer = systemClock.setTimeout(() => {
      unsubscribe();
      resolve();
    }, ms);
    if (signal === undefined) return;
    unsubscribe = onAbort(signal, () => {
      systemClock.clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
