import { randomUUID } from 'node:crypto';
import type { KyInstance } from 'ky';
import pRetry, { AbortError } from 'p-retry';
import { systemClock } from '../common/clock.ts';
import { type CallOptions, resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName } from '../endpoints.ts';
import {
  ApiError,
  type CallSite,
  captureCallSite,
  isTrackingError,
  QueueFullError,
  RateLimitError,
  type TrackingError,
} from '../errors.ts';
import { LongPauseError, type Permit } from '../limiter/limiter.ts';
import type { AttemptInfo, CallInfo, RequestInfo } from '../observability/hooks.ts';
import type { BulkRequestOptions } from '../options.ts';
import { ApiPromise, CallFailure, type CallOutcome } from './api-promise.ts';
import { Deadline } from './deadline.ts';
import { type CallInput, type EndpointResult, type PreparedRequest, prepareRequest } from './prepare.ts';
import { readRateLimitFeedback, readRetryAfterMs } from './rate-limit-headers.ts';
import { type RawResponse, readOutcome, readRequestId } from './response.ts';
import { isRateLimited, isRetryable, mayHaveBeenCarriedOut } from './retry.ts';
import { createKy, sendRequest } from './send.ts';

/** p-retry waits 0.5 to 1 s before the first repeat, and twice as long before each later one. */
const MIN_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;

/** The parts of the client that every resource needs. */
export interface CallContext {
  readonly config: Config;
  readonly ky: KyInstance;
  /** The options of a call that names none. */
  readonly defaultOptions: CallOptions;
}

/** Makes the context of a client from its configuration. */
export function createCallContext(config: Config): CallContext {
  const defaultOptions = resolveCallOptions(config, 'request', {});
  return { config, ky: createKy(config), defaultOptions };
}

/** Calls one endpoint of the table. Input and options are read now, so later changes to them do no harm. */
export function callEndpoint<Name extends EndpointName>(
  context: CallContext,
  name: Name,
  input: CallInput,
  options: BulkRequestOptions | undefined,
  callSite?: CallSite,
): ApiPromise<EndpointResult<Name>> {
  return startCall(context, name, options, () => prepareRequest(context.config, name, input), callSite);
}

/**
 * Prepares a call and starts it; what the preparation throws is the rejection.
 *
 * @param callSite - where the method was called; default: where the caller of this function was
 */
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

/**
 * Runs a whole call: for each attempt it takes a permit, sends the request and reads the response; p-retry repeats.
 *
 * @param onSend - called whenever an attempt leaves
 * @throws CallFailure, which holds what the call rejects with
 */
export async function execute<T>(
  context: CallContext,
  request: PreparedRequest<T>,
  options: CallOptions,
  onSend?: () => void,
): Promise<CallOutcome<T>> {
  const { config } = context;
  const { retries, maxRetryAfterMs } = options.retry;
  const rules = { retryClass: request.retryClass, retryAmbiguous: options.retryAmbiguous, maxRetryAfterMs };
  const timeoutMs = options.timeoutMs ?? config.timeoutMs[request.timeoutClass];
  const deadline = new Deadline(request.title, options);
  const report = new CallReport(config, request);
  /** When the next attempt may begin, on the monotonic clock, where a response asked for a wait. */
  let resumeAt = 0;
  let isPerhapsDone = false;

  async function attempt(attemptNumber: number): Promise<CallOutcome<T>> {
    if (resumeAt > 0) await deadline.sleepUntil(resumeAt);
    deadline.phase = 'queue';
    report.startAttempt(attemptNumber);
    const waiting = takePermit(config, request, options, deadline, attemptNumber - 1);
    const permit = await waiting.finally(() => report.noteQueueLeft());
    report.notePermit(permit);
    try {
      const outcome = await deadline.withTimeout(timeoutMs, async (signal) => {
        deadline.phase = 'headers';
        const response = await sendRequest(context.ky, config, request, {
          headers: options.headers,
          signal,
          onSend: () => {
            report.noteSend(signal);
            permit?.send();
            onSend?.();
          },
          onHeaders: (response) => {
            permit?.report(readRateLimitFeedback(response));
            // A late response must not change the phase, which belongs to the next attempt by then.
            if (!signal.aborted) deadline.phase = 'body';
          },
        });
        // The end of an attempt is reported once: as a failure, if it was over before its body was read.
        signal.throwIfAborted();
        report.noteResponse(response);
        // Inside of the time limit, because a caller's asynchronous schema may never settle.
        return await readOutcome(config, request, response, report.attempt);
      });
      const mayHaveBeenCarriedOutBefore = isPerhapsDone;
      // If the caller aborts before p-retry returns, the call still rejects, although the service has carried it out.
      isPerhapsDone = true;
      return { ...outcome, mayHaveBeenCarriedOutBefore };
    } catch (error) {
      permit?.cancel();
      report.noteFailure(error);
      isPerhapsDone ||= report.wasSent && mayHaveBeenCarriedOut(error);
      throw error;
    }
  }

  try {
    const outcome = await pRetry(attempt, {
      retries,
      minTimeout: MIN_BACKOFF_MS,
      maxTimeout: MAX_BACKOFF_MS,
      randomize: true,
      ...(deadline.signal && { signal: deadline.signal }),
      shouldRetry: ({ error }) => isRetryable(error, rules),
      // Called after every failure, also after one that nothing follows.
      onFailedAttempt: ({ error, retriesLeft }) => {
        if (
          deadline.signal?.aborted ||
          retriesLeft === 0 ||
          !isTrackingError(error) ||
          !isRetryable(error, rules)
        )
          return;
        const retryAfterMs = error instanceof ApiError ? error.retryAfterMs : undefined;
        deadline.phase = 'backoff';
        deadline.lastFailure = error;
        if ((retryAfterMs ?? 0) >= deadline.remainingMs) throw deadline.expire();
        // After a 429 the paused bucket makes the next attempt wait.
        const isBucketPaused = config.limiter !== undefined && isRateLimited(error);
        resumeAt = isBucketPaused ? 0 : systemClock.now() + (retryAfterMs ?? 0);
        report.noteRetry(error, retryAfterMs);
      },
    });
    report.finish(undefined);
    return outcome;
  } catch (failure) {
    // Asked of the signal, because p-retry turns a reason that is no Error into a TypeError.
    const error = deadline.signal?.aborted ? deadline.signal.reason : failure;
    report.finish(error);
    throw new CallFailure(error, isPerhapsDone);
  } finally {
    deadline.dispose();
  }
}

/** Takes a permit of the limiter; undefined without one. */
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
      limit: request.limitPerSecond,
      maxLimit: request.maxLimitPerSecond,
      priority: options.priority,
      signal: deadline.signal,
      maxPauseMs: Math.min(maxRetryAfterMs, deadline.remainingMs),
    });
  } catch (error) {
    // The request that was sent failed for a reason that says more than a queue that is full by now.
    if (error instanceof QueueFullError && deadline.lastFailure) throw new AbortError(deadline.lastFailure);
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

/** Tells the hooks and the log what happens to one call, and decides nothing. */
class CallReport {
  /** Whether the current attempt has left. */
  wasSent = false;
  readonly #config: Config;
  readonly #call: CallInfo;
  readonly #startedAt = systemClock.now();
  #attempt = 0;
  #sentAttempts = 0;
  #attemptStartedAt = 0;
  #queuedMs = 0;
  #totalQueuedMs = 0;
  #tokensLeft: number | undefined;
  /** When the request was announced to `onRequest`; undefined once `onResponse` or `onError` has ended it. */
  #openSince: number | undefined;

  constructor(config: Config, { endpoint, method, path }: PreparedRequest<unknown>) {
    this.#config = config;
    this.#call = { callId: randomUUID(), endpoint, method, path, baseUrl: config.baseUrl };
    config.hooks.onStart?.(this.#call);
  }

  get attempt(): AttemptInfo {
    return { ...this.#call, attempt: this.#attempt, queuedMs: this.#queuedMs };
  }

  get #request(): RequestInfo {
    return { ...this.attempt, tokensLeft: this.#tokensLeft };
  }

  get #logFields() {
    const { callId, endpoint, method, path } = this.#call;
    return { callId, endpoint, method, path, attempt: this.#attempt };
  }

  startAttempt(attempt: number): void {
    this.#attempt = attempt;
    this.#attemptStartedAt = systemClock.now();
    this.wasSent = false;
  }

  /** Also called where a call gives up in the queue. */
  noteQueueLeft(): void {
    this.#queuedMs = systemClock.now() - this.#attemptStartedAt;
    this.#totalQueuedMs += this.#queuedMs;
  }

  notePermit(permit: Permit | undefined): void {
    this.#tokensLeft = permit?.tokensLeft;
  }

  /** @throws the signal's reason when the call is over, or the hook has ended it */
  noteSend(signal: AbortSignal): void {
    // A key function may give its key when the call is over.
    signal.throwIfAborted();
    this.#openSince = systemClock.now();
    this.#config.hooks.onRequest?.(this.#request);
    signal.throwIfAborted();
    this.wasSent = true;
    this.#sentAttempts += 1;
  }

  noteResponse(response: RawResponse): void {
    const { hooks, logger } = this.#config;
    const { status } = response;
    const durationMs = systemClock.now() - (this.#openSince ?? 0);
    this.#openSince = undefined;
    const requestId = readRequestId(response);
    hooks.onResponse?.({ ...this.#request, status, durationMs, requestId });
    if (status === 429) hooks.onRateLimit?.({ ...this.attempt, delayMs: readRetryAfterMs(response) ?? 0 });
    if (logger.level !== 'debug') return;
    const { method, path } = this.#call;
    logger.debug(`${method} ${path} → ${status}`, { ...this.#logFields, status, durationMs, requestId });
  }

  noteFailure(error: unknown): void {
    if (this.#openSince === undefined) return;
    const durationMs = systemClock.now() - this.#openSince;
    this.#openSince = undefined;
    this.#config.hooks.onError?.({ ...this.#request, error, durationMs });
  }

  noteRetry(error: TrackingError, retryAfterMs: number | undefined): void {
    this.#config.hooks.onRetry?.({ ...this.attempt, error, retryAfterMs });
    const wait = retryAfterMs ? ` in ${Math.ceil(retryAfterMs / 1000)} s or later` : '';
    this.#config.logger.warn(`${error.message}; attempt ${this.#attempt + 1} follows${wait}`, {
      ...this.#logFields,
      error: error.name,
      ...(error instanceof ApiError && { status: error.status }),
      ...(error instanceof ApiError && error.requestId !== undefined && { requestId: error.requestId }),
      ...(retryAfterMs !== undefined && { delayMs: retryAfterMs }),
    });
  }

  finish(error: unknown): void {
    const durationMs = systemClock.now() - this.#startedAt;
    const counts = { attempts: this.#sentAttempts, queuedMs: this.#totalQueuedMs, durationMs };
    this.#config.hooks.onDone?.({ ...this.#call, error, ...counts });
  }
}
