import { randomUUID } from 'node:crypto';
import type { KyInstance } from 'ky';
import pRetry from 'p-retry';
import { sleep, systemClock } from '../common/clock.ts';
import { formatPath, type ValidationIssue } from '../common/validation.ts';
import { type CallOptions, resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName, RetryClass } from '../endpoints.ts';
import {
  ApiError,
  ConnectionError,
  isTrackingError,
  QueueFullError,
  QuotaExceededError,
  RateLimitError,
  ResponseValidationError,
  TimeoutError,
  type TrackingError,
} from '../errors.ts';
import { LongPauseError, type Permit } from '../limiter/limiter.ts';
import type { AttemptInfo, CallInfo, RequestInfo, ResponseInfo } from '../observability/hooks.ts';
import type { LogFields } from '../observability/logger.ts';
import type { BulkRequestOptions } from '../options.ts';
import { ApiPromise, CallFailure, type CallOutcome, type CallSite, captureCallSite } from './api-promise.ts';
import { type CallInput, type EndpointResult, type PreparedRequest, prepareRequest } from './prepare.ts';
import {
  type RawResponse,
  readOutcome,
  readRateLimitFeedback,
  readRequestId,
  readRetryAfterMs,
} from './response.ts';
import { createKy, Deadline, sendRequest } from './send.ts';

const MIN_BACKOFF_MS = 500;

export interface CallContext {
  readonly config: Config;
  readonly ky: KyInstance;
  readonly defaultOptions: CallOptions;
}

export function createCallContext(config: Config): CallContext {
  const defaultOptions = resolveCallOptions(config, 'request', {});
  return { config, ky: createKy(config), defaultOptions };
}

/** Input and options are read now, so later changes to them do no harm. */
export function callEndpoint<Name extends EndpointName>(
  context: CallContext,
  name: Name,
  input: CallInput,
  options: BulkRequestOptions | undefined,
  callSite?: CallSite,
): ApiPromise<EndpointResult<Name>> {
  return startCall(context, name, options, () => prepareRequest(context.config, name, input), callSite);
}

export function startCall<T>(
  context: CallContext,
  method: EndpointName | 'request',
  options: BulkRequestOptions | undefined,
  prepare: () => PreparedRequest<T>,
  callSite: CallSite = captureCallSite(startCall),
): ApiPromise<T> {
  try {
    const callOptions =
      options === undefined ? context.defaultOptions : resolveCallOptions(context.config, method, options);
    return new ApiPromise(execute(context, prepare(), callOptions), callSite);
  } catch (error) {
    return new ApiPromise(Promise.reject(error), callSite);
  }
}

interface Retry {
  readonly error: TrackingError;
  readonly retryAfterMs: number | undefined;
  readonly resumeAt: number;
}

/**
 * Runs a whole call. Each attempt takes a permit, sends the request and reads the response; p-retry repeats attempts.
 *
 * @param onSend - called right before each request is sent
 * @throws CallFailure with the error that the call rejects with
 */
export async function execute<T>(
  context: CallContext,
  request: PreparedRequest<T>,
  options: CallOptions,
  onSend?: () => void,
): Promise<CallOutcome<T>> {
  const { config } = context;
  const { retries, maxRetryAfterMs, maxBackoffMs } = options.retry;
  const rules = { retryClass: request.retryClass, retryAmbiguous: options.retryAmbiguous, maxRetryAfterMs };
  const timeoutMs = options.timeoutMs ?? config.timeoutMs[request.timeoutClass];
  const deadline = new Deadline(request.title, options);
  const report = new CallReport(config, request);
  let retry: Retry | undefined;
  let sentAttempts = 0;
  let isPerhapsDone = false;

  async function attempt(attemptNumber: number): Promise<CallOutcome<T>> {
    const resumeAt = retry?.resumeAt ?? 0;
    // A timer can fire up to a millisecond early.
    while (systemClock.now() < resumeAt)
      await sleep(Math.ceil(resumeAt - systemClock.now()), deadline.signal);
    retry = undefined;
    deadline.phase = 'queue';
    const queuedAt = systemClock.now();
    const waiting = takePermit(config, request, options, deadline, sentAttempts);
    const permit = await waiting.finally(() =>
      report.leaveQueue(attemptNumber, systemClock.now() - queuedAt),
    );
    let wasSent = false;
    try {
      const outcome = await deadline.withTimeout(timeoutMs, async (signal) => {
        deadline.phase = 'headers';
        const response = await sendRequest(context.ky, config, request, {
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
        report.noteResponse(response);
        const read = readOutcome(config, request, response, attemptNumber);
        if (read.mismatched.length > 0) report.noteMismatch(read.mismatched);
        return read;
      });
      const mayHaveBeenCarriedOutBefore = isPerhapsDone;
      // If the caller aborts before p-retry returns, the call rejects although the service carried it out.
      isPerhapsDone = true;
      return { ...outcome, mayHaveBeenCarriedOutBefore };
    } catch (error) {
      permit?.cancel();
      report.noteFailure(error);
      isPerhapsDone ||= wasSent && mayHaveBeenCarriedOut(error);
      const isLast = attemptNumber > retries || deadline.signal.aborted;
      if (!isLast && isRetryable(error, rules)) retry = planRetry(config, deadline, error);
      throw error;
    }
  }

  try {
    const outcome = await pRetry(attempt, {
      retries,
      minTimeout: MIN_BACKOFF_MS,
      // p-retry caps after it randomises. With one cap for all, calls that fail together would be retried together for ever.
      maxTimeout: maxBackoffMs * (0.5 + Math.random() / 2),
      randomize: true,
      signal: deadline.signal,
      shouldRetry: () => retry !== undefined,
      onFailedAttempt: () => {
        if (retry !== undefined) report.noteRetry(retry);
      },
    });
    report.finish(sentAttempts);
    return outcome;
  } catch (failure) {
    // The reason is read from the signal, because p-retry turns a reason that is no Error into a TypeError.
    const error = deadline.signal.aborted ? deadline.signal.reason : failure;
    report.finish(sentAttempts, error);
    throw new CallFailure(error, isPerhapsDone);
  } finally {
    deadline.dispose();
  }
}

/** Plans the attempt that follows a failure, or throws a TimeoutError at once if the call would run out of time before it. */
function planRetry({ limiter }: Config, deadline: Deadline, error: TrackingError): Retry {
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
    const message = `${request.title} is paused by the service for ${Math.ceil(pausedForMs / 1000)} s more, longer than \`retry.maxRetryAfterMs\` allows`;
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

/** Tells whether a failed attempt may be repeated (docs/service.md 1.2, 4.1, 4.5, 8.8). */
function isRetryable(
  error: unknown,
  rules: { retryClass: RetryClass; retryAmbiguous: boolean; maxRetryAfterMs: number },
): error is TrackingError {
  const { retryClass, retryAmbiguous, maxRetryAfterMs } = rules;
  if (error instanceof ApiError && (error.retryAfterMs ?? 0) > maxRetryAfterMs) return false;
  // A request that the service refuses with 429 was not carried out, so even a paid call may be repeated.
  if (isRateLimited(error)) return true;
  if (error instanceof ConnectionError && error.neverSent) return true;
  const isSafe = retryClass === 'safe';
  if (error instanceof ApiError && error.status === 409) return isSafe && error.code === 'request_conflict';
  return isAmbiguous(error) && (isSafe || (retryClass === 'bulk' && retryAmbiguous));
}

/** True for a 429 that ends with the window of the rate limit (docs/service.md 6.3); false for a used-up quota. */
function isRateLimited(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 429 && !(error instanceof QuotaExceededError);
}

/** True if nobody knows whether the service carried the request out, and a repeat may succeed. */
function isAmbiguous(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500 || error.status === 408;
  return error instanceof TimeoutError || error instanceof ConnectionError;
}

export function mayHaveBeenCarriedOut(error: unknown): boolean {
  if (error instanceof ApiError) return error.status < 300 || error.status >= 500 || error.status === 408;
  return !(error instanceof ConnectionError && error.neverSent);
}

class CallReport {
  readonly #config: Config;
  readonly #title: string;
  readonly #call: CallInfo;
  readonly #startedAt = systemClock.now();
  #attempt = 0;
  #queuedMs = 0;
  #totalQueuedMs = 0;
  #tokensLeft: number | undefined;
  #openRequestSince: number | undefined;
  #requestResult: Partial<Pick<ResponseInfo, 'durationMs' | 'status' | 'requestId'>> = {};
  #wasRetried = false;

  constructor(config: Config, { title, endpoint, method, path }: PreparedRequest<unknown>) {
    this.#config = config;
    this.#title = title;
    this.#call = { callId: randomUUID(), endpoint, method, path, baseUrl: config.baseUrl };
    config.hooks.onStart?.(this.#call);
  }

  leaveQueue(attempt: number, queuedMs: number): void {
    this.#attempt = attempt;
    this.#queuedMs = queuedMs;
    this.#totalQueuedMs += queuedMs;
    this.#requestResult = {};
  }

  noteRequest(tokensLeft: number | undefined): void {
    this.#tokensLeft = tokensLeft;
    this.#openRequestSince = systemClock.now();
    this.#config.hooks.onRequest?.(this.#describeRequest());
    this.#log('debug', `${this.#title}: attempt ${this.#attempt} is sent`);
  }

  noteResponse(response: RawResponse): void {
    const { hooks } = this.#config;
    const { status } = response;
    const durationMs = this.#endRequest();
    const result = { durationMs, status, requestId: readRequestId(response) };
    this.#requestResult = result;
    hooks.onResponse?.({ ...this.#describeRequest(), ...result });
    if (status === 429)
      hooks.onRateLimit?.({ ...this.#describeAttempt(), delayMs: readRetryAfterMs(response) ?? 0 });
    this.#log('debug', `${this.#title} responded with ${status} in ${Math.round(durationMs)} ms`);
  }

  noteMismatch(mismatched: readonly ValidationIssue[]): void {
    const { hooks, logger } = this.#config;
    const { requestId } = this.#requestResult;
    hooks.onMismatch?.({ ...this.#describeAttempt(), requestId, mismatched });
    for (const { path, message } of mismatched) {
      // Warn once for each field, because a service that sends an odd field sends it with every response.
      const field = formatPath(path, 'data').replace(/\[\d+\]/g, '[]');
      const text = `${this.#title}: ${message}; kept as it came`;
      logger.warnOnce(`${this.#call.endpoint} ${field}`, text, this.#buildFields({ field }));
    }
  }

  noteFailure(error: unknown): void {
    if (this.#openRequestSince === undefined) return;
    const durationMs = this.#endRequest();
    this.#requestResult = { durationMs };
    this.#config.hooks.onError?.({ ...this.#describeRequest(), error, durationMs });
  }

  noteRetry({ error, retryAfterMs }: Retry): void {
    this.#wasRetried = true;
    this.#config.hooks.onRetry?.({ ...this.#describeAttempt(), error, retryAfterMs });
    const wait = retryAfterMs ? ` in ${Math.ceil(retryAfterMs / 1000)} s or later` : '';
    const text = `${error.message}; attempt ${this.#attempt + 1} follows${wait}`;
    this.#log('warn', text, { ...describeError(error), delayMs: retryAfterMs });
  }

  finish(attempts: number, error?: unknown): void {
    const durationMs = systemClock.now() - this.#startedAt;
    const queuedMs = this.#totalQueuedMs;
    this.#config.hooks.onDone?.({ ...this.#call, error, attempts, queuedMs, durationMs });
    if (error !== undefined) {
      // Warn only after a retry. Without one, the rejection alone tells the caller, and an abort is no surprise.
      const level = this.#wasRetried && isTrackingError(error) ? 'warn' : 'debug';
      const reason = isTrackingError(error) ? error.message : `${this.#title} was ended`;
      const text = `${reason}; gave up after attempt ${this.#attempt}`;
      this.#log(level, text, { ...describeError(error), durationMs });
    } else if (this.#wasRetried) {
      this.#log('info', `${this.#title} succeeded at attempt ${this.#attempt}`, { durationMs });
    }
  }

  #endRequest(): number {
    const durationMs = systemClock.now() - (this.#openRequestSince ?? 0);
    this.#openRequestSince = undefined;
    return durationMs;
  }

  #describeAttempt(): AttemptInfo {
    return { ...this.#call, attempt: this.#attempt, queuedMs: this.#queuedMs };
  }

  #describeRequest(): RequestInfo {
    return { ...this.#describeAttempt(), tokensLeft: this.#tokensLeft };
  }

  #log(level: 'debug' | 'info' | 'warn', text: string, more?: LogFields): void {
    const { logger } = this.#config;
    if (level === 'debug' && logger.level !== 'debug') return;
    logger[level](text, this.#buildFields(more));
  }

  #buildFields(more?: LogFields): LogFields {
    const { callId, endpoint, method, path } = this.#call;
    const fields = {
      callId,
      endpoint,
      method,
      path,
      attempt: this.#attempt,
      ...this.#requestResult,
      ...more,
    };
    return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  }
}

function describeError(error: unknown): LogFields {
  const hasResponse = error instanceof ApiError || error instanceof ResponseValidationError;
  return {
    error: error instanceof Error ? error.name : undefined,
    ...(hasResponse && { status: error.status, requestId: error.requestId }),
  };
}
