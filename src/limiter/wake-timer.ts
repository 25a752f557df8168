import { type Clock, MAX_TIMER_MS } from '../common/timing.ts';

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
