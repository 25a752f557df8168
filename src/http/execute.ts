import pRetry from 'p-retry';
import { sleep, systemClock } from '../common/clock.ts';
import { type CallOptions, resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName } from '../endpoints.ts';
import { ApiError, QueueFullError, RateLimitError, type TrackingError } from '../errors.ts';
import { LongPauseError, type Permit } from '../limiter/limiter.ts';
import { CallReport } from '../observability/call-report.ts';
import type { BulkRequestOptions } from '../options.ts';
import { ApiPromise, CallFailure, type CallOutcome, type CallSite, captureCallSite } from './api-promise.ts';
import { type CallInput, type EndpointResult, type PreparedRequest, prepareRequest } from './prepare.ts';
import { readOutcome, readRateLimitFeedback, readRequestId, readRetryAfterMs } from './response.ts';
import { isRateLimited, isRetryable, mayHaveBeenCarriedOut } from './retry.ts';
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
    return new ApiPromise(execute(config, prepare(), callOptions), callSite);
  } catch (error) {
    return new ApiPromise(Promise.reject(error), callSite);
  }
}

/**
 * Runs a whole call. Each attempt takes a permit, sends the request and reads the response; p-retry repeats attempts.
 *
 * @param onSend - called right before each request is sent
 * @throws CallFailure with the error that the call rejects with
 */
export async function execute<T>(
  config: Config,
  request: PreparedRequest<T>,
  options: CallOptions,
  onSend?: () => void,
): Promise<CallOutcome<T>> {
  const { retries, maxBackoffMs } = options.retry;
  const timeoutMs = options.timeoutMs ?? config.timeoutMs[request.timeoutClass];
  const deadline = new Deadline(request.title, options);
  const { title, endpoint, method, path } = request;
  const { baseUrl, hooks, logger } = config;
  const report = new CallReport(title, { endpoint, method, path, baseUrl }, hooks, logger);
  let retry: ReturnType<typeof planRetry> | undefined;
  let sentAttempts = 0;
  let isPerhapsDone = false;

  function identify(error: unknown): void {
    // The abort reason of the caller's signal gets no `callId` and other facts of this call, even if it is a `TrackingError`.
    if (error !== options.signal?.reason) report.identify(error, sentAttempts);
  }

  async function attempt(attemptNumber: number): Promise<CallOutcome<T>> {
    const resumeAt = retry?.resumeAt ?? 0;
    // A timer can fire up to a millisecond early.
    while (systemClock.now() < resumeAt)
      await sleep(Math.ceil(resumeAt - systemClock.now()), deadline.signal);
    retry = undefined;
    deadline.phase = 'queue';
    const queuedAt = systemClock.now();
    let permit: Permit | undefined;
    try {
      permit = await takePermit(config, request, options, deadline, sentAttempts);
    } finally {
      report.leaveQueue(attemptNumber, systemClock.now() - queuedAt);
    }
    let wasSent = false;
    const startedAt = systemClock.now();
    try {
      const outcome = await deadline.withTimeout(timeoutMs, async (signal) => {
        deadline.phase = 'headers';
        const response = await sendRequest(config, request, {
          headers: options.headers,
          signal,
          onSend: () => {
            // The call may have ended while the key function ran, and the hook `onRequest` may end it.
            signal.throwIfAborted();
            report.noteRequest(permit?.tokensLeft);
            signal.throwIfAborted();
            wasSent = true;
            sentAttempts += 1;
            permit?.send();
            onSend?.();
          },
          onHeaders: (response) => {
            permit?.report(readRateLimitFeedback(response));
            // A response that comes after its attempt has ended must not change the phase of the next attempt.
            if (!signal.aborted) deadline.phase = 'body';
          },
        });
        // If the attempt has ended meanwhile, `noteFailure` reports it; hooks must not get a response for it, too.
        signal.throwIfAborted();
        const retryAfterMs = response.status === 429 ? readRetryAfterMs(response) : undefined;
        report.noteResponse(response.status, readRequestId(response), retryAfterMs);
        const read = readOutcome(config, request, response, sentAttempts);
        if (read.mismatched.length > 0) report.noteMismatch(read.mismatched);
        return read;
      });
      const mayHaveBeenCarriedOutBefore = isPerhapsDone;
      // If the caller aborts before p-retry returns, the call rejects although the service carried it out.
      isPerhapsDone = true;
      return { ...outcome, mayHaveBeenCarriedOutBefore };
    } catch (error) {
      permit?.cancel();
      identify(error);
      report.noteFailure(error);
      isPerhapsDone ||= wasSent && mayHaveBeenCarriedOut(error);
      const isLast = attemptNumber > retries || deadline.signal?.aborted === true;
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
    report.finish(sentAttempts);
    return outcome;
  } catch (failure) {
    // The reason is read from the signal, because p-retry turns a reason that is no Error into a TypeError.
    const error = deadline.signal?.aborted ? deadline.signal.reason : failure;
    identify(error);
    report.finish(sentAttempts, error);
    throw new CallFailure(error, isPerhapsDone);
  } finally {
    deadline.dispose();
  }
}

/** Plans the attempt that follows a failure, or throws a TimeoutError at once if the call would run out of time before it. */
function planRetry({ limiter }: Config, deadline: Deadline, error: TrackingError) {
  const retryAfterMs = error instanceof ApiError ? error.retryAfterMs : undefined;
  deadline.phase = 'backoff';
  deadline.lastFailure = error;
  if ((retryAfterMs ?? 0) >= deadline.remainingMs) throw deadline.expire();
  const isBucketPaused = limiter !== undefined && isRateLimited(error);
  const resumeAt = isBucketPaused ? 0 : systemClock.now() + (retryAfterMs ?? 0);
  return { error, retryAfterMs, resumeAt };
}

async function takePermit(
  { baseUrl, account, limiter }: Config,
  request: PreparedRequest<unknown>,
  options: CallOptions,
  deadline: Deadline,
  sentAttempts: number,
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
    // The failure of the previous attempt tells the caller more than a full queue does.
    if (error instanceof QueueFullError && deadline.lastFailure) throw deadline.lastFailure;
    if (!(error instanceof LongPauseError)) throw error;
    const { pausedForMs } = error;
    if (pausedForMs <= maxRetryAfterMs) throw deadline.expire();
    const notSent = sentAttempts === 0 ? 'was not sent' : 'was not sent again';
    const seconds = Math.ceil(pausedForMs / 1000);
    const message =
      `${request.title} ${notSent}: the service has asked to wait another ${seconds} s, ` +
      `and \`retry.maxRetryAfterMs\` allows only ${maxRetryAfterMs / 1000} s; call again in ${seconds} s`;
    throw new RateLimitError(message, {
      status: 429,
      errors: [],
      requestId: undefined,
      method: request.method,
      path: request.path,
      headers: new Headers(),
      body: undefined,
      attempts: sentAttempts,
      retryAfterMs: pausedForMs,
    });
  }
}
