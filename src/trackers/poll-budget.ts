import pThrottle from 'p-throttle';
import { systemClock } from '../common/timing.ts';

type Throttled = (start: () => void) => Promise<void>;

/** A number of polls per second, evenly spread: each starts at least `1 / maxPerSecond` after the one before. */
export class PollBudget {
  readonly #intervalMs: number;
  readonly #signal: AbortSignal;
  #throttled: Throttled;
  /** When the last poll started, on both clocks. */
  #startedAt: { readonly wallMs: number; readonly ms: number } | undefined;
  #isAsked = false;

  /** @param signal - takes back what was asked for; no timer is left */
  constructor(maxPerSecond: number, signal: AbortSignal) {
    this.#intervalMs = 1000 / maxPerSecond;
    this.#signal = signal;
    this.#throttled = this.#throttle();
  }

  /** True while somebody waits for the budget. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  /**
   * Calls `start` when there is budget for one more poll, and `onAnswer` after that or when the signal aborts. There is
   * one question at a time: a queue would hold a timer for each, and decide too early who is polled next.
   */
  ask(start: () => void, onAnswer: () => void): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    const answered = () => {
      this.#isAsked = false;
      onAnswer();
    };
    this.#forgetTheFuture();
    this.#throttled(start).then(answered, answered);
  }

  #throttle(): Throttled {
    const throttle = pThrottle({
      limit: 1,
      interval: this.#intervalMs,
      strict: true,
      signal: this.#signal,
    });
    return throttle(async (start: () => void) => {
      this.#startedAt = { wallMs: systemClock.wallNow(), ms: systemClock.now() };
      start();
    });
  }

  /**
   * p-throttle remembers the last start by the wall clock. Once that clock is set back behind it, it would wait until the
   * clock is there again, which can take hours: then a new one takes over.
   */
  #forgetTheFuture(): void {
    const last = this.#startedAt;
    if (last === undefined || systemClock.wallNow() >= last.wallMs) return;
    this.#throttled = this.#throttle();
    // Uses up the new one's first turn, so that no poll comes too early.
    if (systemClock.now() - last.ms < this.#intervalMs) void this.#throttled(() => {});
  }
}
