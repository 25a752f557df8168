import { randomUUID } from 'node:crypto';
import pRetry, { AbortError, type RetryContext } from 'p-retry';
import { sleep, systemClock } from '../common/clock.ts';
import type { Secret } from '../common/secrets.ts';
import { type CallOptions, resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName } from '../endpoints.ts';
import { type CallFacts, type CallSite, QueueFullError, QuotaExceededError } from '../errors.ts';
import { LongPauseError, type Permit } from '../limiter/limiter.ts';
import { CallObserver } from '../observability/call-observer.ts';
import type { BulkRequestOptions } from '../options.ts';
import { type ApiPromise, type CallResult, createApiPromise } from './api-promise.ts';
import { CallErrors, captureCallSite } from './call-errors.ts';
import { AttemptLimit, Deadline } from './deadline.ts';
import { type CallInput, type EndpointResult, type PreparedRequest, prepareRequest } from './prepare.ts';
import { readCallResult } from './response.ts';
import { readHead } from './response-head.ts';
import {
  type Backoff,
  drawBackoff,
  getBackoffMs,
  getRetryAfterMs,
  isRateLimited,
  isRetryable,
  requestMayBeDone,
} from './retry.ts';
import { readResponse, sendRequest } from './send.ts';

/** Input and options are read now, so later changes to them do no harm. */
export function callEndpoint<Name extends EndpointName>(
  config: Config,
  name: Name,
  input: CallInput,
  options: BulkRequestOptions | undefined,
): ApiPromise<EndpointResult<Name>> {
  return startCall(config, name, options, () => prepareRequest(config, name, input));
}

export function startCall<T>(
  config: Config,
  method: EndpointName | 'request',
  options: BulkRequestOptions | undefined,
  prepare: () => PreparedRequest<T>,
): ApiPromise<T> {
  const callSite = config.callSite ?? captureCallSite(startCall);
  return createApiPromise(runCall(config, method, options, prepare, callSite));
}

/** Runs a call whose method has no promise of its own for it, such as the requests of a poll. */
export async function runCall<T>(
  config: Config,
  method: EndpointName | 'request',
  options: BulkRequestOptions | undefined,
  prepare: () => PreparedRequest<T>,
  callSite = config.callSite,
): Promise<CallResult<T>> {
  try {
    const callOptions =
      options === undefined ? config.callDefaults : resolveCallOptions(config, method, options);
    return await execute(config, prepare(), callOptions, { callSite });
  } catch (failure) {
    throw failure instanceof CallFailure ? failure.error : failure;
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

/** A call on its way: what `execute`, `attempt`, `sendAndRead` and `prepareRetry` share. */
interface Call<T> {
  readonly config: Config;
  readonly request: PreparedRequest<T>;
  readonly options: CallOptions;
  readonly facts: CallFacts & { attempts: number };
  readonly errors: CallErrors;
  readonly deadline: Deadline;
  readonly observer: CallObserver;
  readonly backoff: Backoff;
  readonly onSend: (() => void) | undefined;
  /** How long the latest attempt took, without its wait for a permit, in milliseconds. */
  attemptMs: number;
  /** True if the service may have carried out a request of this call. */
  mayBeDone: boolean;
}

interface CallContext {
  /** Where the method was called. */
  readonly callSite?: CallSite | undefined;
  /** Called right before each request is sent. */
  readonly onSend?: () => void;
}

/**
 * Runs a whole call: p-retry repeats `attempt` as long as `prepareRetry` says so.
 *
 * @throws CallFailure, and nothing else
 */
export async function execute<T>(
  config: Config,
  request: PreparedRequest<T>,
  options: CallOptions,
  { callSite, onSend }: CallContext,
): Promise<CallResult<T>> {
  const { endpoint, method, path, title } = request;
  const facts = { callId: randomUUID(), endpoint, method, path, attempts: 0 };
  const errors = new CallErrors(title, config.baseUrl, facts, callSite);
  const deadline = new Deadline(errors, options);
  const observer = new CallObserver(title, facts, config);
  const backoff = drawBackoff(options.retry.maxBackoffMs);
  const parts = { config, request, options, facts, errors, deadline, observer, backoff, onSend };
  const call: Call<T> = { ...parts, attemptMs: 0, mayBeDone: false };
  try {
    const result = await pRetry((attemptNumber) => attempt(call, attemptNumber), {
      ...backoff,
      retries: options.retry.retries,
      signal: deadline.signal,
      shouldRetry: (failure) => prepareRetry(call, failure),
    });
    observer.finish(facts.attempts);
    return result;
  } catch (failure) {
    // The reason is read from the signal, because p-retry turns a reason that is not an Error into a TypeError.
    const error = deadline.isOver ? deadline.signal?.reason : failure;
    observer.finish(facts.attempts, error);
    throw new CallFailure(error, call.mayBeDone);
  } finally {
    deadline.dispose();
  }
}

/** Takes a permit. Then gets the key, sends the request and reads the response, all within `timeoutMs`. */
async function attempt<T>(call: Call<T>, attemptNumber: number): Promise<CallResult<T>> {
  const { config, request, options, facts, errors, deadline, observer } = call;
  // After a freeze, the timer of the back-off fires before that of the deadline.
  if (deadline.remainingMs <= 0) throw deadline.expire();
  deadline.phase = 'queue';
  const permit = await takePermit(call, attemptNumber);
  const timeoutMs = options.timeoutMs ?? config.timeoutMs[request.timeoutClass];
  const limit = new AttemptLimit(deadline, errors, timeoutMs);
  const sentBefore = facts.attempts;
  try {
    deadline.phase = 'headers';
    const { apiKey } = config;
    const key = typeof apiKey === 'function' ? await limit.race(readKey(apiKey, errors)) : apiKey;
    limit.signal.throwIfAborted();
    const send = () => sendAndRead(call, permit, key, limit);
    const result = await limit.race(observer.wrapAttempt(limit, send));
    // If the caller aborts before p-retry returns, the call rejects although the service carried it out.
    call.mayBeDone = true;
    return result;
  } catch (error) {
    permit?.cancel();
    permit?.settlePause(error instanceof QuotaExceededError);
    call.attemptMs = limit.elapsedMs;
    observer.noteFailure(error);
    const wasSent = facts.attempts > sentBefore;
    call.mayBeDone ||= wasSent && (deadline.isOver || requestMayBeDone(error));
    throw error;
  } finally {
    limit.end();
  }
}

/** Keeps running after its attempt has ended, so that the limiter also learns of a late response. */
async function sendAndRead<T>(
  { config, request, options, facts, errors, deadline, observer, onSend }: Call<T>,
  permit: Permit | undefined,
  key: Secret,
  limit: AttemptLimit,
): Promise<CallResult<T>> {
  const { signal } = limit;
  const noteSend = () => {
    // The call may have ended in the hook `aroundAttempt`, and the hook `onRequest` may end it.
    signal.throwIfAborted();
    observer.noteRequest(permit?.tokensLeft);
    limit.openRequest();
    facts.attempts += 1;
    permit?.send();
    onSend?.();
  };
  const send = { key, headers: options.headers, signal, onSend: noteSend };
  const response = await sendRequest(config, request, send, errors);
  const head = readHead(response, key);
  const { status, rateLimit, retryAfterMs } = head;
  permit?.noteResponse({ ...rateLimit, status, retryAfterMs: status === 429 ? retryAfterMs : undefined });
  signal.throwIfAborted();
  deadline.phase = 'body';
  const raw = await readResponse(config, request, head, response, { signal, errors });
  signal.throwIfAborted();
  observer.noteResponse(raw);
  const result = readCallResult(config, request, raw, errors, facts.attempts);
  if (result.mismatched.length > 0) observer.noteMismatch(result.mismatched);
  return result;
}

/**
 * Decides whether another attempt follows a failure, and waits for the part of `Retry-After` that is longer than the back-off.
 * p-retry waits for the back-off next.
 */
async function prepareRetry(
  { config, request, options, deadline, observer, backoff, attemptMs }: Call<unknown>,
  { error, retriesConsumed }: RetryContext,
): Promise<boolean> {
  if (deadline.isOver || !isRetryable(error, request.retryClass, options)) return false;
  if (request.mayRetry?.(error, attemptMs) === false) return false;
  const retryAfterMs = getRetryAfterMs(error);
  deadline.phase = 'backoff';
  deadline.lastFailure = error;
  const backoffMs = getBackoffMs(backoff, retriesConsumed);
  const waitMs = Math.max(retryAfterMs, backoffMs);
  if (waitMs >= deadline.remainingMs) throw deadline.expire();
  observer.noteRetry(error, Math.floor(waitMs));
  // After a 429, the limiter holds the next attempt back.
  const isHeldBack = config.limiter !== undefined && isRateLimited(error);
  const restMs = isHeldBack ? 0 : retryAfterMs - backoffMs;
  // A timer can fire up to a millisecond early.
  if (restMs > 0) await sleep(Math.ceil(restMs) + 1, deadline.signal);
  return true;
}

/** @throws p-retry's AbortError, because a call that gets no permit is not retried */
async function takePermit(
  { config, request, options, deadline, errors, observer }: Call<unknown>,
  attemptNumber: number,
): Promise<Permit | undefined> {
  const { baseUrl, bucketAccount, limiter } = config;
  const { maxRetryAfterMs } = options.retry;
  const queuedAt = systemClock.now();
  try {
    return await limiter?.acquire({
      bucket: { baseUrl, account: bucketAccount, endpoint: request.endpoint },
      priority: options.priority,
      signal: deadline.signal,
      maxPauseMs: Math.min(maxRetryAfterMs, deadline.remainingMs),
    });
  } catch (error) {
    throw new AbortError(explainRefusal(error, maxRetryAfterMs, deadline, errors));
  } finally {
    observer.leaveQueue(attemptNumber, systemClock.now() - queuedAt);
  }
}

/** Makes the error of the call from the error of the limiter. */
function explainRefusal(
  error: unknown,
  maxRetryAfterMs: number,
  deadline: Deadline,
  errors: CallErrors,
): Error {
  // The failure of the previous attempt tells the caller more than a full queue does.
  if (error instanceof QueueFullError && deadline.lastFailure) return deadline.lastFailure;
  if (!(error instanceof LongPauseError)) return errors.adopt(error);
  // This pause is allowed, but is longer than the rest of `totalTimeoutMs`.
  if (error.pausedForMs <= maxRetryAfterMs) return deadline.expire();
  return errors.createPauseError(error.pausedForMs, maxRetryAfterMs);
}

async function readKey(apiKey: () => Promise<Secret>, errors: CallErrors): Promise<Secret> {
  try {
    return await apiKey();
  } catch (error) {
    throw errors.adopt(error);
  }
}
