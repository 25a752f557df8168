import { systemClock } from '../common/clock.ts';
import { formatPath, type ValidationIssue } from '../common/validation.ts';
import { ApiError, isTrackingError, ResponseValidationError, type TrackingError } from '../errors.ts';
import type { AttemptInfo, CallInfo, Hooks, RequestInfo, ResponseInfo } from './hooks.ts';
import type { LogAdapter, LogFields } from './logger.ts';

/** Tells hooks and log lines what happens in one call. */
export class CallReport {
  readonly #hooks: Hooks;
  readonly #logger: LogAdapter;
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

  /** @param title - names the request in log lines */
  constructor(title: string, call: CallInfo, hooks: Hooks, logger: LogAdapter) {
    this.#title = title;
    this.#call = call;
    this.#hooks = hooks;
    this.#logger = logger;
    hooks.onStart?.(this.#call);
  }

  leaveQueue(attempt: number, queuedMs: number): void {
    this.#attempt = attempt;
    this.#queuedMs = queuedMs;
    this.#totalQueuedMs += queuedMs;
    this.#requestResult = {};
  }

  /**
   * Starts the request inside the hook `aroundAttempt`.
   *
   * @param start - sends the request
   * @param settled - settles when the attempt ends
   */
  wrapRequest(start: () => Promise<Response>, settled: Promise<unknown>): Promise<Response> {
    const { aroundAttempt } = this.#hooks;
    if (aroundAttempt === undefined) return start();
    return new Promise((resolve) => {
      const send = () => {
        // An async function, because `start` throws if the attempt has ended.
        resolve((async () => start())());
        return settled;
      };
      // The caller of this method handles the failure of the attempt.
      aroundAttempt(this.#describeAttempt(), send).catch(() => {});
    });
  }

  noteRequest(tokensLeft: number | undefined): void {
    this.#tokensLeft = tokensLeft;
    this.#openRequestSince = systemClock.now();
    this.#hooks.onRequest?.(this.#describeRequest());
    this.#log('debug', `${this.#title}: sending attempt ${this.#attempt}`);
  }

  noteResponse({
    status,
    requestId,
    retryAfterMs = 0,
  }: Pick<ResponseInfo, 'status' | 'requestId'> & { readonly retryAfterMs: number | undefined }): void {
    const durationMs = this.#endRequest();
    const result = { durationMs, status, requestId };
    this.#requestResult = result;
    this.#hooks.onResponse?.({ ...this.#describeRequest(), ...result });
    if (status === 429) this.#hooks.onRateLimit?.({ ...this.#describeAttempt(), delayMs: retryAfterMs });
    this.#log('debug', `${this.#title} responded with ${status} in ${Math.round(durationMs)} ms`);
  }

  noteMismatch(mismatched: readonly ValidationIssue[]): void {
    const { requestId } = this.#requestResult;
    this.#hooks.onMismatch?.({ ...this.#describeAttempt(), requestId, mismatched });
    for (const { path, message } of mismatched) {
      // Warn once for each field, because a service that sends an unusual field sends it with every response.
      const field = formatPath(path, 'data').replace(/\[\d+\]/g, '[]');
      const text = `The response of ${this.#title} is not as documented: ${message}; the client returns the value unchanged`;
      this.#logger.warnOnce(`${this.#call.endpoint} ${field}`, text, this.#buildFields({ field }));
    }
  }

  noteFailure(error: unknown): void {
    if (this.#openRequestSince === undefined) return;
    const durationMs = this.#endRequest();
    this.#requestResult = { durationMs };
    this.#hooks.onError?.({ ...this.#describeRequest(), error, durationMs });
  }

  noteRetry(error: TrackingError, retryAfterMs: number | undefined): void {
    this.#wasRetried = true;
    this.#hooks.onRetry?.({ ...this.#describeAttempt(), error, retryAfterMs });
    const wait = retryAfterMs ? ` after at least ${Math.ceil(retryAfterMs / 1000)} s` : '';
    const text = `${error.message}; the client retries${wait} (attempt ${this.#attempt + 1})`;
    this.#log('warn', text, { ...this.#describeError(error), delayMs: retryAfterMs });
  }

  finish(attempts: number, error?: unknown): void {
    const durationMs = systemClock.now() - this.#startedAt;
    const queuedMs = this.#totalQueuedMs;
    this.#hooks.onDone?.({ ...this.#call, error, attempts, queuedMs, durationMs });
    if (error !== undefined) {
      // Warn only after a retry: otherwise the caller learns of the failure from the rejection. An abort is the caller's own wish.
      const isOwn = this.#isOwn(error);
      const level = this.#wasRetried && isOwn ? 'warn' : 'debug';
      const reason = isOwn ? error.message : `${this.#title} was aborted`;
      const text = attempts === 0 ? reason : `${reason}; the client gave up after attempt ${attempts}`;
      this.#log(level, text, { ...this.#describeError(error), durationMs });
    } else if (this.#wasRetried) {
      this.#log('info', `${this.#title} succeeded on attempt ${this.#attempt}`, { durationMs });
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
    if (level === 'debug' && this.#logger.level !== 'debug') return;
    this.#logger[level](text, this.#buildFields(more));
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

  /** False for an abort reason, even if it is the `TrackingError` of another call. */
  #isOwn(error: unknown): error is TrackingError {
    return isTrackingError(error) && error.callId === this.#call.callId;
  }

  #describeError(error: unknown): LogFields {
    const isOfResponse = error instanceof ApiError || error instanceof ResponseValidationError;
    return {
      error: error instanceof Error ? error.name : undefined,
      ...(isOfResponse && this.#isOwn(error) && { status: error.status, requestId: error.requestId }),
    };
  }
}
