import type { Clock } from '../../../src/redis/old-allowance.ts';

interface PendingTimer {
  readonly firesAt: number;
  readonly callback: () => void;
  isLively: boolean;
  /** As timers of Node have it: a program that has nothing else to do need not wait for this one. */
  unref(): void;
}

/** A clock that moves only when a test says so. */
export class ManualClock implements Clock {
  readonly #timers = new Set<PendingTimer>();
  #nowMs = 5_000;
  #wallOffsetMs = Date.UTC(2026, 0, 1);
  /** How much too soon timers fire, in milliseconds. */
  earlyByMs = 0;
  /** Every delay that was asked for, in milliseconds. */
  readonly requestedDelaysMs: number[] = [];

  now(): number {
    return this.#nowMs;
  }

  wallNow(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  setTimeout(callback: () => void, delayMs: number): PendingTimer {
    this.requestedDelaysMs.push(delayMs);
    // A real timer never fires sooner than after 1 ms.
    const firesAt = this.#nowMs + Math.max(0.5, delayMs - this.earlyByMs);
    const timer: PendingTimer = {
      firesAt,
      callback,
      isLively: true,
      unref: () => {
        timer.isLively = false;
      },
    };
    this.#timers.add(timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    for (const pending of this.#timers) if (pending === timer) this.#timers.delete(pending);
  }

  get timerCount(): number {
    return this.#timers.size;
  }

  /** Timers that would keep a program alive. */
  get livelyTimerCount(): number {
    return [...this.#timers].filter(({ isLively }) => isLively).length;
  }

  /** The time of the next timer; undefined when none runs. */
  get nextTimerAt(): number | undefined {
    return this.#timers.size === 0 ? undefined : Math.min(...[...this.#timers].map((timer) => timer.firesAt));
  }

  /** Moves the wall clock alone, as an administrator or a time server does. */
  stepWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  /** Lets time pass without any timer noticing, as a blocked event loop does. */
  block(ms: number): void {
    this.#nowMs += ms;
  }

  /** Moves to a moment, fires the timers on the way in their order, and lets promises settle. */
  async moveTo(atMs: number): Promise<void> {
    await settled();
    for (;;) {
      const next = this.nextTimerAt;
      if (next === undefined || next > atMs) break;
      this.#nowMs = Math.max(this.#nowMs, next);
      for (const timer of this.#timers) {
        if (timer.firesAt !== next) continue;
        this.#timers.delete(timer);
        timer.callback();
      }
      await settled();
    }
    this.#nowMs = Math.max(this.#nowMs, atMs);
  }

  async advance(ms: number): Promise<void> {
    await this.moveTo(this.#nowMs + ms);
  }
}

/** Resolves when every promise reaction that can run has run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
