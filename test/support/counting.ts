/** `fixed` counts by fixed windows, `sliding` keeps a log, and `counter` weighs two fixed windows. */
export type CountingMode = 'fixed' | 'sliding' | 'counter';

const WINDOW_MS = 1_000;

/** Counts the requests of one account to one endpoint. Times are in milliseconds of a monotonic clock. */
export abstract class Counter {
  limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Counts a request if the limit allows it. */
  tryCount(now: number): boolean {
    if (this.remaining(now) < 1) return false;
    this.count(now);
    return true;
  }

  /** Returns how many requests the limit still allows. */
  abstract remaining(now: number): number;
  /** Returns the milliseconds until at least one more request is allowed. */
  abstract resetMs(now: number): number;
  protected abstract count(now: number): void;
}

/** Windows begin on full seconds, and each begins with a count of 0. */
class FixedWindow extends Counter {
  #window = 0;
  #count = 0;
  #previousCount = 0;

  remaining(now: number): number {
    const window = Math.floor(now / WINDOW_MS);
    if (window !== this.#window) {
      this.#previousCount = window === this.#window + 1 ? this.#count : 0;
      this.#count = 0;
      this.#window = window;
    }
    return Math.max(0, Math.floor(this.limit - this.#count - this.carryOver(this.#previousCount, now)));
  }

  resetMs(now: number): number {
    return WINDOW_MS - (now % WINDOW_MS);
  }

  protected count(): void {
    this.#count += 1;
  }

  /** Returns how many requests of the previous window still count. */
  protected carryOver(_previousCount: number, _now: number): number {
    return 0;
  }
}

/** Approximates a sliding log: weights the previous window by the part of it that is less than a second old. */
class SlidingCounter extends FixedWindow {
  protected override carryOver(previousCount: number, now: number): number {
    return previousCount * (1 - (now % WINDOW_MS) / WINDOW_MS);
  }
}

/** Looks back exactly one window from every request, which is the strictest way to count. */
class SlidingLog extends Counter {
  #counted: number[] = [];

  remaining(now: number): number {
    this.#counted = this.#counted.filter((countedAt) => countedAt > now - WINDOW_MS);
    return Math.max(0, this.limit - this.#counted.length);
  }

  resetMs(now: number): number {
    const blocking = this.#counted[this.#counted.length - this.limit];
    return blocking === undefined ? 0 : blocking + WINDOW_MS - now;
  }

  protected count(now: number): void {
    this.#counted.push(now);
  }
}

const COUNTERS = { fixed: FixedWindow, sliding: SlidingLog, counter: SlidingCounter };

export function makeCounter(mode: CountingMode, limit: number): Counter {
  return new COUNTERS[mode](limit);
}
