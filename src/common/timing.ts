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

/** What waits for each signal: one listener a signal, however many calls share it, so Node never warns of a leak. */
const listenersOf = new WeakMap<AbortSignal, { callbacks: Set<() => void>; listener: () => void }>();

/** Runs `callback` once when `signal` aborts, at once when it already has; gives a function that takes it back. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  const { callbacks, listener } = listenersOf.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0 || signal.aborted) return;
    listenersOf.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function listen(signal: AbortSignal) {
  const callbacks = new Set<() => void>();
  const listener = () => {
    listenersOf.delete(signal);
    for (const callback of callbacks) callback();
  };
  const known = { callbacks, listener };
  listenersOf.set(signal, known);
  signal.addEventListener('abort', listener, { once: true });
  return known;
}

/** A controller that also aborts when `signal` does, for the same reason, until `unsubscribe` is called. */
export function linkedController(signal: AbortSignal): {
  readonly controller: AbortController;
  readonly unsubscribe: () => void;
} {
  const controller = new AbortController();
  return { controller, unsubscribe: onAbort(signal, () => controller.abort(signal.reason)) };
}

/** Waits for `ms` milliseconds, at most 2^31 - 1, or rejects with the signal's own reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let unsubscribe = () => {};
    const timer = setTimeout(() => {
      unsubscribe();
      resolve();
    }, ms);
    if (signal === undefined) return;
    unsubscribe = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** One timer that is moved as often as its moment changes. */
export class WakeTimer {
  readonly #clock: Clock;
  readonly #onWake: () => void;
  #set: { readonly handle: unknown; readonly wakeAt: number; readonly keepsAlive: boolean } | undefined;

  constructor(clock: Clock, onWake: () => void) {
    this.#clock = clock;
    this.#onWake = onWake;
  }

  /**
   * @param wakeAt - when to call back at the latest, on the clock; Infinity for never
   * @param keepsAlive - false when a program that has nothing else to do may end before
   */
  set(wakeAt: number, keepsAlive = true): void {
    // A timer that fires too soon only looks and is set again; one that fires too late would lose time.
    const isSoonEnough = this.#set !== undefined && this.#set.wakeAt <= wakeAt;
    if (isSoonEnough && wakeAt !== Number.POSITIVE_INFINITY && this.#set?.keepsAlive === keepsAlive) return;
    this.clear();
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(Math.max(1, Math.ceil(wakeAt - this.#clock.now())), MAX_TIMER_MS);
    const handle = this.#clock.setTimeout(() => {
      this.#set = undefined;
      this.#onWake();
    }, delayMs);
    if (!keepsAlive) unref(handle);
    this.#set = { handle, wakeAt, keepsAlive };
  }

  clear(): void {
    if (this.#set) this.#clock.clearTimeout(this.#set.handle);
    this.#set = undefined;
  }
}

/** Timers of Node and the like have the method, those of other clocks may not. */
function unref(handle: unknown): void {
  if (typeof handle !== 'object' || handle === null || !('unref' in handle)) return;
  if (typeof handle.unref === 'function') handle.unref();
}
