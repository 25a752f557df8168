import { linkedController, onAbort } from '../common/abort.ts';
import { endAfterCatchingUp, systemClock } from '../common/clock.ts';
import type { TimeoutError, TimeoutPhase, TrackingError } from '../errors.ts';
import type { RequestOptions } from '../options.ts';
import type { CallErrors } from './call-errors.ts';

/**
 * Calls `expire` after `limitMs`. If the timer fires late while a request is open, the response may have arrived already, so it is
 * read first.
 *
 * @returns a function that clears the timer
 */
function setTimeLimit(expire: () => void, limitMs: number, deadline: Deadline): () => void {
  const endsAt = systemClock.now() + limitMs;
  let timer = systemClock.setTimeout(() => {
    const extraMs = deadline.isRequestOpen ? endAfterCatchingUp(endsAt) - systemClock.now() : 0;
    if (extraMs > 0) timer = systemClock.setTimeout(expire, extraMs);
    else expire();
  }, limitMs);
  return () => systemClock.clearTimeout(timer);
}

/** The time limit of one call. Its signal ends the call when the caller's signal aborts, or after `totalTimeoutMs`. */
export class Deadline {
  /** Undefined if the caller set neither `signal` nor `totalTimeoutMs`. */
  readonly signal: AbortSignal | undefined;
  phase: TimeoutPhase = 'queue';
  /** True while a request was sent and its attempt has not ended. */
  isRequestOpen = false;
  /** The failure of the previous attempt. If the time is up in the queue or in a back-off, it becomes the `cause` of the TimeoutError. */
  lastFailure: TrackingError | undefined;
  readonly #errors: CallErrors;
  readonly #totalTimeoutMs: number | undefined;
  readonly #endsAt: number = Number.POSITIVE_INFINITY;
  readonly #controller: AbortController | undefined;
  readonly #clearTimer: (() => void) | undefined;
  readonly #unsubscribe: (() => void) | undefined;

  constructor(
    errors: CallErrors,
    { signal, totalTimeoutMs }: Pick<RequestOptions, 'signal' | 'totalTimeoutMs'>,
  ) {
    this.#errors = errors;
    this.#totalTimeoutMs = totalTimeoutMs;
    if (signal === undefined && totalTimeoutMs === undefined) return;
    const { controller, unsubscribe } = linkedController(signal);
    this.#controller = controller;
    this.signal = controller.signal;
    this.#unsubscribe = unsubscribe;
    if (totalTimeoutMs === undefined) return;
    this.#endsAt = systemClock.now() + totalTimeoutMs;
    this.#clearTimer = setTimeLimit(() => this.expire(), totalTimeoutMs, this);
  }

  /** True if the call has ended because of the caller's signal or `totalTimeoutMs`. */
  get isOver(): boolean {
    return this.signal?.aborted === true;
  }

  /** The rest of `totalTimeoutMs`, in milliseconds; `Infinity` without that option. */
  get remainingMs(): number {
    return this.#endsAt - systemClock.now();
  }

  /** Ends the call because its time is up, and returns the error that it rejects with. */
  expire(): TimeoutError {
    const isBetweenAttempts = this.phase === 'queue' || this.phase === 'backoff';
    const lastFailure = isBetweenAttempts ? this.lastFailure : undefined;
    const timeoutMs = this.#totalTimeoutMs ?? 0;
    const error = this.#errors.createTimeoutError('totalTimeoutMs', timeoutMs, this.phase, lastFailure);
    this.#controller?.abort(error);
    return error;
  }

  dispose(): void {
    this.#clearTimer?.();
    this.#unsubscribe?.();
  }
}

/** The time limit of one attempt: `timeoutMs`, and the deadline of its call. */
export class AttemptLimit {
  /** Aborts when the time is up. */
  readonly signal: AbortSignal;
  readonly #deadline: Deadline;
  readonly #startedAt = systemClock.now();
  readonly #timeoutMs: number;
  readonly #expireAlone: () => void;
  readonly #expired: Promise<never>;
  #settle: (reason: unknown) => void = () => {};
  readonly #clearTimer: () => void;
  readonly #unsubscribe: (() => void) | undefined;

  constructor(deadline: Deadline, errors: CallErrors, timeoutMs: number) {
    const controller = new AbortController();
    this.signal = controller.signal;
    this.#expired = new Promise<never>((_resolve, reject) => {
      this.#settle = reject;
    });
    // Nobody waits for it between two races.
    this.#expired.catch(() => {});
    const expire = (reason: unknown) => {
      // Reject first: the work that the signal aborts rejects with an error of its own.
      this.#settle(reason);
      controller.abort(reason);
    };
    this.#expireAlone = () => expire(errors.createTimeoutError('timeoutMs', timeoutMs, deadline.phase));
    this.#deadline = deadline;
    this.#timeoutMs = timeoutMs;
    this.#clearTimer = setTimeLimit(this.#expireAlone, timeoutMs, deadline);
    const { signal } = deadline;
    this.#unsubscribe = signal && onAbort(signal, () => expire(signal.reason));
  }

  /** Time since the attempt began, in milliseconds. */
  get elapsedMs(): number {
    return systemClock.now() - this.#startedAt;
  }

  /** Rejects in time even if the work ignores the signal, because a key function, a `fetch`, a body or a hook may never end. */
  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#expired]);
  }

  /**
   * Call it right before the request is sent. A late timer must not let a request be sent after its time.
   *
   * @throws the reason of the signal, if the time is up
   */
  openRequest(): void {
    if (this.#deadline.remainingMs <= 0) this.#deadline.expire();
    else if (this.elapsedMs >= this.#timeoutMs) this.#expireAlone();
    this.signal.throwIfAborted();
    this.#deadline.isRequestOpen = true;
  }

  end(): void {
    this.#deadline.isRequestOpen = false;
    // A promise that never settles would keep the results of its races.
    this.#settle(undefined);
    this.#clearTimer();
    this.#unsubscribe?.();
  }
}
