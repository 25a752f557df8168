import { linkedController, onAbort } from '../common/abort.ts';
import { setTimeLimit, systemClock } from '../common/clock.ts';
import type { TimeoutError, TimeoutPhase, TrackingError } from '../errors.ts';
import type { RequestOptions } from '../options.ts';
import type { CallErrors } from './call-errors.ts';

/** The time limit of one call. Its signal ends the call when the caller's signal aborts, or after `totalTimeoutMs`. */
export class Deadline {
  /** Undefined if the caller set neither `signal` nor `totalTimeoutMs`. */
  readonly signal: AbortSignal | undefined;
  phase: TimeoutPhase = 'queue';
  /**
   * The failure of the previous attempt. If the time is up before the next request is sent, the failure becomes the `cause` of the
   * TimeoutError.
   */
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
    this.#clearTimer = setTimeLimit(() => this.expire(), totalTimeoutMs);
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
  readonly #startedAt = systemClock.now();
  readonly #expired: Promise<never>;
  readonly #clearTimer: () => void;
  readonly #unsubscribe: (() => void) | undefined;

  constructor(deadline: Deadline, errors: CallErrors, timeoutMs: number) {
    const controller = new AbortController();
    this.signal = controller.signal;
    let reject: (reason: unknown) => void = () => {};
    this.#expired = new Promise<never>((_resolve, rejectExpired) => {
      reject = rejectExpired;
    });
    // Nobody waits for it between two races.
    this.#expired.catch(() => {});
    const expire = (reason: unknown) => {
      // Reject first: the work that the signal aborts rejects with an error of its own.
      reject(reason);
      controller.abort(reason);
    };
    const expireAlone = () => expire(errors.createTimeoutError('timeoutMs', timeoutMs, deadline.phase));
    this.#clearTimer = setTimeLimit(expireAlone, timeoutMs);
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

  end(): void {
    this.#clearTimer();
    this.#unsubscribe?.();
  }
}
