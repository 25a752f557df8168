interface Timer {
  readonly firesAt: number;
  readonly callback: () => void;
}

/** After this many turns of the event loop without a timer, all work counts as done. */
const MAX_IDLE_TURNS = 1000;

/**
 * Replaces the process's timers and clocks, so that a day takes only as long as its work. After each turn of the event
 * loop, time moves on to the next timer.
 */
export class VirtualClock {
  /** There are dozens of timers at most, so a plain scan finds the next one. */
  readonly #timers = new Set<Timer>();
  #nowMs = 1_000_000;

  /** Virtual time in milliseconds. */
  get now(): number {
    return this.#nowMs;
  }

  get timerCount(): number {
    return this.#timers.size;
  }

  install(): void {
    const epochMs = Date.UTC(2026, 0, 1);
    performance.now = () => this.#nowMs;
    Date.now = () => epochMs + this.#nowMs;
    const set = (callback: () => void, delayMs = 0): Timer => {
      // Node also truncates a delay to whole milliseconds and waits for at least one.
      const timer = { firesAt: this.#nowMs + Math.max(1, Math.trunc(delayMs)), callback };
      this.#timers.add(timer);
      return timer;
    };
    const clear = (timer: Timer | undefined) => timer && this.#timers.delete(timer);
    // The package and the bench only set callbacks without arguments and hand the timer back.
    globalThis.setTimeout = set as unknown as typeof setTimeout;
    globalThis.clearTimeout = clear as unknown as typeof clearTimeout;
  }

  /** Lets virtual time pass until `isOver`, or until no timer is left and none is set any more. */
  async run(isOver: () => boolean): Promise<void> {
    let idleTurns = 0;
    while (idleTurns < MAX_IDLE_TURNS) {
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
      if (isOver()) return;
      const next = this.#findNext();
      // The body of a response takes several turns of the event loop and no timer.
      idleTurns = next === undefined ? idleTurns + 1 : 0;
      if (next === undefined) continue;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.firesAt);
      next.callback();
    }
  }

  /** Lets virtual time pass until a promise settles. */
  async runUntil<T>(work: PromiseLike<T>): Promise<T> {
    let isDone = false;
    const finish = () => {
      isDone = true;
    };
    work.then(finish, finish);
    await this.run(() => isDone);
    return await work;
  }

  #findNext(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (next === undefined || timer.firesAt < next.firesAt) next = timer;
    return next;
  }
}
