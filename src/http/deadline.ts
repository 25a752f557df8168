import { onAbort } from '../common/timing.ts';
import { TimeoutError, type TimeoutPhase } from '../errors.ts';

function outOfTime(
  option: 'timeoutMs' | 'totalTimeoutMs',
  timeoutMs: number,
  phase: TimeoutPhase,
  cause?: unknown,
): TimeoutError {
  const doing: Record<TimeoutPhase, string> = {
    queue: 'waiting for a rate limit token',
    headers: 'waiting for an answer',
    body: 'reading the answer',
    backoff: 'waiting to try again',
  };
  const options = cause === undefined ? undefined : { cause };
  return new TimeoutError(
    `Ran out of \`${option}\` (${timeoutMs} ms) while ${doing[phase]}`,
    { phase, timeoutMs },
    options,
  );
}

/** The time a whole call has, on the monotonic clock. */
export class CallDeadline {
  readonly #totalTimeoutMs: number | undefined;
  readonly #endsAt: number;
  #isOver = false;

  constructor(totalTimeoutMs: number | undefined) {
    this.#totalTimeoutMs = totalTimeoutMs;
    this.#endsAt =
      totalTimeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + totalTimeoutMs;
  }

  /** What is left, in milliseconds; undefined when the call has all the time in the world. */
  get remainingMs(): number | undefined {
    if (this.#totalTimeoutMs === undefined) return undefined;
    // A timer may fire a moment early: what was declared over stays over, so nothing is sent in that moment.
    return this.#isOver ? 0 : Math.max(0, this.#endsAt - performance.now());
  }

  /** Ends the call's time: the error to reject with; `cause` is the failure it would have tried again after. */
  error(phase: TimeoutPhase, cause?: unknown): TimeoutError {
    this.#isOver = true;
    return outOfTime('totalTimeoutMs', this.#totalTimeoutMs ?? 0, phase, cause);
  }

  /**
   * Runs one attempt with a signal that aborts on the caller's abort, after `timeoutMs`, or when the call's time is up.
   * It rejects at that moment, even when what the attempt waits for ignores the signal.
   */
  runAttempt<T>(
    options: {
      readonly timeoutMs: number;
      readonly callerSignal: AbortSignal | undefined;
      readonly phase: () => TimeoutPhase;
    },
    attempt: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { timeoutMs, callerSignal, phase } = options;
    const remainingMs = this.remainingMs ?? Number.POSITIVE_INFINITY;
    return new Promise((resolve, reject) => {
      const controller = new AbortController();
      let takeBack = () => {};
      const finish = () => {
        clearTimeout(timer);
        takeBack();
      };
      const abort = (reason: unknown) => {
        // Here and not when the attempt ends: one that ignores its signal may never end, and a timer keeps Node running.
        finish();
        controller.abort(reason);
        reject(reason);
      };
      const onTime = () =>
        abort(remainingMs <= timeoutMs ? this.error(phase()) : outOfTime('timeoutMs', timeoutMs, phase()));
      const timer = setTimeout(onTime, Math.min(timeoutMs, remainingMs));
      if (callerSignal !== undefined) takeBack = onAbort(callerSignal, () => abort(callerSignal.reason));
      attempt(controller.signal).then(
        (value) => {
          finish();
          resolve(value);
        },
        (error) => {
          finish();
          reject(error);
        },
      );
    });
  }
}
