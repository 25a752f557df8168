import { randomUUID } from 'node:crypto';
import { onAbort, sleep } from '../common/abort.ts';
import { systemClock } from '../common/clock.ts';
import type { CallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import {
  ApiError,
  isTrackingError,
  QueueFullError,
  RateLimitError,
  TimeoutError,
  type TimeoutPhase,
  type TrackingError,
} from '../errors.ts';
import { LongPauseError, type Permit } from '../limiter/limiter.ts';
import type { AttemptInfo, CallInfo, DoneInfo } from '../observability/hooks.ts';
import type { PreparedCall } from './request.ts';
import { decideRetry, isRateLimited } from './retry.ts';

const ACTIVITIES: Record<TimeoutPhase, string> = {
  queue: 'waiting for a rate limit token',
  headers: 'waiting for an answer',
  body: 'reading the answer',
  backoff: 'waiting to try again',
};

function timeoutError(
  { title }: PreparedCall<unknown>,
  option: 'timeoutMs' | 'totalTimeoutMs',
  timeoutMs: number,
  phase: TimeoutPhase,
  cause?: unknown,
): TimeoutError {
  const message = `${title} ran out of \`${option}\` (${timeoutMs} ms) while ${ACTIVITIES[phase]}`;
  return new TimeoutError(message, { phase, timeoutMs }, cause === undefined ? undefined : { cause });
}

/** A call under way: its attempt, what it waits for, and the time it has left, on the monotonic clock. */
export class CallState<T = unknown> {
  readonly config: Config;
  readonly call: PreparedCall<T>;
  readonly options: CallOptions;
  attempt = 0;
  phase: TimeoutPhase = 'queue';
  /** When the headers of the last response arrived. */
  answeredAt = 0;
  /** When the pause of the last 429 ends; the limiter keeps to it as well, unless it is one that knows no pauses. */
  pausedUntil = 0;
  lastFailure: TrackingError | undefined;
  /** How many requests have left. */
  sent = 0;
  readonly #startedAt = systemClock.now();
  readonly #endsAt: number;
  #isOver = false;
  #callId: string | undefined;
  /** How long this attempt waited in the queue, and how long all of them, in milliseconds. */
  #queuedMs = 0;
  #totalQueuedMs = 0;

  constructor(config: Config, call: PreparedCall<T>, options: CallOptions) {
    this.config = config;
    this.call = call;
    this.options = options;
    this.#endsAt = this.#startedAt + (options.totalTimeoutMs ?? Number.POSITIVE_INFINITY);
  }

  /** What identifies the call; made when somebody asks. */
  get callInfo(): CallInfo {
    this.#callId ??= randomUUID();
    const { endpoint, method, path } = this.call;
    return { callId: this.#callId, endpoint, method, path, baseUrl: this.config.baseUrl };
  }

  get info(): AttemptInfo {
    return { ...this.callInfo, attempt: this.attempt, queuedMs: this.#queuedMs };
  }

  /** How the call went as a whole. */
  done(error: unknown): DoneInfo {
    const durationMs = systemClock.now() - this.#startedAt;
    return { ...this.callInfo, error, attempts: this.sent, queuedMs: this.#totalQueuedMs, durationMs };
  }

  /** The attempt has waited since then for its token. */
  noteQueued(since: number): void {
    this.#queuedMs = systemClock.now() - since;
    this.#totalQueuedMs += this.#queuedMs;
  }

  /** What is left of `totalTimeoutMs`, in milliseconds; Infinity when there is none. */
  get remainingMs(): number {
    // A timer may fire a moment early: what was declared over stays over, so nothing is sent in that moment.
    return this.#isOver ? 0 : Math.max(0, this.#endsAt - systemClock.now());
  }

  /** Ends the call's time: the error to reject with, and why there would have been another attempt. */
  outOfTime(phase: TimeoutPhase): TimeoutError {
    this.#isOver = true;
    const cause = phase === 'queue' || phase === 'backoff' ? this.lastFailure : undefined;
    return timeoutError(this.call, 'totalTimeoutMs', this.options.totalTimeoutMs ?? 0, phase, cause);
  }

  /**
   * Runs a part of the call with a signal that aborts on the caller's abort, after `timeoutMs`, or when the call's time is up.
   * It rejects at that moment, even when what it waits for ignores the signal.
   */
  inTime<Result>(
    part: (signal: AbortSignal) => Promise<Result>,
    timeoutMs = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    const { remainingMs } = this;
    const { signal } = this.options;
    return new Promise((resolve, reject) => {
      const controller = new AbortController();
      let unsubscribe = () => {};
      let timer: ReturnType<typeof setTimeout> | undefined;
      const finish = () => {
        clearTimeout(timer);
        unsubscribe();
      };
      const abort = (reason: unknown) => {
        // Here and not when the part ends: one that ignores its signal may never end, and a timer keeps Node running.
        finish();
        controller.abort(reason);
        reject(reason);
      };
      const onTimeout = () =>
        abort(
          remainingMs <= timeoutMs
            ? this.outOfTime(this.phase)
            : timeoutError(this.call, 'timeoutMs', timeoutMs, this.phase),
        );
      const delayMs = Math.min(timeoutMs, remainingMs);
      if (delayMs !== Number.POSITIVE_INFINITY) timer = setTimeout(onTimeout, delayMs);
      if (signal !== undefined) unsubscribe = onAbort(signal, () => abort(signal.reason));
      part(controller.signal).finally(finish).then(resolve, reject);
    });
  }

  /** Waits, unless the call ends before. */
  async wait(delayMs: number): Promise<void> {
    await sleep(delayMs, this.options.signal);
    if (this.remainingMs === 0) throw this.outOfTime('backoff');
  }
}

/** Rethrows a failure that no retry can follow, and reports a 429. */
function noteFailure(state: CallState, error: unknown): asserts error is TrackingError {
  const { config, options } = state;
  options.signal?.throwIfAborted();
  // A failure that comes back was decided about before: the call did not get as far as another attempt.
  if (!isTrackingError(error) || error === state.lastFailure || state.remainingMs === 0) throw error;
  state.lastFailure = error;
  // A call that is rejected before its attempt, because of a long pause, got no response of its own.
  const wasAnswered = error instanceof ApiError && error.attempts === state.attempt;
  if (wasAnswered && error.status === 429)
    config.hooks.onRateLimit?.({ ...state.info, delayMs: error.retryAfterMs ?? 0 });
}

/** Waits until the attempt that follows a failure, or rethrows what none follows: by p-retry's counts. */
export async function waitForRetry(
  state: CallState,
  failure: { readonly error: unknown; readonly attemptNumber: number; readonly retriesConsumed: number },
): Promise<void> {
  const { error, attemptNumber, retriesConsumed } = failure;
  noteFailure(state, error);
  const { config, call, options, info } = state;
  const history = { backoffs: retriesConsumed, rateLimits: attemptNumber - 1 - retriesConsumed };
  const { retryAmbiguous, retry: policy } = options;
  const decision = decideRetry(error, { retryClass: call.retryClass, retryAmbiguous, policy }, history);
  if (decision.kind === 'stop') throw error;
  const { delayMs } = decision;
  if (delayMs >= state.remainingMs) throw state.outOfTime('backoff');
  config.hooks.onRetry?.({ ...info, error, delayMs });
  const { callId, attempt } = info;
  config.logger.warn(`${error.message}; attempt ${attempt + 1} follows in ${Math.ceil(delayMs)} ms`, {
    callId,
    attempt,
    delayMs,
    reason: error.name,
  });
  // The limiter's own pause makes a call wait after a 429; without a limiter the wait is ours.
  if (isRateLimited(error) && config.limiter !== undefined) state.pausedUntil = state.answeredAt + delayMs;
  else await state.wait(delayMs);
}

/** Waits for a token, at most as long as the call has time; undefined without a limiter. */
export async function waitForToken(state: CallState): Promise<Permit | undefined> {
  const { config, call, options, lastFailure, remainingMs } = state;
  const { limiter } = config;
  state.phase = 'queue';
  if (limiter === undefined) return undefined;
  const acquire = () =>
    limiter.acquire({
      bucket: { baseUrl: config.baseUrl, account: config.account, endpoint: call.endpoint },
      limit: call.limitPerSecond,
      maxLimit: call.maxLimitPerSecond,
      priority: options.priority,
      signal: options.signal,
      maxWaitMs: Number.isFinite(remainingMs) ? remainingMs : undefined,
      maxPauseMs: options.retry.maxRetryAfterMs,
    });
  // For a limiter that may outlast the call: a permit that comes too late is given back.
  const acquireInTime = async (signal: AbortSignal) => {
    const permit = await acquire();
    if (signal.aborted) permit.cancel();
    return permit;
  };
  const since = systemClock.now();
  let permit: Permit | undefined;
  try {
    permit = guardedPermit(await (limiter.honorsDeadlines ? acquire() : state.inTime(acquireInTime)), config);
    if (state.remainingMs === 0) throw state.outOfTime('queue');
    const pauseMs = Math.ceil(state.pausedUntil - systemClock.now());
    state.pausedUntil = 0;
    // A timer may fire a moment early, the limiter's too.
    if (pauseMs > 1) await state.wait(pauseMs);
    return permit;
  } catch (error) {
    // The limiter granted it; what failed came after.
    if (permit !== undefined) {
      permit.cancel();
      throw error;
    }
    // Something was sent, so its failure says more than a queue that is full by now.
    if (error instanceof QueueFullError && lastFailure !== undefined) throw lastFailure;
    if (error instanceof LongPauseError) throw rateLimitErrorOf(state, error.pausedForMs);
    // The limiter knows what was left of the call's time, the error names what the caller allowed.
    throw error instanceof TimeoutError && state.remainingMs < 1 ? state.outOfTime('queue') : error;
  } finally {
    state.noteQueued(since);
  }
}

/** A permit whose failures cost the caller nothing: a request was or will be answered, whatever the limiter makes of it. */
function guardedPermit(permit: Permit, { logger }: Config): Permit {
  const guard = (step: () => void) => {
    try {
      step();
    } catch {
      logger.warn('The limiter failed to take note of a request; the call goes on');
    }
  };
  return {
    tokensLeft: permit.tokensLeft,
    send: () => guard(() => permit.send()),
    report: (feedback) => guard(() => permit.report(feedback)),
    cancel: () => guard(() => permit.cancel()),
  };
}

/** A call that would wait behind a pause longer than `maxRetryAfterMs` rejects as the call that caused the pause did. */
function rateLimitErrorOf({ call, attempt }: CallState, retryAfterMs: number): RateLimitError {
  const { method, path, title } = call;
  const seconds = Math.ceil(retryAfterMs / 1000);
  const message = `${title} is paused by the service for ${seconds} s more, longer than \`retry.maxRetryAfterMs\` allows`;
  const facts = { status: 429, errors: [], requestId: undefined, headers: new Headers(), body: undefined };
  return new RateLimitError(message, { ...facts, method, path, attempts: attempt - 1, retryAfterMs });
}
