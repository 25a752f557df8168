import { maskHeaders, maskText, maskValue, toPrintableLine } from '../common/secrets.ts';
import { isJsonObject, kindOf, MAX_ISSUES, type ValidationIssue } from '../common/validation.ts';
import type { Config } from '../config/config.ts';
import {
  type ApiError,
  type ApiErrorDetails,
  chooseErrorClass,
  decidingCode,
  isKnownErrorCode,
  ResponseValidationError,
  ResultsNotReadyError,
} from '../errors.ts';
import { type RateLimitFeedback, WINDOW_MS } from '../limiter/limiter.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import { BULK_STATUSES } from '../schemas/bulk.ts';
import { NO_RESULTS_YET } from '../schemas/envelope.ts';
import type { CallOutcome, RateLimitInfo, WithResponse } from './api-promise.ts';
import type { PreparedRequest, ResponseRules } from './prepare.ts';

export interface RawResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
  /** The key of this attempt. A server can echo it, but no error may show it. */
  readonly key: string;
}

interface Exchange<T = unknown> {
  readonly request: PreparedRequest<T>;
  readonly response: RawResponse;
  readonly attempts: number;
}

const MAX_HEADER_TEXT_LENGTH = 200;
const JSON_TYPE = /^(application|text)\/([\w.+-]+\+)?json\b/i;

/** @throws ApiError for a response that is not a success; ResponseValidationError for a success that cannot be read */
export function readOutcome<T>(
  config: Config,
  request: PreparedRequest<T>,
  response: RawResponse,
  attempts: number,
): CallOutcome<T> {
  const exchange = { request, response, attempts };
  const payload = readPayload(exchange);
  const checked = request.read(payload, config.invalidResponse);
  const mismatched = checked.mismatched.map((issue) => maskIssue(issue, response.key));
  if (!checked.isUsable) throw createMismatchError(exchange, payload, mismatched, checked.total);
  const { data } = checked;
  return {
    data,
    mismatched,
    details: (): WithResponse<T> => ({
      data,
      response: rebuildResponse(response, config.baseUrl + request.target),
      requestId: response.headers.get('x-request-id') ?? undefined,
      rateLimit: readRateLimit(response.headers),
      attempts,
      mismatched,
    }),
  };
}

/** Reads the request id with the key masked, because logs and errors show the id. */
export function readRequestId({ headers, key }: RawResponse): string | undefined {
  const requestId = headers.get('x-request-id');
  return requestId === null ? undefined : formatHeaderText(requestId, key);
}

function formatHeaderText(text: string, key: string): string {
  return toPrintableLine(maskText(text, key), MAX_HEADER_TEXT_LENGTH);
}

function readPayload(exchange: Exchange): unknown {
  const { request, response } = exchange;
  const { status, text } = response;
  const rules = request.response;
  if (!isSuccess(response, rules))
    throw createApiError(createDetails(exchange, parseLoosely(text)), request.title);
  const isBodyless = request.method === 'HEAD' || status === 204 || status === 205;
  if (isBodyless && rules.isBodyOptional) return {};
  const parsed = parseBody(response);
  if ('problem' in parsed) {
    if (rules.isStatusEnough) return {};
    throw createBodyError(exchange, text, parsed.problem);
  }
  // The result of a bulk request can hold errors (docs/service.md 7.2), which can echo the key.
  const unwrapped = rules.unwrap(rules.resultStatuses ? maskBody(response, parsed.json) : parsed.json);
  if ('missing' in unwrapped) {
    const { missing } = unwrapped;
    const problem = isJsonObject(parsed.json)
      ? `an object without ${missing}`
      : `${kindOf(parsed.json)} instead of an object with ${missing}`;
    throw createBodyError(exchange, parsed.json, problem);
  }
  if (unwrapped.payload === NO_RESULTS_YET) throw createNotReadyError(exchange, parsed.json);
  return unwrapped.payload;
}

function isSuccess({ status, text }: RawResponse, rules: ResponseRules): boolean {
  if (status >= 200 && status < 300) return true;
  if (!rules.resultStatuses?.includes(status)) return false;
  const body = parseLoosely(text);
  return isJsonObject(body) && BULK_STATUSES.some((bulkStatus) => bulkStatus === body['status']);
}

function parseBody(response: RawResponse): { readonly json: unknown } | { readonly problem: string } {
  const { headers, text, key } = response;
  if (text.trim() === '') return { problem: 'an empty body instead of JSON' };
  const type = headers.get('content-type');
  const isAttachment = /^attachment/i.test(headers.get('content-disposition') ?? '');
  if (type !== null && !JSON_TYPE.test(type) && !isAttachment) {
    const shortType = formatHeaderText(type, key).replace(/;.*/, '');
    return {
      problem: `${shortType} instead of JSON; check the base URL`,
    };
  }
  try {
    return { json: JSON.parse(text) };
  } catch {
    return { problem: 'a body that is not valid JSON' };
  }
}

function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Masks the API key: a response could contain it as the name of a field, and an issue names the field. */
function maskIssue(issue: ValidationIssue, key: string): ValidationIssue {
  const path = issue.path.map((name) => (typeof name === 'string' ? maskText(name, key) : name));
  return { ...issue, path, message: maskText(issue.message, key) };
}

function createMismatchError(
  exchange: Exchange,
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
  const message = `The response of ${exchange.request.title} is not as documented: ${excerpt(first?.message ?? '')}${more}`;
  return new ResponseValidationError(message, { ...maskFacts(exchange.response, payload), issues });
}

export function createBodyError(
  { request, response }: Pick<Exchange, 'request' | 'response'>,
  body: unknown,
  got: string,
  code = 'invalid_body',
): ResponseValidationError {
  const message = `${request.title} responded with ${maskText(got, response.key)}`;
  const issues = [{ path: [], code, message }];
  return new ResponseValidationError(message, { ...maskFacts(response, body), issues });
}

function createNotReadyError(exchange: Exchange, body: unknown): ResultsNotReadyError {
  const details = { ...createDetails(exchange, body), errors: [], retryAfterMs: undefined };
  return new ResultsNotReadyError(
    `${exchange.request.title} returned no results yet; ask again later`,
    details,
  );
}

function maskFacts(response: RawResponse, body: unknown) {
  return { status: response.status, requestId: readRequestId(response), body: maskBody(response, body) };
}

/** Masks the key in a body. A body without the key and without any escape is not copied, because it may have 64 MiB. */
function maskBody({ text, key }: RawResponse, body: unknown): unknown {
  return text.includes(key) || /\\[u/]|%/.test(text) ? maskValue(body, key) : body;
}

function createDetails(exchange: Exchange, body: unknown): ApiErrorDetails {
  const { request, response, attempts } = exchange;
  return {
    ...maskFacts(response, body),
    errors: readErrorItems(body, response.key),
    method: request.method,
    path: request.path,
    headers: maskHeaders(response.headers, response.key),
    attempts,
    retryAfterMs: readRetryAfterMs(response),
  };
}

function rebuildResponse({ status, statusText, headers, text }: RawResponse, url: string): Response {
  const isBodyless = text === '' || status === 204 || status === 205;
  // A reason phrase may hold bytes that `Response` refuses.
  const phrase = /^[\t\x20-\x7e]*$/.test(statusText) ? statusText : '';
  const init = { status, statusText: phrase, headers: maskHeaders(headers, '') };
  return Object.defineProperty(new Response(isBodyless ? null : text, init), 'url', { value: url });
}

function readItem(value: unknown, key: string): ApiErrorItem[] {
  if (!isJsonObject(value) || typeof value['code'] !== 'string') return [];
  const { code, message, ...rest } = value;
  return [
    {
      // Safe cast: `maskValue` returns an object for an object.
      ...(maskValue(rest, key) as object),
      code: isKnownErrorCode(code) ? code : maskText(code, key),
      message: typeof message === 'string' ? maskText(message, key) : undefined,
    },
  ];
}

/** Reads the errors of both envelopes: `{ errors: [...] }`, and `{ error }` of the bulk endpoint (docs/service.md 7.1, 7.2). */
export function readErrorItems(body: unknown, key: string): ApiErrorItem[] {
  if (!isJsonObject(body)) return [];
  const { errors, error } = body;
  return Array.isArray(errors) ? errors.flatMap((item) => readItem(item, key)) : readItem(error, key);
}

const MAX_EXCERPT_LENGTH = 500;

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

function describe({ status, errors, body, requestId, headers }: ApiErrorDetails, title: string): string {
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
  const hint = isPathUnknown ? '; check the base URL: it must end with the version, as in /public/v1' : '';
  const request = requestId === undefined ? '' : ` (request id ${requestId})`;
  return `${title} responded with ${status}${quote === '' ? '' : `: ${quote}`}${request}${hint}`;
}

export function createApiError(details: ApiErrorDetails, title: string): ApiError {
  const ErrorClass = chooseErrorClass(details.status, decidingCode(details.errors));
  return new ErrorClass(describe(details, title), details);
}

/** From this value on `X-RateLimit-Reset` is a Unix time (docs/service.md 6.2), because no delay lasts three years. */
const MIN_TIMESTAMP_SECONDS = 100_000_000;

type ResponseHead = Pick<Response, 'status' | 'headers'>;

export function readRateLimitFeedback(response: ResponseHead): RateLimitFeedback {
  const { status, headers } = response;
  const { limit, remaining, resetMs } = readRateLimit(headers);
  const retryAfterMs = status === 429 ? readRetryAfterMs(response) : undefined;
  return { status, retryAfterMs, announcedLimit: limit, remaining, resetMs };
}

/** Reads the announced rate limit. `RateLimit-*` overrides `X-RateLimit-*` (docs/service.md 6.2). */
export function readRateLimit(headers: Headers): RateLimitInfo {
  const limit = readInteger(headers.get('ratelimit-limit')) ?? readInteger(headers.get('x-ratelimit-limit'));
  return {
    limit: limit !== undefined && limit > 0 && Number.isSafeInteger(limit) ? limit : undefined,
    remaining:
      readInteger(headers.get('ratelimit-remaining')) ?? readInteger(headers.get('x-ratelimit-remaining')),
    resetMs: readResetMs(headers),
  };
}

/** Reads how many milliseconds the service asks to wait (docs/service.md 6.5). Without a time, a 429 means one window. */
export function readRetryAfterMs({ status, headers }: ResponseHead): number | undefined {
  const retryAfter = headers.get('retry-after');
  const delay = parseSeconds(retryAfter);
  const requestedMs = delay === undefined ? readTimeUntil(parseDate(retryAfter), headers) : delay * 1000;
  return status === 429 ? (requestedMs ?? readResetMs(headers) ?? WINDOW_MS) : requestedMs;
}

function readResetMs(headers: Headers): number | undefined {
  const delay = parseSeconds(headers.get('ratelimit-reset'));
  if (delay !== undefined) return delay * 1000;
  const reset = parseSeconds(headers.get('x-ratelimit-reset'));
  if (reset === undefined) return undefined;
  return reset < MIN_TIMESTAMP_SECONDS ? reset * 1000 : readTimeUntil(reset * 1000, headers);
}

/** Dates are compared with the `Date` header, never with this machine's clock, which may be wrong. */
function readTimeUntil(momentMs: number | undefined, headers: Headers): number | undefined {
  if (momentMs === undefined) return undefined;
  const sentAtMs = parseDate(headers.get('date'));
  return sentAtMs === undefined ? undefined : Math.max(0, momentMs - sentAtMs);
}

function readInteger(text: string | null): number | undefined {
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
}

function parseSeconds(text: string | null): number | undefined {
  const trimmed = text?.trim() ?? '';
  return /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

function parseDate(text: string | null): number | undefined {
  // A lone number would parse as a year.
  const parsed = /[A-Za-z]{3}/.test(text ?? '') ? Date.parse(text ?? '') : Number.NaN;
  return Number.isNaN(parsed) ? undefined : parsed;
}
