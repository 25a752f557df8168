import { systemClock } from '../common/clock.ts';
import { readError } from '../common/foreign.ts';
import { formatPath } from '../common/messages.ts';
import type { ValidationIssue } from '../common/parsing.ts';
import { ApiError, isTrackingError, ResponseValidationError, type TrackingError } from '../errors.ts';
import type { AttemptInfo, CallInfo, Hooks, RequestInfo, ResponseInfo } from './hooks.ts';
import type { LogAdapter, LogFields } from './logger.ts';

/** Tells hooks and log lines what happens in one call. */
export class CallObserver {
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
  constructor(
    title: string,
    { callId, endpoint, method, path }: Omit<CallInfo, 'baseUrl'>,
    {
      baseUrl,
      hooks,
      logger,
    }: { readonly baseUrl: string; readonly hooks: Hooks; readonly logger: LogAdapter },
  ) {
    this.#title = title;
    this.#call = { callId, endpoint, method, path, baseUrl };
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

  /** Runs an attempt inside of the hook `aroundAttempt`. The promise of the hook's `send` also ends at the time limit. */
  wrapAttempt<T>(
    limit: { race<Result>(work: Promise<Result>): Promise<Result> },
    attempt: () => Promise<T>,
  ): Promise<T> {
    const { aroundAttempt } = this.#hooks;
    if (aroundAttempt === undefined) return attempt();
    const send = async () => {
      try {
        return await limit.race(attempt());
      } catch (error) {
        // Tell the hook `onError` first: a tracer ends its span when this promise settles.
        this.noteFailure(error);
        throw error;
      }
    };
    return aroundAttempt(this.#describeAttempt(), send);
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
    const queuedMs = Math.round(this.#queuedMs);
    const wait = queuedMs > 0 ? `, after a wait of ${queuedMs} ms for the rate limit` : '';
    const text = `${this.#title} responded with ${status} in ${Math.round(durationMs)} ms${wait}`;
    this.#log('debug', text, { queuedMs });
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

  /** @param waitMs - the next attempt comes no earlier */
  noteRetry(error: TrackingError, waitMs: number): void {
    this.#wasRetried = true;
    const retryAfterMs = error instanceof ApiError ? error.retryAfterMs : undefined;
    this.#hooks.onRetry?.({ ...this.#describeAttempt(), error, retryAfterMs, waitMs });
    const wait = waitMs < 1_000 ? `${waitMs} ms` : `${Math.ceil(waitMs / 1_000)} s`;
    const text = `${error.message}; the client retries after at least ${wait} (attempt ${this.#attempt + 1})`;
    this.#log('warn', text, { ...this.#describeError(error), delayMs: retryAfterMs, waitMs });
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
      error: readError(error)?.name,
      ...(isOfResponse && this.#isOwn(error) && { status: error.status, requestId: error.requestId }),
    };
  }
}
