import { onAbort, sleep } from '../common/abort.ts';
import { MAX_TIMER_MS, systemClock } from '../common/clock.ts';
import { TimeoutError, type TimeoutPhase, type TrackingError } from '../errors.ts';

const ACTIVITIES: Record<TimeoutPhase, string> = {
  queue: 'waiting for a rate limit token',
  headers: 'waiting for a response',
  body: 'reading the response',
  backoff: 'waiting to try again',
};

/**
 * The time limit of one call.
 *
 * Its signal joins the caller's signal with `totalTimeoutMs`. The limiter, p-retry and every attempt get that one signal,
 * and the call rejects with its reason.
 */
export class Deadline {
  /** The current phase of the call, which a `TimeoutError` names. */
  phase: TimeoutPhase = 'queue';
  /** The last failure that is repeated. A timeout before the next request leaves has it as its cause. */
  lastFailure: TrackingError | undefined;
  /** Undefined if nothing can end the call early. */
  readonly signal: AbortSignal | undefined;
  readonly #title: string;
  readonly #totalTimeoutMs: number | undefined;
  readonly #endsAt: number = Number.POSITIVE_INFINITY;
  readonly #controller: AbortController | undefined;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #unsubscribe: (() => void) | undefined;

  /**
   * @param title - method and URL, as messages show them
   * @param limits - the caller's signal, and the time for the whole call in milliseconds
   */
  constructor(
    title: string,
    limits: { signal?: AbortSignal | undefined; totalTimeoutMs?: number | undefined },
  ) {
    const { signal, totalTimeoutMs } = limits;
    this.#title = title;
    this.#totalTimeoutMs = totalTimeoutMs;
    if (signal === undefined && totalTimeoutMs === undefined) return;
    const controller = new AbortController();
    this.#controller = controller;
    this.signal = controller.signal;
    if (signal !== undefined) this.#unsubscribe = onAbort(signal, () => controller.abort(signal.reason));
    if (totalTimeoutMs === undefined) return;
    this.#endsAt = systemClock.now() + totalTimeoutMs;
    this.#timer = setTimeout(() => this.expire(), totalTimeoutMs);
  }

  /** The rest of `totalTimeoutMs`, in milliseconds; Infinity without one. */
  get remainingMs(): number {
    return this.#endsAt - systemClock.now();
  }

  /** Ends the call because its time is up, and returns the error that it rejects with. */
  expire(): TimeoutError {
    const isBetweenAttempts = this.phase === 'queue' || this.phase === 'backoff';
    const error = this.#timeoutError(
      'totalTimeoutMs',
      this.#totalTimeoutMs ?? 0,
      isBetweenAttempts ? this.lastFailure : undefined,
    );
    this.#controller?.abort(error);
    return error;
  }

  /** Waits until a moment of the monotonic clock; rejects with the signal's reason when the call ends before. */
  async sleepUntil(moment: number): Promise<void> {
    for (let delayMs = moment - systemClock.now(); delayMs > 0; delayMs = moment - systemClock.now()) {
      await sleep(Math.min(Math.ceil(delayMs), MAX_TIMER_MS), this.signal);
    }
  }

  /**
   * Runs one attempt with a signal of its own, which ends with the call or after `timeoutMs`.
   *
   * It rejects at that moment even if the attempt ignores its signal, because a key function, a `fetch` or a body of the
   * caller may never end.
   */
  withTimeout<T>(timeoutMs: number, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const controller = new AbortController();
      let unsubscribe = () => {};
      const settle = <Value>(end: (value: Value) => void, value: Value) => {
        clearTimeout(timer);
        unsubscribe();
        end(value);
      };
      const abort = (reason: unknown) => {
        controller.abort(reason);
        settle(reject, reason);
      };
      const timer = setTimeout(() => abort(this.#timeoutError('timeoutMs', timeoutMs)), timeoutMs);
      const { signal } = this;
      if (signal !== undefined) unsubscribe = onAbort(signal, () => abort(signal.reason));
      attempt(controller.signal).then(
        (value) => settle(resolve, value),
        (error) => settle(reject, error),
      );
    });
  }

  /** Stops the timer and the listener. */
  dispose(): void {
    clearTimeout(this.#timer);
    this.#unsubscribe?.();
  }

  #timeoutError(
    option: 'timeoutMs' | 'totalTimeoutMs',
    timeoutMs: number,
    cause?: TrackingError,
  ): TimeoutError {
    const { phase } = this;
    const message = `${this.#title} ran out of \`${option}\` (${timeoutMs} ms) while ${ACTIVITIES[phase]}`;
    return new TimeoutError(message, { phase, timeoutMs }, cause === undefined ? undefined : { cause });
  }
}
