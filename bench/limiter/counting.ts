/** The ways in which services are known to count requests per window. */
export const COUNTING_MODES = ['fixed', 'sliding', 'counter', 'bucket'] as const;

/** `fixed` window, `sliding` log, `counter`: sliding counter over two fixed windows, token `bucket`. */
export type CountingMode = (typeof COUNTING_MODES)[number];

const WINDOW_MS = 1_000;

/** Counts the requests of one account to one endpoint. Times are in milliseconds of a monotonic clock. */
export interface Counter {
  limit: number;
  /** Counts a request if the limit allows it. */
  tryCount(now: number): boolean;
  /** Requests that the limit still allows right now. */
  remaining(now: number): number;
  /** How long until at least one more is allowed, in milliseconds. */
  resetMs(now: number): number;
}

/** Windows begin on full seconds; what an account used up is forgotten at the next one. */
class FixedWindow implements Counter {
  limit: number;
  #window = 0;
  #count = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  tryCount(now: number): boolean {
    if (this.remaining(now) < 1) return false;
    this.#count += 1;
    return true;
  }

  remaining(now: number): number {
    const window = Math.floor(now / WINDOW_MS);
    if (window !== this.#window) this.#count = 0;
    this.#window = window;
    return Math.max(0, this.limit - this.#count);
  }

  resetMs(now: number): number {
    return WINDOW_MS - (now % WINDOW_MS);
  }
}

/** The strictest way: looks back exactly one window from every request. */
class SlidingLog implements Counter {
  limit: number;
  #counted: number[] = [];

  constructor(limit: number) {
    this.limit = limit;
  }

  tryCount(now: number): boolean {
    if (this.remaining(now) < 1) return false;
    this.#counted.push(now);
    return true;
  }

  remaining(now: number): number {
    this.#counted = this.#counted.filter((countedAt) => countedAt > now - WINDOW_MS);
    return Math.max(0, this.limit - this.#counted.length);
  }

  resetMs(now: number): number {
    const blocking = this.#counted[this.#counted.length - this.limit];
    return blocking === undefined ? 0 : blocking + WINDOW_MS - now;
  }
}

/** The cheap approximation of a sliding log: the last fixed window counts by the part of it that is still in view. */
class SlidingCounter implements Counter {
  limit: number;
  #window = 0;
  #count = 0;
  #previousCount = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  tryCount(now: number): boolean {
    if (this.remaining(now) < 1) return false;
    this.#count += 1;
    return true;
  }

  remaining(now: number): number {
    const window = Math.floor(now / WINDOW_MS);
    if (window !== this.#window) {
      this.#previousCount = window === this.#window + 1 ? this.#count : 0;
      this.#count = 0;
      this.#window = window;
    }
    const stillInView = 1 - (now % WINDOW_MS) / WINDOW_MS;
    return Math.max(0, Math.floor(this.limit - this.#count - this.#previousCount * stillInView));
  }

  resetMs(now: number): number {
    return WINDOW_MS - (now % WINDOW_MS);
  }
}

/** A bucket of `limit` tokens that fills evenly. */
class FillingBucket implements Counter {
  limit: number;
  #tokens: number;
  #filledAt = 0;

  constructor(limit: number) {
    this.limit = limit;
    this.#tokens = limit;
  }

  tryCount(now: number): boolean {
    if (this.remaining(now) < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  remaining(now: number): number {
    const gained = ((now - this.#filledAt) / WINDOW_MS) * this.limit;
    this.#tokens = Math.min(this.limit, this.#tokens + gained);
    this.#filledAt = now;
    return Math.floor(this.#tokens);
  }

  resetMs(now: number): number {
    this.remaining(now);
    return Math.max(0, ((1 - this.#tokens) / this.limit) * WINDOW_MS);
  }
}

const COUNTERS: Record<CountingMode, new (limit: number) => Counter> = {
  fixed: FixedWindow,
  sliding: SlidingLog,
  counter: SlidingCounter,
  bucket: FillingBucket,
};

export function makeCounter(mode: CountingMode, limit: number): Counter {
  return new COUNTERS[mode](limit);
}
