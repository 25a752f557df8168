import { randomUUID } from 'node:crypto';
import pRetry from 'p-retry';
import { sleep, systemClock } from '../common/clock.ts';
import { type CallOptions, resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName } from '../endpoints.ts';
import {
  ApiError,
  type CallSite,
  QueueFullError,
  QuotaExceededError,
  type TrackingError,
} from '../errors.ts';
import { LongPauseError, type Permit } from '../limiter/limiter.ts';
import { CallReport } from '../observability/call-report.ts';
import type { BulkRequestOptions } from '../options.ts';
import { ApiPromise, type CallOutcome } from './api-promise.ts';
import { CallErrors, captureCallSite } from './call-errors.ts';
import { type CallInput, type EndpointResult, type PreparedRequest, prepareRequest } from './prepare.ts';
import { readOutcome } from './response.ts';
import { isRateLimited, isRetryable, requestMayBeDone } from './retry.ts';
import { Deadline, sendRequest } from './send.ts';

const MIN_BACKOFF_MS = 500;

/** Input and options are read now, so later changes to them do no harm. */
export function callEndpoint<Name extends EndpointName>(
  config: Config,
  name: Name,
  input: CallInput,
  options: BulkRequestOptions | undefined,
  callSite?: CallSite,
): ApiPromise<EndpointResult<Name>> {
  return startCall(config, name, options, () => prepareRequest(config, name, input), callSite);
}

export function startCall<T>(
  config: Config,
  method: EndpointName | 'request',
  options: BulkRequestOptions | undefined,
  prepare: () => PreparedRequest<T>,
  callSite: CallSite = captureCallSite(startCall),
): ApiPromise<T> {
  try {
    const callOptions =
      options === undefined ? config.callDefaults : resolveCallOptions(config, method, options);
    const outcome = execute(config, prepare(), callOptions, { callSite });
    return new ApiPromise(outcome.catch(rethrowError));
  } catch (error) {
    return new ApiPromise(Promise.reject(error));
  }
}

/**
 * Wraps the error of a call together with `callMayBeDone`, because the error can be an abort reason of the caller, which must stay
 * unchanged. The caller gets only the error.
 */
export class CallFailure {
  /** The error that the call rejects with. */
  readonly error: unknown;
  /** True if the service may have carried out a request of this call. Only `createMany` reads it. */
  readonly callMayBeDone: boolean;

  constructor(error: unknown, callMayBeDone: boolean) {
    this.error = error;
    this.callMayBeDone = callMayBeDone;
  }
}

function rethrowError(failure: CallFailure): never {
  throw failure.error;
}

interface CallContext {
  /** Where the method was called. */
  readonly callSite?: CallSite;
  /** Called right before each request is sent. */
  readonly onSend?: () => void;
}

/**
 * Runs a whole call. Each attempt takes a permit, sends the request and reads the response; p-retry repeats attempts.
 *
 * @throws CallFailure, and nothing else
 */
export async function execute<T>(
  config: Config,
  request: PreparedRequest<T>,
  options: CallOptions,
  { callSite, onSend }: CallContext,
): Promise<CallOutcome<T>> {
  const { retries, maxBackoffMs } = options.retry;
  const { title, endpoint, method, path } = request;
  const { baseUrl, hooks, logger } = config;
  const timeoutMs = options.timeoutMs ?? config.timeoutMs[request.timeoutClass];
  const call = { callId: randomUUID(), endpoint, method, path };
  let attempts = 0;
  const errors = new CallErrors(title, () => ({ ...call, attempts }), callSite);
  const deadline = new Deadline(errors, options);
  const report = new CallReport(title, { ...call, baseUrl }, hooks, logger);
  let retry: ReturnType<typeof planRetry> | undefined;
  let callMayBeDone = false;

  async function attempt(attemptNumber: number): Promise<CallOutcome<T>> {
    const resumeAt = retry?.resumeAt ?? 0;
    // p-retry has waited for the backoff; wait for the rest of `Retry-After`. A timer can fire up to a millisecond early.
    while (systemClock.now() < resumeAt)
      await sleep(Math.ceil(resumeAt - systemClock.now()), deadline.signal);
    retry = undefined;
    deadline.phase = 'queue';
    const queuedAt = systemClock.now();
    let permit: Permit | undefined;
    try {
      permit = await takePermit(config, request, options, deadline, errors);
    } finally {
      report.leaveQueue(attemptNumber, systemClock.now() - queuedAt);
    }
    let wasSent = false;
    const startedAt = systemClock.now();
    try {
      const ended: Promise<CallOutcome<T>> = deadline.withTimeout(timeoutMs, async (signal) => {
        deadline.phase = 'headers';
        const response = await sendRequest(config, request, {
          errors,
          headers: options.headers,
          signal,
          wrapFetch: (start) => {
            // The call may have ended while the key function ran.
            signal.throwIfAborted();
            // The hook waits for `settled`. It is set before this function runs, because `sendRequest` first waits for the key.
            return report.wrapRequest(start, settled);
          },
          onSend: () => {
            // The call may have ended in the hook `aroundAttempt`, and the hook `onRequest` may end it.
            signal.throwIfAborted();
            report.noteRequest(permit?.tokensLeft);
            signal.throwIfAborted();
            wasSent = true;
            attempts += 1;
            permit?.send();
            onSend?.();
          },
          onHeaders: ({ status, rateLimit, ...head }) => {
            const retryAfterMs = status === 429 ? head.retryAfterMs : undefined;
            permit?.report({ ...rateLimit, status, retryAfterMs });
            // A response that comes after its attempt has ended must not change the phase of the next attempt.
            if (!signal.aborted) deadline.phase = 'body';
          },
        });
        // If the attempt has ended meanwhile, `noteFailure` reports it; hooks must not get a response for it, too.
        signal.throwIfAborted();
        report.noteResponse(response);
        const read = readOutcome(config, request, response, errors, attempts);
        if (read.mismatched.length > 0) report.noteMismatch(read.mismatched);
        return read;
      });
      // `fetch` keeps `wrapFetch` until a full garbage collection, so `wrapFetch` must not keep the data.
      const settled = withoutValue(ended);
      const outcome = await ended;
      // If the caller aborts before p-retry returns, the call rejects although the service carried it out.
      callMayBeDone = true;
      return outcome;
    } catch (error) {
      permit?.cancel();
      permit?.settlePause(error instanceof QuotaExceededError);
      report.noteFailure(error);
      const isOver = deadline.signal?.aborted === true;
      callMayBeDone ||= wasSent && (isOver || requestMayBeDone(error));
      const isLast = isOver || attemptNumber > retries;
      if (!isLast && isRetryable(error, request.retryClass, options, systemClock.now() - startedAt))
        retry = planRetry(config, deadline, error);
      throw error;
    }
  }

  try {
    const outcome = await pRetry(attempt, {
      retries,
      minTimeout: MIN_BACKOFF_MS,
      // p-retry randomises a wait first and then cuts it at the maximum. With the same maximum for all calls, calls that fail
      // together would be retried together for ever.
      maxTimeout: maxBackoffMs * (0.5 + Math.random() / 2),
      randomize: true,
      signal: deadline.signal,
      shouldRetry: () => retry !== undefined,
      onFailedAttempt: () => {
        if (retry !== undefined) report.noteRetry(retry.error, retry.retryAfterMs);
      },
    });
    report.finish(attempts);
    return outcome;
  } catch (failure) {
    // The reason is read from the signal, because p-retry turns a reason that is not an Error into a TypeError.
    const error = deadline.signal?.aborted ? deadline.signal.reason : failure;
    report.finish(attempts, error);
    throw new CallFailure(error, callMayBeDone);
  } finally {
    deadline.dispose();
  }
}

/** Settles when the promise does, but does not keep its value. */
function withoutValue(promise: Promise<unknown>): Promise<void> {
  const settled = promise.then(() => {});
  // Whoever waits for `promise` handles its failure.
  settled.catch(() => {});
  return settled;
}

/** Plans the attempt that follows a failure, or throws a TimeoutError at once if the call would run out of time before it. */
function planRetry({ limiter }: Config, deadline: Deadline, error: TrackingError) {
  const retryAfterMs = error instanceof ApiError ? error.retryAfterMs : undefined;
  deadline.phase = 'backoff';
  deadline.lastFailure = error;
  if ((retryAfterMs ?? 0) >= deadline.remainingMs) throw deadline.expire();
  // After a 429, the limiter holds the next attempt back.
  const isBucketPaused = limiter !== undefined && isRateLimited(error);
  const resumeAt = isBucketPaused ? 0 : systemClock.now() + (retryAfterMs ?? 0);
  return { error, retryAfterMs, resumeAt };
}

async function takePermit(
  { baseUrl, account, limiter }: Config,
  request: PreparedRequest<unknown>,
  options: CallOptions,
  deadline: Deadline,
  errors: CallErrors,
): Promise<Permit | undefined> {
  const { maxRetryAfterMs } = options.retry;
  try {
    return await limiter?.acquire({
      bucket: { baseUrl, account, endpoint: request.endpoint },
      priority: options.priority,
      signal: deadline.signal,
      maxPauseMs: Math.min(maxRetryAfterMs, deadline.remainingMs),
    });
  } catch (error) {
    deadline.signal?.throwIfAborted();
    // The failure of the previous attempt tells the caller more than a full queue does.
    if (error instanceof QueueFullError && deadline.lastFailure) throw deadline.lastFailure;
    if (!(error instanceof LongPauseError)) throw errors.adopt(error);
    // This pause is allowed, but is longer than the rest of `totalTimeoutMs`.
    if (error.pausedForMs <= maxRetryAfterMs) throw deadline.expire();
    throw errors.createPauseError(error.pausedForMs, maxRetryAfterMs);
  }
}
