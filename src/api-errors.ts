// Specification: service.md 1, 2.1, 2.4, 5, 7, 8; public contract

import { TrackingError } from './errors.ts';
import type { ApiErrorItem, ErrorCode } from './schemas/api-error.ts';

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

/**
 * The service answered, and the response is not a success. The code decides the class, and the status where it does not.
 */
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

  /**
   * @param message - what went wrong
   * @param details - what the response said
   * @param options - the `cause`
   */
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
/** Another tracker or request stands in the way (`tracker_conflict`, `request_conflict`, 409). */
export class ConflictError extends ApiError {
  static override readonly kind: string = 'ConflictError';
}
/** The service rejected the request's content (400, 422). */
export class InvalidRequestError extends ApiError {
  static override readonly kind: string = 'InvalidRequestError';
}
/** `shippingDate` is older than 180 days (`shipping_date_outdated`). */
export class ShippingDateOutdatedError extends InvalidRequestError {
  static override readonly kind: string = 'ShippingDateOutdatedError';
}
/** A per-call request without an active per-call subscription (`no_active_subscription`). */
export class NoActiveSubscriptionError extends ApiError {
  static override readonly kind: string = 'NoActiveSubscriptionError';
}
/** The plan's quota or creation limit is used up (`quota_limit_reached`, `bulk_create_limit_exceeded`). */
export class QuotaExceededError extends ApiError {
  static override readonly kind: string = 'QuotaExceededError';
}
/**
 * The service answered 429 more often than the retries allow, or asked for a longer wait than `maxRetryAfterMs`.
 */
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
