import pThrottle from 'p-throttle';

/** A number of polls per second, evenly spread: each starts at least `1 / maxPerSecond` after the one before. */
export class PollBudget {
  readonly #throttled: (start: () => void) => Promise<void>;
  #isAsked = false;

  /** @param signal - takes back what was asked for; no timer is left */
  constructor(maxPerSecond: number, signal: AbortSignal) {
    const throttle = pThrottle({ limit: 1, interval: 1000 / maxPerSecond, strict: true, signal });
    this.#throttled = throttle(async (start: () => void) => start());
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
    this.#throttled(start).then(answered, answered);
  }
}
