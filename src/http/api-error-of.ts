import { redactText, redactValue } from '../common/secrets.ts';
import {
  ApiError,
  type ApiErrorDetails,
  AuthenticationError,
  ConflictError,
  decidingCode,
  InvalidRequestError,
  NoActiveSubscriptionError,
  NotFoundError,
  PermissionDeniedError,
  QuotaExceededError,
  RateLimitError,
  ResultsNotReadyError,
  ServerError,
  ShippingDateOutdatedError,
} from '../errors.ts';
import { type ApiErrorItem, isKnownErrorCode, type KnownErrorCode } from '../schemas/api-error.ts';
import { isJsonObject } from '../schemas/envelope.ts';

type ApiErrorClass = new (message: string, details: ApiErrorDetails, options?: ErrorOptions) => ApiError;

/** The class of every known code; undefined where the code says less than the status does. */
const CLASS_OF_CODE: Record<KnownErrorCode, ApiErrorClass | undefined> = {
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

const CLASS_OF_STATUS: Readonly<Record<number, ApiErrorClass>> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  422: InvalidRequestError,
  429: RateLimitError,
};

function classOfCode(code: string): ApiErrorClass | undefined {
  if (isKnownErrorCode(code)) return CLASS_OF_CODE[code];
  return code.startsWith('auth_') ? AuthenticationError : undefined;
}

/** One error as the service sent it, without the key; a known code stays one, whatever the key is. */
function toItem(value: unknown, key: string): ApiErrorItem[] {
  if (!isJsonObject(value) || typeof value['code'] !== 'string') return [];
  const { code, message, ...rest } = value;
  return [
    {
      // Sound: what `redactValue` makes of a JSON object is a JSON object.
      ...(redactValue(rest, key) as object),
      code: isKnownErrorCode(code) ? code : redactText(code, key),
      message: typeof message === 'string' ? redactText(message, key) : undefined,
    },
  ];
}

/** Reads the errors of both envelopes: `{ errors: [...] }`, and `{ error }` of the bulk endpoint. */
export function readErrorItems(body: unknown, key: string): ApiErrorItem[] {
  if (!isJsonObject(body)) return [];
  const { errors, error } = body;
  return Array.isArray(errors) ? errors.flatMap((one) => toItem(one, key)) : toItem(error, key);
}

const LONGEST_EXCERPT = 500;

function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body) ?? '';
  } catch {
    // Nested deeper than the stack is: not worth quoting.
    return '';
  }
}

/** One short line: a text of the service may hold line breaks and terminal codes, which would forge lines in a log. */
function oneLine(text: string): string {
  const line = text
    .slice(0, LONGEST_EXCERPT * 4)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length > LONGEST_EXCERPT ? `${line.slice(0, LONGEST_EXCERPT - 1)}…` : line;
}

/** A body as one short line; a gateway's page shows its size only. */
export function excerpt(body: unknown): string {
  const text = typeof body === 'string' ? body : jsonOf(body);
  return /^\s*</.test(text) ? `an HTML page of ${text.length} characters` : oneLine(text);
}

/** `title`: method and whole URL of the request. */
function describe(details: ApiErrorDetails, title: string): string {
  const code = decidingCode(details.errors);
  const deciding = details.errors.find((item) => item.code === code);
  const said =
    deciding === undefined
      ? excerpt(details.body)
      : oneLine([deciding.code, deciding.message].filter(Boolean).join(': '));
  const request = details.requestId === undefined ? '' : ` (request ${details.requestId})`;
  const answered = `${title} was answered with ${details.status}`;
  // The service says of everything it does not have that it is missing.
  const isForeign = details.status === 404 && details.errors.length === 0;
  return `${answered}${said === '' ? '' : `: ${said}`}${request}${isForeign ? '; is the base URL right?' : ''}`;
}

/** The error for a response: by code first, by status second; `title` is the method and the whole URL of the request. */
export function apiErrorOf(
  details: ApiErrorDetails,
  title: string,
  message = describe(details, title),
): ApiError {
  const { status } = details;
  const byStatus = status >= 500 ? ServerError : (CLASS_OF_STATUS[status] ?? ApiError);
  const ErrorClass = classOfCode(decidingCode(details.errors) ?? '') ?? byStatus;
  return new ErrorClass(message, details);
}
