import type { ValidationIssue } from './common/parsing.ts';
// Only types are imported, so that a program which uses only the errors does not load zod.
import type { EndpointName } from './endpoints.ts';
import type { ApiErrorItem, ErrorCode, KnownErrorCode } from './schemas/api-error.ts';
import type { Tracker } from './schemas/tracker.ts';

/** `Symbol.for` gives all copies of this package one symbol, so ESM and CommonJS builds recognise each other's errors. */
const ERROR_BRAND = Symbol.for('tracking-client.error');

function isOfKind(value: unknown, kind: string): boolean {
  const kinds: unknown = Object(value)[ERROR_BRAND];
  return Array.isArray(kinds) && kinds.includes(kind);
}

function ownKind(errorClass: object): string | undefined {
  // A user's subclass inherits `kind`. An instance of its parent must not be `instanceof` the subclass, so only an own property
  // counts.
  if (!Object.hasOwn(errorClass, 'kind')) return undefined;
  const kind: unknown = Reflect.get(errorClass, 'kind');
  return typeof kind === 'string' ? kind : undefined;
}

/**
 * The place where a method was called. V8 formats `stack` only when somebody reads it, so capturing costs little. If an app has set
 * `Error.prepareStackTrace`, `stack` can be anything, such as a list of call sites, and reading it can throw.
 */
export interface CallSite {
  readonly stack?: unknown;
}

/** The facts about a call that each of its errors has. */
export interface CallFacts {
  readonly callId: string;
  readonly endpoint: EndpointName | 'request';
  readonly method: string;
  readonly path: string;
  /** Number of requests sent. */
  readonly attempts: number;
}

/** Options of every error. */
export interface TrackingErrorOptions extends ErrorOptions {
  /** The call that failed. Default: none, for an error from outside a call. */
  readonly call?: CallFacts | undefined;
  /** The place that the stack begins at. Default: the place where the error is made. */
  readonly callSite?: CallSite | undefined;
}

/**
 * The base class of the errors that this package throws; an abort rejects with the signal's own reason instead.
 *
 * An error of a call has `callId`, `endpoint`, `method`, `path` and `attempts`. An error from before the call has none of
 * these, e.g. a RequestValidationError, or the ConfigurationError of a constructor.
 */
export class TrackingError extends Error {
  /** Name of the class, by which `instanceof` also recognises the errors of other copies of this package. */
  static readonly kind: string = 'TrackingError';
  /** Identifies the call, as in its hooks and log lines (a UUID). */
  declare readonly callId?: string;
  /**
   * The name of the endpoint, e.g. `trackers.get`; `request` if `client.request` was called with a method and path that are not in
   * the endpoint table.
   */
  declare readonly endpoint?: EndpointName | 'request';
  /** HTTP method. */
  declare readonly method?: string;
  /** Path template, e.g. `/trackers/{trackerId}`. For a request outside the endpoint table, its path. Never with a query. */
  declare readonly path?: string;
  /** Number of requests sent. */
  declare readonly attempts?: number;

  /**
   * @param message - what went wrong
   * @param options - the `cause`, and the call that failed
   */
  constructor(message: string, { call, callSite, ...options }: TrackingErrorOptions = {}) {
    super(message, options);
    const kinds: string[] = [];
    for (let current = new.target; typeof current === 'function'; current = Object.getPrototypeOf(current)) {
      const kind = ownKind(current);
      if (kind !== undefined) kinds.push(kind);
    }
    Object.defineProperty(this, ERROR_BRAND, { value: kinds });
    Object.defineProperty(this, 'name', { value: kinds[0], configurable: true, writable: true });
    Object.assign(this, call);
    // Without this, the stack would begin with `Error` instead of the name.
    if (callSite === undefined) Error.captureStackTrace(this, new.target);
    else setStack(this, `${this.name}: ${message}${readFrames(callSite)}`);
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    const kind = ownKind(this);
    return kind === undefined
      ? Function.prototype[Symbol.hasInstance].call(this, value)
      : isOfKind(value, kind);
  }

  /**
   * Returns the facts that are safe to log.
   *
   * @returns name, message and the error's own facts; never the cause or a header
   */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...Object.fromEntries(Object.entries(this)) };
  }
}

/**
 * Sets the stack of an error that this package makes. V8 formats the previous stack when `stack` is redefined, and then calls
 * `Error.prepareStackTrace`, which can throw, so `stack` is assigned first.
 */
export function setStack(error: Error, stack: string): void {
  error.stack = stack;
  // In Bun, an error without frames had no `stack`, and an enumerable one would be printed twice.
  Object.defineProperty(error, 'stack', { enumerable: false });
}

/** Returns the lines below the first line of a stack; none if `Error.stackTraceLimit` is 0. */
function readFrames(callSite: CallSite): string {
  try {
    const { stack } = callSite;
    if (Array.isArray(stack)) return stack.map((frame) => `\n    at ${frame}`).join('');
    if (typeof stack !== 'string') return '';
    const end = stack.indexOf('\n');
    return end < 0 ? '' : stack.slice(end);
  } catch {
    // V8 formats the stack when it is read, and `Error.prepareStackTrace` of the app can throw.
    return '';
  }
}

const MAX_ISSUES_SHOWN = 3;

/** The input broke a rule; nothing was sent. */
export class RequestValidationError extends TrackingError {
  static override readonly kind: string = 'RequestValidationError';
  /** The first 20 broken rules. */
  readonly issues: readonly ValidationIssue[];
  /** `shipping_date_outdated` if that is the only broken rule (docs/service.md 3.6); else `validation_error`. */
  readonly code: ErrorCode;

  /**
   * @param issues - the broken rules, at least one
   * @param options - the place that the stack begins at
   */
  constructor(issues: readonly ValidationIssue[], options?: TrackingErrorOptions) {
    const more = issues.length - MAX_ISSUES_SHOWN;
    const shown = issues.slice(0, MAX_ISSUES_SHOWN).map((issue) => issue.message);
    const end = more > 0 ? ` (and ${more} more problem${more === 1 ? '' : 's'})` : '';
    super(`${shown.join('; ')}${end}`, options);
    this.issues = issues;
    const codes = new Set(issues.map((issue) => issue.code));
    this.code =
      codes.size === 1 && codes.has('shipping_date_outdated') ? 'shipping_date_outdated' : 'validation_error';
  }
}

/** The body of a success differs from the service's documentation, or is longer than `maxResponseBytes`. */
export class ResponseValidationError extends TrackingError {
  static override readonly kind: string = 'ResponseValidationError';
  /** The first 20 broken rules. */
  readonly issues: readonly ValidationIssue[];
  /**
   * If fields break the schema: the part of the JSON that was checked, such as `data.tracker`; the `path` of an issue starts there.
   * Otherwise the parsed JSON, or the text if it is not JSON; the beginning of the text if the body was too long.
   */
  declare readonly body: unknown;
  /** HTTP status of the response. */
  readonly status: number;
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;

  /**
   * @param message - what went wrong
   * @param details - facts about the response, and its issues
   * @param options - the `cause`, and the call that failed
   */
  constructor(
    message: string,
    details: Pick<ResponseValidationError, 'issues' | 'body' | 'status' | 'requestId'>,
    options?: TrackingErrorOptions,
  ) {
    super(message, options);
    this.issues = details.issues;
    this.status = details.status;
    this.requestId = details.requestId;
    Object.defineProperty(this, 'body', { value: details.body });
  }
}

/**
 * No complete response arrived, e.g. because the connection was refused or the body broke off; or a RedisLimiter with
 * `onUnavailable: 'reject'` could not use Redis.
 */
export class ConnectionError extends TrackingError {
  static override readonly kind: string = 'ConnectionError';
  /** True if the request surely never reached the service, so repeating it is safe. */
  readonly neverSent: boolean;
  /** True if a retry cannot help, e.g. because a certificate is not trusted; the message then says what to do. */
  readonly isPermanent: boolean;

  /**
   * @param message - what went wrong
   * @param options - `neverSent`, `isPermanent` (default false), the `cause`, and the call that failed
   */
  constructor(
    message: string,
    options: TrackingErrorOptions & { neverSent: boolean; isPermanent?: boolean },
  ) {
    const { neverSent, isPermanent = false, ...rest } = options;
    super(message, rest);
    this.neverSent = neverSent;
    this.isPermanent = isPermanent;
  }
}

/** The phase in which a call ran out of time: waiting for the limiter, the headers, the body, or its next attempt. */
export type TimeoutPhase = 'queue' | 'headers' | 'body' | 'backoff';

/** `timeoutMs`, `totalTimeoutMs` or, in `waitUntilStopped`, `maxDurationMs` ran out. */
export class TimeoutError extends TrackingError {
  static override readonly kind: string = 'TimeoutError';
  /** The phase in which the time ran out. */
  readonly phase: TimeoutPhase;
  /** The time limit, in milliseconds. */
  readonly timeoutMs: number;

  /**
   * @param message - what went wrong
   * @param details - the phase, and the time limit in milliseconds
   * @param options - the `cause`, and the call that failed
   */
  constructor(
    message: string,
    details: { phase: TimeoutPhase; timeoutMs: number },
    options?: TrackingErrorOptions,
  ) {
    super(message, options);
    this.phase = details.phase;
    this.timeoutMs = details.timeoutMs;
  }
}

/** The limiter's queue is full (`rateLimit.maxQueue`), so nothing was sent. */
export class QueueFullError extends TrackingError {
  static override readonly kind: string = 'QueueFullError';
}
/** An option is missing or invalid; the message names it. */
export class ConfigurationError extends TrackingError {
  static override readonly kind: string = 'ConfigurationError';
  /** The option as the message names it, e.g. `retry.retries`; undefined if the message is about no single option. */
  declare readonly option: string | undefined;
  /**
   * The rule part of the message, e.g. `to be a function, got a number` or `is missing`. It has neither the option nor the advice.
   */
  declare readonly rule: string | undefined;

  /**
   * @param message - what went wrong
   * @param options - `option` and `rule`, the `cause`, and the call that failed
   */
  constructor(
    message: string,
    {
      option,
      rule,
      ...options
    }: TrackingErrorOptions & Partial<Pick<ConfigurationError, 'option' | 'rule'>> = {},
  ) {
    super(message, options);
    // `option` and `rule` are not enumerable, because the message already contains their text.
    Object.defineProperty(this, 'option', { value: option });
    Object.defineProperty(this, 'rule', { value: rule });
  }
}
/**
 * A request to the webhook handler is not a webhook, or results that were passed to an inbox have no tracker; see
 * `tracking-client/webhooks`.
 */
export class WebhookParseError extends TrackingError {
  static override readonly kind: string = 'WebhookParseError';
}
/** A webhook came without the right secret; see `tracking-client/webhooks`. */
export class WebhookAuthenticationError extends TrackingError {
  static override readonly kind: string = 'WebhookAuthenticationError';
}

/** The facts about an error response. */
export interface ApiErrorDetails {
  /** HTTP status. */
  readonly status: number;
  /** The errors that the body lists; empty if it lists none. */
  readonly errors: readonly ApiErrorItem[];
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
  /** HTTP method. */
  readonly method: string;
  /** Path template, e.g. `/trackers/{trackerId}`. For a request outside the endpoint table, its path. Never with a query. */
  readonly path: string;
  /** Headers of the response, with the key masked. */
  readonly headers: Headers;
  /** The parsed JSON, or the text if it is not JSON. */
  readonly body: unknown;
  /** Number of requests sent, this one included. */
  readonly attempts: number;
  /** The wait that the service asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;
}

/** The service responded with an error. Its code decides the class, or its status if no code is known (docs/service.md 7.1). */
export class ApiError extends TrackingError implements ApiErrorDetails {
  static override readonly kind: string = 'ApiError';
  declare readonly status: number;
  /** The first code that is known or begins with `auth_`, else the first code; branch on it, never on the message. */
  readonly code: ErrorCode | undefined;
  declare readonly errors: readonly ApiErrorItem[];
  declare readonly requestId: string | undefined;
  declare readonly method: string;
  declare readonly path: string;
  declare readonly headers: Headers;
  declare readonly body: unknown;
  declare readonly attempts: number;
  declare readonly retryAfterMs: number | undefined;

  /**
   * @param message - what went wrong
   * @param details - facts about the response
   * @param options - the `cause`, and the call that failed
   */
  constructor(message: string, details: ApiErrorDetails, options?: TrackingErrorOptions) {
    super(message, options);
    const { headers, body, ...facts } = details;
    Object.assign(this, facts);
    this.code = decidingCode(details.errors);
    // Headers and body are not enumerable, so that logs leave them out: a body can be a whole HTML page.
    Object.defineProperty(this, 'headers', { value: headers });
    Object.defineProperty(this, 'body', { value: body });
  }
}

/** Prefers a code that is known or begins with `auth_`, because a code that was added later must not hide it. */
export function decidingCode(errors: readonly ApiErrorItem[]): ErrorCode | undefined {
  const known = errors.find(({ code }) => isKnownErrorCode(code) || code.startsWith('auth_'));
  return (known ?? errors[0])?.code;
}

/** The key is missing, malformed or unknown (401, `auth_*`; docs/service.md 7.7). */
export class AuthenticationError extends ApiError {
  static override readonly kind: string = 'AuthenticationError';
}
/** The key lacks the rights for the request (403; docs/service.md 7.7). */
export class PermissionDeniedError extends ApiError {
  static override readonly kind: string = 'PermissionDeniedError';
}
/**
 * The service has no such tracker (`tracker_not_found`), or a 404 has no known code. In the second case, the path is wrong, or
 * another server responded.
 */
export class NotFoundError extends ApiError {
  static override readonly kind: string = 'NotFoundError';
}
/** The request conflicts with another tracker or request (`tracker_conflict`, `request_conflict`, 409; docs/service.md 4.3). */
export class ConflictError extends ApiError {
  static override readonly kind: string = 'ConflictError';
}
/** The service rejected the request's content (400, 422). */
export class InvalidRequestError extends ApiError {
  static override readonly kind: string = 'InvalidRequestError';
}
/** The service rejected a `shippingDate` that is older than 180 days (`shipping_date_outdated`; docs/service.md 3.6). */
export class ShippingDateOutdatedError extends InvalidRequestError {
  static override readonly kind: string = 'ShippingDateOutdatedError';
}
/** The account lacks the plan that the request needs (`no_active_subscription`; docs/service.md 1.3). */
export class NoActiveSubscriptionError extends ApiError {
  static override readonly kind: string = 'NoActiveSubscriptionError';
}
/**
 * The plan's quota is used up (`quota_limit_reached`), or a bulk request has too many items (`bulk_create_limit_exceeded`;
 * docs/service.md 7.9).
 */
export class QuotaExceededError extends ApiError {
  static override readonly kind: string = 'QuotaExceededError';
}
/** The service responded with 429 more often than the retries allow, or asked for a longer wait than `maxRetryAfterMs`. */
export class RateLimitError extends ApiError {
  static override readonly kind: string = 'RateLimitError';
}
/** The service failed (5xx). */
export class ServerError extends ApiError {
  static override readonly kind: string = 'ServerError';
}
/**
 * The tracker exists, and the service responded that it has no results yet (`parcel_not_found`, or an empty list; docs/service.md
 * 2.11). Often a tracker without news has results without events instead: `tracking.events.length === 0`.
 */
export class ResultsNotReadyError extends ApiError {
  static override readonly kind: string = 'ResultsNotReadyError';
  /** The record of a tracker that the service has stopped tracking; only `trackers.waitUntilStopped` sets it. */
  declare readonly tracker?: Tracker;

  /**
   * @param message - what went wrong
   * @param details - facts about the response, and the `tracker`
   * @param options - the `cause`, and the call that failed
   */
  constructor(
    message: string,
    details: ApiErrorDetails & Pick<ResultsNotReadyError, 'tracker'>,
    options?: TrackingErrorOptions,
  ) {
    super(message, details, options);
  }
}

type ApiErrorClass = new (
  message: string,
  details: ApiErrorDetails,
  options?: TrackingErrorOptions,
) => ApiError;

const CLASS_BY_CODE: Record<KnownErrorCode, ApiErrorClass | undefined> = {
  validation_error: InvalidRequestError,
  missing_mandatory_field: InvalidRequestError,
  parsing_error: InvalidRequestError,
  shipping_date_outdated: ShippingDateOutdatedError,
  tracker_conflict: ConflictError,
  request_conflict: ConflictError,
  tracker_not_found: NotFoundError,
  parcel_not_found: ResultsNotReadyError,
  tracker_not_updatable: InvalidRequestError,
  no_active_subscription: NoActiveSubscriptionError,
  quota_limit_reached: QuotaExceededError,
  bulk_create_limit_exceeded: QuotaExceededError,
  processing_error: undefined,
  webhook_url_missing: InvalidRequestError,
  auth_missing_header: AuthenticationError,
  auth_invalid_header: AuthenticationError,
  auth_invalid_api_key: AuthenticationError,
};

export function isKnownErrorCode(code: string): code is KnownErrorCode {
  return Object.hasOwn(CLASS_BY_CODE, code);
}

const CLASS_BY_STATUS: Readonly<Record<number, ApiErrorClass>> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  422: InvalidRequestError,
  429: RateLimitError,
};

export function chooseErrorClass(status: number, code: ErrorCode | undefined): ApiErrorClass {
  const byStatus = status >= 500 ? ServerError : (CLASS_BY_STATUS[status] ?? ApiError);
  if (code === undefined) return byStatus;
  if (isKnownErrorCode(code)) return CLASS_BY_CODE[code] ?? byStatus;
  return code.startsWith('auth_') ? AuthenticationError : byStatus;
}

const ACCOUNT_ERRORS = [AuthenticationError, QuotaExceededError, NoActiveSubscriptionError];

/**
 * True if every later request would fail in the same way, because of the key, its rights, the plan or its quota. A 403 without a
 * code comes from another server, such as a firewall, and is not about the key.
 */
export function isAccountError(error: unknown): boolean {
  if (error instanceof PermissionDeniedError) return error.code !== undefined;
  return ACCOUNT_ERRORS.some((errorClass) => error instanceof errorClass);
}

type ErrorOfCode<Code extends ErrorCode> = string extends Code
  ? TrackingError & { readonly code: Code }
  : Code extends 'validation_error' | 'shipping_date_outdated'
    ? (ApiError | RequestValidationError) & { readonly code: Code }
    : ApiError & { readonly code: Code };

/** A literal must be a known code; a value of type `string` or `ErrorCode` can be any code. */
type CodeToMatch<Code extends ErrorCode> = string extends Code ? Code : KnownErrorCode;

/**
 * Tells whether a value is an error of this package, or of another copy of it.
 *
 * @param error - anything that was caught
 * @returns true if it is such an error
 */
export function isTrackingError(error: unknown): error is TrackingError;
/**
 * Tells whether a value is an error of this package with a certain code.
 *
 * @param error - anything that was caught
 * @param code - the expected code, e.g. `shipping_date_outdated`. A misspelt literal does not compile; for a code that the
 * service added later, pass a value of type `string`, e.g. `'added_later' as string`
 * @returns true if it is such an error with this code
 * @example
 * try { await client.trackers.get(id); } catch (error) {
 *   if (isTrackingError(error, 'tracker_not_found')) return null;
 *   throw error;
 * }
 */
export function isTrackingError<const Code extends ErrorCode>(
  error: unknown,
  code: CodeToMatch<Code>,
): error is ErrorOfCode<Code>;
export function isTrackingError(error: unknown, code?: ErrorCode): error is TrackingError {
  return isOfKind(error, 'TrackingError') && (code === undefined || Object(error).code === code);
}
