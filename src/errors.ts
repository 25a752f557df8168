// Specification: service.md 2.1, 6; public contract

import type { ValidationIssue } from './common/validation.ts';
import type { ErrorCode } from './schemas/api-error.ts';

/** Shared by every copy of this package in a process, so errors of the ESM and the CommonJS build know each other. */
export const ERROR_BRAND = Symbol.for('tracking-client.error');

/** True for an error of any copy of this package that is of this kind. */
export function isOfKind(value: unknown, kind: string): boolean {
  const kinds: unknown = Object(value)[ERROR_BRAND];
  return Array.isArray(kinds) && kinds.includes(kind);
}

/** The kind that a class itself declares. */
export function ownKind(errorClass: object): string | undefined {
  // Own property only: a user's subclass inherits `kind`, yet must not match its parent's instances.
  if (!Object.hasOwn(errorClass, 'kind')) return undefined;
  const { kind } = errorClass as { kind?: unknown }; // `hasOwn` above proves the property.
  return typeof kind === 'string' ? kind : undefined;
}

/** Every error this package throws on purpose; a caller's abort rejects with the signal's own reason instead. */
export class TrackingError extends Error {
  static readonly kind: string = 'TrackingError';

  /**
   * @param message - what went wrong
   * @param options - the `cause`
   */
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    const kinds: string[] = [];
    let current: unknown = new.target;
    while (typeof current === 'function') {
      const kind = ownKind(current);
      if (kind !== undefined) kinds.push(kind);
      current = Object.getPrototypeOf(current);
    }
    Object.defineProperty(this, ERROR_BRAND, { value: kinds });
    Object.defineProperty(this, 'name', { value: kinds[0], configurable: true, writable: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    const kind = ownKind(this);
    return kind === undefined
      ? Function.prototype[Symbol.hasInstance].call(this, value)
      : isOfKind(value, kind);
  }

  /**
   * What a log may hold.
   *
   * @returns name, message and the error's own facts; never the cause or a header
   */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...Object.fromEntries(Object.entries(this)) };
  }
}

/** A message with every issue of a bulk request would fill a screen. */
const MOST_ISSUES_SHOWN = 3;

/** The input broke a rule; nothing was sent. */
export class RequestValidationError extends TrackingError {
  static override readonly kind: string = 'RequestValidationError';
  /** The broken rules, one each. */
  readonly issues: readonly ValidationIssue[];
  /** `shipping_date_outdated` when that is the only broken rule, as the service would say; else `validation_error`. */
  readonly code: ErrorCode;

  /** @param issues - the broken rules, at least one */
  constructor(issues: readonly ValidationIssue[]) {
    const more = issues.length - MOST_ISSUES_SHOWN;
    const shown = issues.slice(0, MOST_ISSUES_SHOWN).map((issue) => issue.message);
    super(`${shown.join('; ')}${more > 0 ? ` (and ${more} more)` : ''}`);
    this.issues = issues;
    const codes = new Set(issues.map((issue) => issue.code));
    this.code =
      codes.size === 1 && codes.has('shipping_date_outdated') ? 'shipping_date_outdated' : 'validation_error';
  }
}

/** The service answered with success and a body that is not what it promises; or, with any status, with too long a body. */
export class ResponseValidationError extends TrackingError {
  static override readonly kind: string = 'ResponseValidationError';
  /** What the body breaks, the first 20 of it; the message says how many more there are. */
  readonly issues: readonly ValidationIssue[];
  /** Parsed JSON when it was JSON, else the text; undefined when it was too long. */
  declare readonly body: unknown;
  /** HTTP status: a success, unless the body was too long to be read. */
  readonly status: number;
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;

  /**
   * @param message - what went wrong
   * @param details - what the response held, and what is wrong with it
   * @param options - the `cause`
   */
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

/** No complete response arrived: connection refused, reset, DNS failure, or a body that broke off. */
export class ConnectionError extends TrackingError {
  static override readonly kind: string = 'ConnectionError';
  /** True when the request surely never reached the service, so repeating it is safe. */
  readonly neverSent: boolean;

  /**
   * @param message - what went wrong
   * @param options - `neverSent`, and the `cause`
   */
  constructor(message: string, options: ErrorOptions & { neverSent: boolean }) {
    super(message, options);
    this.neverSent = options.neverSent;
  }
}

/** What a call was doing when its time ran out: it waited for the limiter, the headers, the body, or its next attempt. */
export type TimeoutPhase = 'queue' | 'headers' | 'body' | 'backoff';

/** `timeoutMs` or `totalTimeoutMs` ran out. */
export class TimeoutError extends TrackingError {
  static override readonly kind: string = 'TimeoutError';
  /** What the call was doing. */
  readonly phase: TimeoutPhase;
  /** The time that was allowed, in milliseconds. */
  readonly timeoutMs: number;

  /**
   * @param message - what went wrong
   * @param details - what the call was doing, and how many milliseconds it had
   * @param options - the `cause`
   */
  constructor(message: string, details: { phase: TimeoutPhase; timeoutMs: number }, options?: ErrorOptions) {
    super(message, options);
    this.phase = details.phase;
    this.timeoutMs = details.timeoutMs;
  }
}

/** The limiter's queue is full (`rateLimit.maxQueue`); nothing was sent. A retry that meets a full queue rejects with the failure it follows. */
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
