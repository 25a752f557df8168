import pRetry from 'p-retry';
import type { z } from 'zod';
import { ApiError } from '../api-errors.ts';
import { sleep } from '../common/timing.ts';
import type { CallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { Endpoint, EndpointName, RetryClass, TimeoutClass } from '../endpoints.ts';
import { isTrackingError, type TrackingError } from '../errors.ts';
import { type AttemptInfo, callHook } from '../logging.ts';
import type { CallOutcome } from './api-promise.ts';
import { CallDeadline } from './deadline.ts';
import { readPayload, requestIdOf, validatePayload } from './read-answer.ts';
import { rebuiltResponse } from './rebuilt-response.ts';
import { parseRateLimit } from './response-headers.ts';
import { decideRetry } from './retry.ts';
import { settle, waitForToken } from './token.ts';
import { type Progress, type RawAnswer, sendOnce } from './transport.ts';

/** One call, validated and ready to be sent. */
export interface PreparedCall<T> {
  readonly endpoint: EndpointName | 'request';
  readonly method: string;
  /** Path template, for logs and errors. */
  readonly path: string;
  /** Path and query to send, below the base URL. */
  readonly target: string;
  /** JSON text. */
  readonly body: string | undefined;
  readonly limitPerSecond: number;
  /** What the caller allowed at most; the service's announcements never raise the limit above it. */
  readonly maxLimitPerSecond: number | undefined;
  readonly timeoutClass: TimeoutClass;
  readonly retryClass: RetryClass;
  readonly retryAmbiguous: boolean;
  readonly response: Pick<Endpoint['response'], 'unwrap' | 'resultStatuses' | 'mayBeEmpty'> & {
    readonly schema: z.ZodType<T>;
  };
}

interface CallState {
  readonly deadline: CallDeadline;
  readonly progress: Progress;
  backoffs: number;
  rateLimits: number;
  /** When the headers of the last answer arrived, on the monotonic clock. */
  answeredAt: number;
  /** When the pause of the last 429 ends; the limiter keeps to it as well, unless it is one that knows no pauses. */
  notBefore: number;
  /** What the last attempt failed with. */
  lastFailure: TrackingError | undefined;
}

async function sendAttempt<T>(
  config: Config,
  call: PreparedCall<T>,
  options: CallOptions,
  state: CallState,
  info: AttemptInfo,
) {
  const { deadline, progress } = state;
  progress.phase = 'queue';
  const ticket = await waitForToken(config, call, options, { ...state, attempts: info.attempt - 1 });
  const timeoutMs = options.timeoutMs ?? config.timeoutMs[call.timeoutClass];
  try {
    if (state.notBefore > 0) await sitOutPause(state, options);
    return await deadline.runAttempt(
      { timeoutMs, callerSignal: options.signal, phase: () => progress.phase },
      async (signal) => {
        progress.phase = 'headers';
        const source = config.apiKey();
        const key = typeof source === 'string' ? source : await source;
        signal.throwIfAborted();
        const requestInfo = { ...info, tokensLeft: ticket?.tokensLeft };
        callHook(config, 'onRequest', requestInfo);
        signal.throwIfAborted();
        const sentAt = performance.now();
        ticket?.send();
        const answer = await sendOnce(
          {
            url: config.baseUrl + call.target,
            method: call.method,
            path: call.path,
            headers: requestHeaders(config, options, call.body !== undefined, key),
            body: call.body,
            fetch: config.fetch,
            secret: key,
            maxAnswerBytes: config.maxAnswerBytes,
            signal,
          },
          progress,
          (response) => {
            state.answeredAt = performance.now();
            settle(ticket, response);
          },
        );
        const durationMs = performance.now() - sentAt;
        const requestId = requestIdOf(answer, key);
        callHook(config, 'onResponse', { ...requestInfo, status: answer.status, durationMs, requestId });
        config.logger.debug(`${call.method} ${call.path} → ${answer.status}`, {
          attempt: info.attempt,
          durationMs,
          requestId,
        });
        return { answer, secret: key };
      },
    );
  } catch (error) {
    ticket?.cancel();
    throw error;
  }
}

async function sitOutPause(state: CallState, options: CallOptions): Promise<void> {
  const leftMs = Math.ceil(state.notBefore - performance.now());
  state.notBefore = 0;
  // A timer may fire a moment early, the limiter's too.
  if (leftMs <= 1) return;
  await sleep(leftMs, options.signal);
  if (state.deadline.remainingMs === 0) throw state.deadline.error('backoff', state.lastFailure);
}

/** The client's headers, then the call's, then what the pipeline itself answers for. */
function requestHeaders(
  config: Config,
  options: CallOptions,
  hasBody: boolean,
  key: string,
): Record<string, string> {
  return {
    ...config.headers,
    ...options.headers,
    ...(hasBody ? { 'content-type': 'application/json' } : {}),
    authorization: `Bearer ${key}`,
  };
}

function readOutcome<T>(
  config: Config,
  call: PreparedCall<T>,
  { answer, secret }: { readonly answer: RawAnswer; readonly secret: string },
  attempts: number,
): CallOutcome<T> {
  const answered = { method: call.method, path: call.path, response: call.response, attempts, secret };
  const payload = readPayload(answered, answer);
  const result = validatePayload(answered, answer, payload, call.response.schema);
  // A payload of another kind altogether, null or an object for an array, would only fail later and with less to say.
  const isOtherKind = 'error' in result && result.error.issues.some((issue) => issue.path.length === 0);
  if ('error' in result && (isOtherKind || config.invalidResponse === 'throw')) throw result.error;
  if ('error' in result) config.logger.warn(`${result.error.message}; handed over as it arrived`);
  // Not proven, and said so in the option's own words: with `invalidResponse: 'warn'` what arrived is handed over.
  const data = 'error' in result ? (payload as T) : result.data;
  return {
    data,
    details: () => ({
      data,
      response: rebuiltResponse(answer, config.baseUrl + call.target),
      requestId: answer.headers.get('x-request-id') ?? undefined,
      rateLimit: parseRateLimit(answer.headers),
      attempts,
    }),
  };
}

/** Waits for the next attempt, or rethrows when there is none. */
async function prepareNextAttempt<T>(
  error: unknown,
  config: Config,
  call: PreparedCall<T>,
  options: CallOptions,
  state: CallState,
  info: AttemptInfo,
): Promise<void> {
  options.signal?.throwIfAborted();
  // A failure that comes back was decided about before: the call did not get as far as another attempt.
  if (!isTrackingError(error) || error === state.lastFailure || state.deadline.remainingMs === 0) throw error;
  // A call that is refused before its attempt, because of a long pause, got no answer of its own.
  const wasAnswered = error instanceof ApiError && error.attempts === info.attempt;
  if (wasAnswered && error.status === 429) {
    callHook(config, 'onRateLimit', { ...info, delayMs: error.retryAfterMs ?? 0 });
  }
  const verdict = decideRetry(error, { ...call, policy: options.retry }, state);
  if (verdict.kind === 'stop') throw error;
  const remainingMs = state.deadline.remainingMs ?? Number.POSITIVE_INFINITY;
  if (verdict.delayMs >= remainingMs) throw state.deadline.error('backoff', error);
  callHook(config, 'onRetry', { ...info, error, delayMs: verdict.delayMs });
  config.logger.info(`${call.method} ${call.path} failed, next attempt follows`, {
    attempt: info.attempt,
    delayMs: verdict.delayMs,
    reason: error.message,
  });
  state.lastFailure = error;
  if (verdict.kind === 'backoff') state.backoffs += 1;
  else state.rateLimits += 1;
  // The limiter's own pause makes a call wait after a 429; without a limiter the wait is ours.
  if (verdict.kind === 'rate-limited' && config.limiter !== undefined) {
    state.notBefore = state.answeredAt + verdict.delayMs;
    return;
  }
  await sleep(verdict.delayMs, options.signal);
  if (state.deadline.remainingMs === 0) throw state.deadline.error('backoff', error);
}

/**
 * Sends one call: token, attempt, parse, classify, retry, unwrap, validate.
 *
 * @throws TrackingError of the class that fits; the signal's own reason when the caller aborts
 */
export async function runCall<T>(
  config: Config,
  call: PreparedCall<T>,
  options: CallOptions,
): Promise<CallOutcome<T>> {
  options.signal?.throwIfAborted();
  const state: CallState = {
    deadline: new CallDeadline(options.totalTimeoutMs),
    progress: { phase: 'queue' },
    backoffs: 0,
    rateLimits: 0,
    answeredAt: 0,
    notBefore: 0,
    lastFailure: undefined,
  };
  const infoOf = (attempt: number): AttemptInfo => ({
    endpoint: call.endpoint,
    method: call.method,
    path: call.path,
    attempt,
  });
  const attempt = async (number: number) => {
    const answered = await sendAttempt(config, call, options, state, infoOf(number));
    return readOutcome(config, call, answered, number);
  };
  const prepareNext = (error: unknown, failed: number) =>
    prepareNextAttempt(error, config, call, options, state, infoOf(failed));
  try {
    return await attempt(1);
  } catch (error) {
    await prepareNext(error, 1);
  }
  // Most calls end above and never pay for a retry they do not need.
  return await pRetry((retry) => attempt(retry + 1), {
    // How often and how long is decided per failure, so p-retry neither counts nor waits by itself.
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 0,
    onFailedAttempt: ({ error, attemptNumber }) => prepareNext(error, attemptNumber + 1),
  });
}
