import { isOwnError, maskUserInfo, toPrintableLine } from '../common/foreign.ts';
import { describeThrown } from '../common/messages.ts';
import { isJsonObject, MAX_ISSUES, type ValidationIssue } from '../common/parsing.ts';
import type { Secret } from '../common/secrets.ts';
import type { Config } from '../config/config.ts';
import {
  type ApiError,
  type ApiErrorDetails,
  type CallFacts,
  type CallSite,
  ConfigurationError,
  ConnectionError,
  chooseErrorClass,
  decidingCode,
  isKnownErrorCode,
  QueueFullError,
  RateLimitError,
  ResponseValidationError,
  ResultsNotReadyError,
  TimeoutError,
  type TimeoutPhase,
  TrackingError,
  type TrackingErrorOptions,
} from '../errors.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import { type FetchFailure, readFetchFailure } from './fetch-failure.ts';
import { copyHeaders, type RawResponse } from './response-head.ts';

/** Remembers where `method`, which is running, was called, for the errors of the stream that it makes. */
export function rememberCallSite(config: Config, method: (...parameters: never[]) => unknown): Config {
  return { ...config, callSite: captureCallSite(method) };
}

/** Captures the place where `method`, which is running, was called. */
export function captureCallSite(method: (...parameters: never[]) => unknown): CallSite {
  const callSite: CallSite = {};
  Error.captureStackTrace(callSite, method);
  return callSite;
}

const ACTIVITIES: Record<TimeoutPhase, string> = {
  queue: 'waiting for its turn under the rate limit',
  headers: 'waiting for a response',
  body: 'reading the response',
  backoff: 'waiting to try again',
};

const MAX_EXCERPT_LENGTH = 500;
const MAX_REASON_LENGTH = 300;

/**
 * Makes the errors of one call. An error is complete when it is made: it has the facts of the call and the line of the caller, and
 * the key is masked in it. If the caller aborts, the call rejects with the abort reason itself.
 */
export class CallErrors {
  readonly #title: string;
  readonly #baseUrl: string;
  readonly #facts: CallFacts;
  readonly #callSite: CallSite | undefined;

  /**
   * @param title - names the request in messages
   * @param baseUrl - named by the message of a 404 for an unknown path
   * @param facts - read whenever an error is made, because `attempts` grows
   * @param callSite - where the method was called
   */
  constructor(title: string, baseUrl: string, facts: CallFacts, callSite: CallSite | undefined) {
    this.#title = title;
    this.#baseUrl = baseUrl;
    this.#facts = facts;
    this.#callSite = callSite;
  }

  /** @param body - the parsed JSON, or the text if it is not JSON */
  createApiError(response: RawResponse, body: unknown): ApiError {
    const details = this.#describeResponse(response, body);
    const ErrorClass = chooseErrorClass(details.status, decidingCode(details.errors));
    return new ErrorClass(describe(details, this.#title, this.#baseUrl), details, this.#origin());
  }

  createNotReadyError(response: RawResponse, body: unknown): ResultsNotReadyError {
    const details = { ...this.#describeResponse(response, body), errors: [], retryAfterMs: undefined };
    const message = `${this.#title} returned no results yet; ask again later`;
    return new ResultsNotReadyError(message, details, this.#origin());
  }

  createTooLongError(response: RawResponse, maxResponseBytes: number): ResponseValidationError {
    const got = `more than ${maxResponseBytes} bytes; if that is expected, raise \`maxResponseBytes\``;
    return this.createBodyError(response, response.text, got, 'too_big');
  }

  /** @param got - what came instead of a body that can be read */
  createBodyError(
    response: RawResponse,
    body: unknown,
    got: string,
    code = 'invalid_body',
  ): ResponseValidationError {
    const message = `${this.#title} responded with ${response.key.mask(got)}`;
    const issues = [{ path: [], code, message }];
    return new ResponseValidationError(message, { ...maskFacts(response, body), issues }, this.#origin());
  }

  /** @param total - the number of mismatches, of which `issues` are the first */
  createMismatchError(
    response: RawResponse,
    payload: unknown,
    issues: readonly ValidationIssue[],
    total: number,
  ): ResponseValidationError {
    const [first] = issues;
    const more =
      total > MAX_ISSUES
        ? ' (and more problems)'
        : total > 1
          ? ` (and ${total - 1} more problem${total === 2 ? '' : 's'})`
          : '';
    const message = `The response of ${this.#title} is not as documented: ${excerpt(first?.message ?? '')}${more}`;
    return new ResponseValidationError(message, { ...maskFacts(response, payload), issues }, this.#origin());
  }

  createConnectionError(
    cause: unknown,
    key: Secret,
    { reason, ...facts }: FetchFailure,
    got = 'no response',
  ): ConnectionError {
    const line = toPrintableLine(key.mask(reason), MAX_REASON_LENGTH);
    const options = { cause: key.maskCause(cause), ...facts, ...this.#origin() };
    return new ConnectionError(`${this.#title} got ${got}: ${line}`, options);
  }

  createIncompleteError(cause: unknown, key: Secret): ConnectionError {
    const { reason } = readFetchFailure(cause, false, false);
    const failure = { reason, neverSent: false, isPermanent: false };
    return this.createConnectionError(cause, key, failure, 'an incomplete response');
  }

  /** @param lastFailure - the failure of the previous attempt, if the time is up in the queue or in a back-off */
  createTimeoutError(
    option: 'timeoutMs' | 'totalTimeoutMs',
    timeoutMs: number,
    phase: TimeoutPhase,
    lastFailure?: TrackingError,
  ): TimeoutError {
    const message = `${this.#title} timed out after ${timeoutMs} ms (\`${option}\`) while ${ACTIVITIES[phase]}`;
    const cause = lastFailure === undefined ? {} : { cause: lastFailure };
    return new TimeoutError(message, { phase, timeoutMs }, { ...cause, ...this.#origin() });
  }

  createPauseError(pausedForMs: number, maxRetryAfterMs: number): RateLimitError {
    const { method, path, attempts } = this.#facts;
    const notSent = attempts === 0 ? 'was not sent' : 'was not sent again';
    const seconds = Math.ceil(pausedForMs / 1000);
    const message =
      `${this.#title} ${notSent}: the service has asked to wait another ${seconds} s, ` +
      `and \`retry.maxRetryAfterMs\` allows only ${maxRetryAfterMs / 1000} s; call again in ${seconds} s`;
    const details = {
      status: 429,
      errors: [],
      requestId: undefined,
      method,
      path,
      headers: new Headers(),
      body: undefined,
      attempts,
      retryAfterMs: pausedForMs,
    };
    return new RateLimitError(message, details, this.#origin());
  }

  /** Makes the call's own error from an error of the limiter or of the key function, which know nothing of the call. */
  adopt(error: unknown): Error {
    const origin = this.#origin();
    if (error instanceof QueueFullError) return new QueueFullError(error.message, origin);
    if (error instanceof ConnectionError) {
      const { message, cause, neverSent, isPermanent } = error;
      return new ConnectionError(message, { cause, neverSent, isPermanent, ...origin });
    }
    if (error instanceof ConfigurationError) {
      const { message, option, rule } = error;
      const cause = error.cause === undefined ? {} : { cause: error.cause };
      return new ConfigurationError(message, { option, rule, ...cause, ...origin });
    }
    // An error of another realm would not be recognised as an error further on.
    if (error instanceof TrackingError && isOwnError(error)) return error;
    const message = `The limiter threw ${maskUserInfo(describeThrown(error))}`;
    return new TrackingError(message, { cause: error, ...origin });
  }

  #origin(): TrackingErrorOptions {
    return { call: { ...this.#facts }, callSite: this.#callSite };
  }

  #describeResponse(response: RawResponse, body: unknown): ApiErrorDetails {
    const { method, path, attempts } = this.#facts;
    const { headers, key, retryAfterMs } = response;
    const echoedKey = findKey(response, body);
    return {
      ...maskFacts(response, body, echoedKey),
      errors: readErrorItems(body, echoedKey),
      method,
      path,
      headers: copyHeaders(headers, (value) => key.mask(value)),
      attempts,
      retryAfterMs,
    };
  }
}

/** Returns the key if the body of the response contains it. */
function findKey({ text, key }: RawResponse, body: unknown): Secret | undefined {
  return key.isInJson(body, text) ? key : undefined;
}

function maskFacts(response: RawResponse, body: unknown, echoedKey = findKey(response, body)) {
  const { status, requestId } = response;
  return { status, requestId, body: echoedKey?.maskValue(body) ?? body };
}

/** @param key - the key if the body contains it */
function readItem(value: unknown, key: Secret | undefined): ApiErrorItem[] {
  if (!isJsonObject(value) || typeof value['code'] !== 'string') return [];
  const { code, message, ...rest } = value;
  const mask = (text: string) => key?.mask(text) ?? text;
  return [
    {
      // Safe cast: `maskValue` returns an object for an object.
      ...((key?.maskValue(rest) ?? rest) as object),
      code: isKnownErrorCode(code) ? code : mask(code),
      message: typeof message === 'string' ? mask(message) : undefined,
    },
  ];
}

/** Reads the errors of both envelopes: `{ errors: [...] }`, and `{ error }` of the bulk endpoint (docs/service.md 7.1, 7.2). */
function readErrorItems(body: unknown, key: Secret | undefined): ApiErrorItem[] {
  if (!isJsonObject(body)) return [];
  const { errors, error } = body;
  return Array.isArray(errors) ? errors.flatMap((item) => readItem(item, key)) : readItem(error, key);
}

function excerpt(body: unknown): string {
  try {
    const text = typeof body === 'string' ? body : (JSON.stringify(body) ?? '');
    if (/^\s*</.test(text)) return `an HTML page of ${text.length} characters`;
    return toPrintableLine(text, MAX_EXCERPT_LENGTH);
  } catch {
    // The body is nested deeper than the call stack allows.
    return '';
  }
}

/** Returns the origin alone, because the path or the query of a redirect may contain a secret. */
function readRedirectOrigin(headers: Headers): string | undefined {
  const location = headers.get('location') ?? '';
  const url = URL.canParse(location) ? new URL(location) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

/** Advice for failures that no retry can correct. */
const ADVICE_BY_CODE: ReadonlyMap<string | undefined, string> = new Map([
  [
    'quota_limit_reached',
    '; wait until your quota is renewed, or choose a larger plan in the dashboard of the service',
  ],
  ['bulk_create_limit_exceeded', '; send at most 100 items in one request, as `trackers.createMany` does'],
  [
    'no_active_subscription',
    '; subscribe to the plan of this endpoint in the dashboard of the service (`tracking.search` needs the per-call plan)',
  ],
]);

function describe(
  { status, errors, body, requestId, headers }: ApiErrorDetails,
  title: string,
  baseUrl: string,
): string {
  if (status >= 300 && status <= 399) {
    const origin = readRedirectOrigin(headers);
    const target = origin === undefined ? '' : ` to ${origin}`;
    const advice = origin === undefined ? 'check the base URL' : 'set the base URL to the new address';
    return `${title} responded with ${status}, a redirect${target}, which the client does not follow; ${advice}`;
  }
  const code = decidingCode(errors);
  const deciding = errors.find((item) => item.code === code);
  const quote =
    deciding === undefined
      ? excerpt(body)
      : toPrintableLine([deciding.code, deciding.message].filter(Boolean).join(': '), MAX_EXCERPT_LENGTH);
  // A 404 for a record has a known code (docs/service.md 7.6); any other is about the path, or comes from another server.
  const isPathUnknown = status === 404 && (code === undefined || !isKnownErrorCode(code));
  const hint = isPathUnknown
    ? `; check the base URL ${baseUrl}: its path is usually /public/v1`
    : (ADVICE_BY_CODE.get(code) ?? '');
  const request = requestId === undefined ? '' : ` (request id ${requestId})`;
  return `${title} responded with ${status}${quote === '' ? '' : `: ${quote}`}${request}${hint}`;
}
