// Specification: service.md 1, 2.1, 2.4, 5, 7, 8; public contract

import { isOfKind, ownKind, type RequestValidationError, TrackingError } from './errors.ts';
import { type ApiErrorItem, type ErrorCode, isKnownErrorCode } from './schemas/api-error.ts';
import type { Tracker } from './schemas/tracker.ts';

/** What the service said when it rejected the request or failed. */
export interface ApiErrorDetails {
  /** HTTP status. */
  readonly status: number;
  /** What the service complained of; empty when its body did not say. */
  readonly errors: readonly ApiErrorItem[];
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
  /** HTTP method. */
  readonly method: string;
  /** Path template, e.g. `/trackers/{trackerId}`. */
  readonly path: string;
  /** Headers of the response. */
  readonly headers: Headers;
  /** Parsed JSON when it was JSON, else the text. */
  readonly body: unknown;
  /** How many requests were sent, this one included. */
  readonly attempts: number;
  /** How long the service asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
}

/** The service answered, and not with a success; the code decides the class, and the status where it does not. */
export class ApiError extends TrackingError implements ApiErrorDetails {
  static override readonly kind: string = 'ApiError';
  readonly status: number;
  /** The first code that this version knows, else the first of all; branch on it, never on the message. */
  readonly code: ErrorCode | undefined;
  readonly errors: readonly ApiErrorItem[];
  readonly requestId: string | undefined;
  readonly method: string;
  readonly path: string;
  declare readonly headers: Headers;
  declare readonly body: unknown;
  readonly attempts: number;
  readonly retryAfterMs: number | undefined;

  /**
   * @param message - what went wrong
   * @param details - what the response said
   * @param options - the `cause`
   */
  constructor(message: string, details: ApiErrorDetails, options?: ErrorOptions) {
    super(message, options);
    this.status = details.status;
    this.code = decidingCode(details.errors);
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

/** The code that an error goes by: what a later version of the service adds must not hide what is known. */
export function decidingCode(errors: readonly ApiErrorItem[]): ErrorCode | undefined {
  const known = errors.find(({ code }) => isKnownErrorCode(code) || code.startsWith('auth_'));
  return (known ?? errors[0])?.code;
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
/** Another tracker or request stands in the way (`tracker_conflict`, `request_conflict`, 409). */
export class ConflictError extends ApiError {
  static override readonly kind: string = 'ConflictError';
}
/** The service rejected the request's content (400, 422). */
export class InvalidRequestError extends ApiError {
  static override readonly kind: string = 'InvalidRequestError';
}
/**
 * `shippingDate` is older than 180 days (`shipping_date_outdated`). A date that surely is gets rejected before anything is
 * sent: that error is a `RequestValidationError`, without a status, and `instanceof` holds for both classes.
 */
export class ShippingDateOutdatedError extends InvalidRequestError {
  static override readonly kind: string = 'ShippingDateOutdatedError';

  static override [Symbol.hasInstance](
    value: unknown,
  ): value is
    | ShippingDateOutdatedError
    | (RequestValidationError & { readonly code: 'shipping_date_outdated' }) {
    const isLocal = ownKind(this) !== undefined && isTrackingError(value, 'shipping_date_outdated');
    return isLocal || super[Symbol.hasInstance](value);
  }
}
/** A per-call request without an active per-call subscription (`no_active_subscription`). */
export class NoActiveSubscriptionError extends ApiError {
  static override readonly kind: string = 'NoActiveSubscriptionError';
}
/** The plan's quota or creation limit is used up (`quota_limit_reached`, `bulk_create_limit_exceeded`). */
export class QuotaExceededError extends ApiError {
  static override readonly kind: string = 'QuotaExceededError';
}
/** The service answered 429 more often than the retries allow, or asked for a longer wait than `maxRetryAfterMs`. */
export class RateLimitError extends ApiError {
  static override readonly kind: string = 'RateLimitError';
}
/** The service failed (5xx). */
export class ServerError extends ApiError {
  static override readonly kind: string = 'ServerError';
}
/**
 * The tracker exists and has no results yet (`parcel_not_found`, or an empty list of results); ask again later, unless
 * `tracker` says that there will be none.
 */
export class ResultsNotReadyError extends ApiError {
  static override readonly kind: string = 'ResultsNotReadyError';
  /** The record of a tracker that was given up, with `isTracked: false`; only `trackers.waitUntilStopped` has one. */
  readonly tracker?: Tracker;

  /**
   * @param message - what went wrong
   * @param details - what the response said, and the record of the tracker
   * @param options - the `cause`
   */
  constructor(
    message: string,
    details: ApiErrorDetails & { readonly tracker?: Tracker },
    options?: ErrorOptions,
  ) {
    super(message, details, options);
    if (details.tracker !== undefined) this.tracker = details.tracker;
  }
}

/** The errors that have a code: those of the service, and those of an input that breaks a rule. */
type ErrorOfCode<Code extends ErrorCode> = string extends Code
  ? TrackingError & { readonly code: Code }
  : Code extends 'validation_error' | 'shipping_date_outdated'
    ? (ApiError | RequestValidationError) & { readonly code: Code }
    : ApiError & { readonly code: Code };

/**
 * True for every error of this package, also one from another copy of it.
 *
 * @param error - anything that was caught
 * @returns true when it is one
 */
export function isTrackingError(error: unknown): error is TrackingError;
/**
 * True for errors of this package with one code; it is an `ApiError`, or for `validation_error` and
 * `shipping_date_outdated` perhaps a `RequestValidationError`.
 *
 * @param error - anything that was caught
 * @param code - the code to ask for, e.g. `shipping_date_outdated`
 * @returns true when it is one with that code
 * @example
 * try { await client.trackers.get(id); } catch (error) {
 *   if (isTrackingError(error, 'tracker_not_found')) return null;
 *   throw error;
 * }
 */
export function isTrackingError<const Code extends ErrorCode>(
  error: unknown,
  code: Code,
): error is ErrorOfCode<Code>;
export function isTrackingError(error: unknown, code?: ErrorCode): error is TrackingError {
  if (!isOfKind(error, 'TrackingError')) return false;
  // `isOfKind` proved an object; reading a property that may be missing is safe.
  return code === undefined || (error as { code?: unknown }).code === code;
}
