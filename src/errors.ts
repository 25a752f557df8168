import { brandedKinds, ERROR_BRAND, ownKind } from './error-brand.ts';
import type { ApiErrorItem, ErrorCode } from './schemas/api-error.ts';
import type { ValidationIssue } from './validation.ts';

/** Every error this package throws on purpose; a caller's abort rejects with the signal's own reason instead. */
export class TrackingError extends Error {
  static readonly kind: string = 'TrackingError';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    const kinds: string[] = [];
    for (
      let current: unknown = new.target;
      typeof current === 'function';
      current = Object.getPrototypeOf(current)
    ) {
      const kind = ownKind(current);
      if (kind !== undefined) kinds.push(kind);
    }
    Object.defineProperty(this, ERROR_BRAND, { value: kinds });
    Object.defineProperty(this, 'name', {
      value: kinds[0] ?? 'TrackingError',
      configurable: true,
      writable: true,
    });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    const kind = ownKind(this);
    return kind === undefined
      ? Function.prototype[Symbol.hasInstance].call(this, value)
      : brandedKinds(value).includes(kind);
  }

  /** What a log may hold: name, message and the error's own facts; never the cause or a header. */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...Object.fromEntries(Object.entries(this)) };
  }
}

/**
 * True for every error of this package, also one from another copy of it.
 *
 * @param error - anything that was caught
 * @param code - when given, also asks for this error code, e.g. `shipping_date_outdated`
 * @example
 * try { await client.trackers.get(id); } catch (error) {
 *   if (isTrackingError(error, 'tracker_not_found')) return null;
 *   throw error;
 * }
 */
export function isTrackingError(error: unknown): error is TrackingError;
export function isTrackingError<const Code extends ErrorCode>(
  error: unknown,
  code: Code,
): error is TrackingError & { readonly code: Code };
export function isTrackingError(error: unknown, code?: ErrorCode): error is TrackingError {
  if (!brandedKinds(error).includes('TrackingError')) return false;
  // `brandedKinds` proved an object; reading a property that may be missing is safe.
  return code === undefined || (error as { code?: unknown }).code === code;
}

/** What the service said when it refused or failed. */
export interface ApiErrorDetails {
  readonly status: number;
  readonly errors: readonly ApiErrorItem[];
  readonly requestId: string | undefined;
  readonly method: string;
  /** Path template, e.g. `/trackers/{trackerId}`. */
  readonly path: string;
  readonly headers: Headers;
  /** Parsed JSON when it was JSON, else the text. */
  readonly body: unknown;
  /** How many requests were sent, this one included. */
  readonly attempts: number;
  /** How long the service asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
}

/** The service answered, and the answer is not a success (service.md 7). */
export class ApiError extends TrackingError implements ApiErrorDetails {
  static override readonly kind: string = 'ApiError';
  readonly status: number;
  /** The first error's code; branch on it, never on the message. */
  readonly code: ErrorCode | undefined;
  readonly errors: readonly ApiErrorItem[];
  readonly requestId: string | undefined;
  readonly method: string;
  readonly path: string;
  declare readonly headers: Headers;
  declare readonly body: unknown;
  readonly attempts: number;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: ApiErrorDetails, options?: ErrorOptions) {
    super(message, options);
    this.status = details.status;
    this.code = details.errors[0]?.code;
    this.errors = details.errors;
    this.requestId = details.requestId;
    this.method = details.method;
    this.path = details.path;
    this.attempts = details.attempts;
    this.retryAfterMs = details.retryAfterMs;
    // Kept for the reader, out of logs: a body can be a whole HTML page.
    Object.defineProperty(this, 'headers', { value: details.headers });
    Object.defineProperty(this, 'body', { value: details.body });
  }
}

/** The key is missing, malformed or unknown (401, `auth_*`). */
export class AuthenticationError extends ApiError {
  static override readonly kind: string = 'AuthenticationError';
}
/** The key may not do this (403). */
export class PermissionDeniedError extends ApiError {
  static override readonly kind: string = 'PermissionDeniedError';
}
/** There is no such tracker (404, `tracker_not_found`). */
export class NotFoundError extends ApiError {
  static override readonly kind: string = 'NotFoundError';
}
/** Another tracker or request stands in the way (`tracker_conflict`, `request_conflict`, 409); see service.md 2.4. */
export class ConflictError extends ApiError {
  static override readonly kind: string = 'ConflictError';
}
/** The service rejected the request's content (400, 422). */
export class InvalidRequestError extends ApiError {
  static override readonly kind: string = 'InvalidRequestError';
}
/** `shippingDate` is older than 180 days. */
export class ShippingDateOutdatedError extends InvalidRequestError {
  static override readonly kind: string = 'ShippingDateOutdatedError';
}
/** A per-call request without an active per-call subscription. */
export class NoActiveSubscriptionError extends ApiError {
  static override readonly kind: string = 'NoActiveSubscriptionError';
}
/** The plan's quota or creation limit is used up. */
export class QuotaExceededError extends ApiError {
  static override readonly kind: string = 'QuotaExceededError';
}
/** The service refused with 429 more often than the retries allow, or asked for a longer wait than `maxRetryAfterMs`. */
export class RateLimitError extends ApiError {
  static override readonly kind: string = 'RateLimitError';
}
/** The service failed (5xx). */
export class ServerError extends ApiError {
  static override readonly kind: string = 'ServerError';
}
/** The tracker exists and has no results yet (`parcel_not_found`, or an empty list of results); ask again later. */
export class ResultsNotReadyError extends ApiError {
  static override readonly kind: string = 'ResultsNotReadyError';
}

/** The input broke a rule of service.md 2.1; nothing was sent. */
export class RequestValidationError extends TrackingError {
  static override readonly kind: string = 'RequestValidationError';
  readonly issues: readonly ValidationIssue[];
  /** `shipping_date_outdated` when that is the only broken rule, as the service would say; else `validation_error`. */
  readonly code: ErrorCode;

  constructor(issues: readonly ValidationIssue[]) {
    super(issues.map((issue) => issue.message).join('; '));
    this.issues = issues;
    const codes = new Set(issues.map((issue) => issue.code));
    this.code =
      codes.size === 1 && codes.has('shipping_date_outdated') ? 'shipping_date_outdated' : 'validation_error';
  }
}

/** The service answered with success and a body that is not what it promises. */
export class ResponseValidationError extends TrackingError {
  static override readonly kind: string = 'ResponseValidationError';
  readonly issues: readonly ValidationIssue[];
  /** Parsed JSON when it was JSON, else the text. */
  declare readonly body: unknown;
  readonly status: number;
  readonly requestId: string | undefined;

  constructor(
    message: string,
    details: {
      issues: readonly ValidationIssue[];
      body: unknown;
      status: number;
      requestId: string | undefined;
    },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.issues = details.issues;
    this.status = details.status;
    this.requestId = details.requestId;
    Object.defineProperty(this, 'body', { value: details.body });
  }
}

/** No complete answer arrived: refused, reset, DNS failure, or a body that broke off. */
export class ConnectionError extends TrackingError {
  static override readonly kind: string = 'ConnectionError';
  /** True when the request surely never reached the service, so repeating it is safe. */
  readonly neverSent: boolean;

  constructor(message: string, options: ErrorOptions & { neverSent: boolean }) {
    super(message, options);
    this.neverSent = options.neverSent;
  }
}

/** What a call was doing when its time ran out. */
export type TimeoutPhase = 'queue' | 'headers' | 'body' | 'backoff';

/** `timeoutMs` or `totalTimeoutMs` ran out. */
export class TimeoutError extends TrackingError {
  static override readonly kind: string = 'TimeoutError';
  readonly phase: TimeoutPhase;
  /** The time that was allowed, in milliseconds. */
  readonly timeoutMs: number;

  constructor(message: string, details: { phase: TimeoutPhase; timeoutMs: number }, options?: ErrorOptions) {
    super(message, options);
    this.phase = details.phase;
    this.timeoutMs = details.timeoutMs;
  }
}

/** The limiter's queue is full (`rateLimit.maxQueue`); nothing was sent. */
export class QueueFullError extends TrackingError {
  static override readonly kind: string = 'QueueFullError';
}
/** An option is missing or makes no sense; the message names it. */
export class ConfigurationError extends TrackingError {
  static override readonly kind: string = 'ConfigurationError';
}
/** A webhook body is not one; see `tracking-client/webhooks`. */
export class WebhookParseError extends TrackingError {
  static override readonly kind: string = 'WebhookParseError';
}
/** A webhook came without the right secret; see `tracking-client/webhooks`. */
export class WebhookAuthenticationError extends TrackingError {
  static override readonly kind: string = 'WebhookAuthenticationError';
}
