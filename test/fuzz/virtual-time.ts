import { settled } from '../support/settled.ts';

/** Time that moves only when a property says so, in place of the timers and the monotonic clock of the process. */
export class VirtualTime {
  readonly #timers = new Map<number, { readonly firesAt: number; readonly callback: () => void }>();
  readonly #real = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    now: performance.now,
  };
  readonly #wallOffsetMs = Date.now();
  #nowMs = 0;
  #lastTimer = 0;

  install(): void {
    const fakes = {
      setTimeout: (callback: () => void, delayMs = 0) => {
        this.#lastTimer += 1;
        this.#timers.set(this.#lastTimer, { firesAt: this.#nowMs + Math.max(1, delayMs), callback });
        return this.#lastTimer;
      },
      clearTimeout: (timer: number) => void this.#timers.delete(timer),
    };
    Object.assign(globalThis, fakes);
    performance.now = () => this.#nowMs;
  }

  uninstall(): void {
    const { setTimeout, clearTimeout, now } = this.#real;
    Object.assign(globalThis, { setTimeout, clearTimeout });
    performance.now = now;
  }

  now(): number {
    return this.#nowMs;
  }

  wallNow(): number {
    return this.#wallOffsetMs + this.#nowMs;
  }

  get timerCount(): number {
    return this.#timers.size;
  }

  /** When the next timer fires; Infinity if none is set. */
  get nextTimerAt(): number {
    return Math.min(...[...this.#timers.values()].map(({ firesAt }) => firesAt));
  }

  /** Moves to a moment and fires the timers on the way, each in a turn of its own. */
  async moveTo(atMs: number): Promise<void> {
    await settled();
    for (let next = this.nextTimerAt; next <= atMs; next = this.nextTimerAt) {
      this.#nowMs = Math.max(this.#nowMs, next);
      for (const [timer, { firesAt, callback }] of this.#timers) {
        if (firesAt !== next || !this.#timers.delete(timer)) continue;
        callback();
      }
      await settled();
    }
    this.#nowMs = Math.max(this.#nowMs, atMs);
  }
}
