interface Timer {
  readonly firesAt: number;
  /** Tells who was set first among timers of the same moment. */
  readonly turn: number;
  /** Undefined once it is fired or cleared: what is dead holds nothing. */
  callback: (() => void) | undefined;
}

/** Turns of the event loop without a timer after which nothing more is expected. */
const MAX_IDLE_TURNS = 1000;

/** The process's own timers and clocks, for what a bench measures in real time. */
export const real = {
  now: performance.now.bind(performance),
  setImmediate: globalThis.setImmediate,
};

/**
 * Replaces the process's timers and clocks, so that a day passes in as long as its work takes. Time moves only when
 * everything that can run without it has run.
 */
export class VirtualClock {
  readonly #heap: Timer[] = [];
  #nowMs = 1_000_000;
  #turns = 0;
  #live = 0;

  /** Milliseconds on the virtual clock. */
  get now(): number {
    return this.#nowMs;
  }

  /** Timers that are set. */
  get timerCount(): number {
    return this.#live;
  }

  install(): void {
    const epochMs = Date.UTC(2026, 0, 1);
    performance.now = () => this.#nowMs;
    Date.now = () => epochMs + this.#nowMs;
    // Only what the package and the bench use: a callback without arguments, and the handle back.
    globalThis.setTimeout = ((callback: () => void, delayMs = 0) =>
      this.#set(callback, delayMs)) as unknown as typeof setTimeout;
    globalThis.clearTimeout = ((timer: Timer | undefined) =>
      this.#clear(timer)) as unknown as typeof clearTimeout;
  }

  /** Lets virtual time pass until `isOver`, or until no timer is left and none is set any more. */
  async run(isOver: () => boolean): Promise<void> {
    let idleTurns = 0;
    while (idleTurns < MAX_IDLE_TURNS) {
      await new Promise<void>((resolve) => {
        real.setImmediate(resolve);
      });
      if (isOver()) return;
      const timer = this.#pop();
      // The body of a response takes several turns of the event loop and no timer.
      idleTurns = timer === undefined ? idleTurns + 1 : 0;
      if (timer === undefined) continue;
      this.#nowMs = Math.max(this.#nowMs, timer.firesAt);
      timer.callback();
    }
  }

  /** Lets an amount of virtual time pass. */
  async pass(ms: number): Promise<void> {
    const endsAt = this.#nowMs + ms;
    this.#set(() => {}, ms);
    await this.run(() => this.#nowMs >= endsAt);
  }

  #set(callback: () => void, delayMs: number): Timer {
    this.#turns += 1;
    // As Node does: whole milliseconds, and never sooner than after one.
    const waitMs = Math.max(1, Math.trunc(delayMs));
    const timer = { firesAt: this.#nowMs + waitMs, turn: this.#turns, callback };
    this.#live += 1;
    this.#push(timer);
    return timer;
  }

  #clear(timer: Timer | undefined): void {
    if (timer?.callback === undefined) return;
    timer.callback = undefined;
    this.#live -= 1;
  }

  #isBefore(one: Timer, other: Timer): boolean {
    return one.firesAt < other.firesAt || (one.firesAt === other.firesAt && one.turn < other.turn);
  }

  #push(timer: Timer): void {
    let place = this.#heap.length;
    this.#heap.push(timer);
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || !this.#isBefore(timer, parent)) break;
      this.#heap[place] = parent;
      place = above;
    }
    this.#heap[place] = timer;
  }

  #pop(): { readonly callback: () => void; readonly firesAt: number } | undefined {
    for (;;) {
      const first = this.#heap[0];
      const last = this.#heap.pop();
      if (first === undefined || last === undefined) return undefined;
      if (first !== last) this.#sink(last);
      const { callback, firesAt } = first;
      if (callback === undefined) continue;
      this.#clear(first);
      return { callback, firesAt };
    }
  }

  #sink(timer: Timer): void {
    let place = 0;
    for (;;) {
      const left = this.#heap[2 * place + 1];
      const right = this.#heap[2 * place + 2];
      const isRight = left !== undefined && right !== undefined && this.#isBefore(right, left);
      const child = isRight ? right : left;
      if (child === undefined || !this.#isBefore(child, timer)) break;
      this.#heap[place] = child;
      place = 2 * place + (isRight ? 2 : 1);
    }
    this.#heap[place] = timer;
  }
}

/** Lets virtual time pass until work is done. */
export async function inVirtualTime<T>(clock: VirtualClock, work: PromiseLike<T>): Promise<T> {
  let isDone = false;
  const finish = () => {
    isDone = true;
  };
  const result = Promise.resolve(work);
  result.then(finish, finish);
  await clock.run(() => isDone);
  return await result;
}
