/** `fixed` window, `sliding` log, or `counter`: sliding counter over two fixed windows. */
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

  /** Requests that the limit still allows. */
  abstract remaining(now: number): number;
  /** Milliseconds until at least one more request is allowed. */
  abstract resetMs(now: number): number;
  protected abstract count(now: number): void;
}

/** Windows begin on full seconds, and the count starts again in each of them. */
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

  /** How much of the previous window still counts. */
  protected carryOver(_previousCount: number, _now: number): number {
    return 0;
  }
}

/** Approximates a sliding log: the previous window counts by the part of it that is less than a second ago. */
class SlidingCounter extends FixedWindow {
  protected override carryOver(previousCount: number, now: number): number {
    return previousCount * (1 - (now % WINDOW_MS) / WINDOW_MS);
  }
}

/** The strictest way: looks back exactly one window from every request. */
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
