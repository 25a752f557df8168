import { maskText, maskValue, toPrintableLine } from '../common/secrets.ts';
import { isJsonObject } from '../common/validation.ts';
import { type ApiError, type ApiErrorDetails, chooseErrorClass, decidingCode } from '../errors.ts';
import { type ApiErrorItem, isKnownErrorCode } from '../schemas/api-error.ts';

/** Reads one error with the key masked; a known code is kept even where it contains the key. */
function readItem(value: unknown, key: string): ApiErrorItem[] {
  if (!isJsonObject(value) || typeof value['code'] !== 'string') return [];
  const { code, message, ...rest } = value;
  return [
    {
      // Sound: `maskValue` makes an object of an object.
      ...(maskValue(rest, key) as object),
      code: isKnownErrorCode(code) ? code : maskText(code, key),
      message: typeof message === 'string' ? maskText(message, key) : undefined,
    },
  ];
}

/** Reads the errors of both envelopes: `{ errors: [...] }`, and `{ error }` of the bulk endpoint. */
export function readErrorItems(body: unknown, key: string): ApiErrorItem[] {
  if (!isJsonObject(body)) return [];
  const { errors, error } = body;
  return Array.isArray(errors) ? errors.flatMap((item) => readItem(item, key)) : readItem(error, key);
}

const MAX_EXCERPT_LENGTH = 500;

function stringify(body: unknown): string {
  try {
    return JSON.stringify(body) ?? '';
  } catch {
    // A body nested deeper than the stack is not worth quoting.
    return '';
  }
}

/** Quotes a masked body as one short line; of a gateway's page only the size. */
export function excerpt(body: unknown): string {
  const text = typeof body === 'string' ? body : stringify(body);
  return /^\s*</.test(text)
    ? `an HTML page of ${text.length} characters`
    : toPrintableLine(text, MAX_EXCERPT_LENGTH);
}

function describe({ status, errors, body, requestId }: ApiErrorDetails, title: string): string {
  const code = decidingCode(errors);
  const deciding = errors.find((item) => item.code === code);
  const quote =
    deciding === undefined
      ? excerpt(body)
      : toPrintableLine([deciding.code, deciding.message].filter(Boolean).join(': '), MAX_EXCERPT_LENGTH);
  // The service names a code with every 404 of its own, so one without comes from another server.
  const hint = status === 404 && errors.length === 0 ? '; is the base URL right?' : '';
  const request = requestId === undefined ? '' : ` (request ${requestId})`;
  return `${title} responded with ${status}${quote === '' ? '' : `: ${quote}`}${request}${hint}`;
}

/**
 * Creates the error of a response: its code decides the class, and the status where the code does not.
 *
 * @param title - method and URL of the request
 * @param message - default: what the response said
 */
export function createApiError(
  details: ApiErrorDetails,
  title: string,
  message = describe(details, title),
): ApiError {
  const ErrorClass = chooseErrorClass(details.status, decidingCode(details.errors));
  return new ErrorClass(message, details);
}
