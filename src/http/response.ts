// Specification: service.md 8

import { z } from 'zod';
import { headersOf, redactHeaders, redactText, redactValue } from '../common/secrets.ts';
import { formatPath, kindOf, type ValidationIssue } from '../common/validation.ts';
import type { Config } from '../config/config.ts';
import {
  type ApiErrorDetails,
  ConfigurationError,
  ResponseValidationError,
  ResultsNotReadyError,
} from '../errors.ts';
import { WINDOW_MS } from '../limiter/allowance.ts';
import type { RateLimitFeedback } from '../limiter/limiter.ts';
import type { AttemptInfo } from '../observability/hooks.ts';
import {
  type CheckedResponse,
  checkResponse,
  type InvalidResponseMode,
  isJsonObject,
  NO_RESULTS_YET,
} from '../schemas/envelope.ts';
import { apiErrorOf, excerpt, readErrorItems } from './api-error-of.ts';
import type { CallOutcome, RateLimitInfo } from './api-promise.ts';
import type { PreparedCall } from './request.ts';

/** The facts of an attempt that errors need. */
export interface Attempt<T> {
  readonly call: PreparedCall<T>;
  /** Which attempt it is, from 1. */
  readonly attempts: number;
  /** The key of this attempt, which no error may show: a server can echo it. */
  readonly key: string;
}

/** A response that arrived whole. */
export interface CallResponse<T> extends Attempt<T> {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
}

type AnyResponse = CallResponse<unknown>;

const JSON_TYPE = /^(application|text)\/([\w.+-]+\+)?json\b/i;
const BULK_STATUSES = ['success', 'partial', 'error'];

/** What a call resolves to, or the error that its response stands for. */
export function readOutcome<T>(
  config: Config,
  response: CallResponse<T>,
  state: { readonly info: AttemptInfo },
): CallOutcome<T> {
  const payload = payloadOf(response);
  const { data, mismatched } = checkedData(config, response, payload, state);
  return {
    data,
    details: () => ({
      data,
      response: rebuiltResponse(response, config.baseUrl + response.call.target),
      requestId: response.headers.get('x-request-id') ?? undefined,
      rateLimit: parseRateLimit(response.headers),
      attempts: response.attempts,
      mismatched,
    }),
  };
}

/** The request id as logs and errors may show it. */
export function requestIdOf({ headers, key }: AnyResponse): string | undefined {
  const requestId = headers.get('x-request-id');
  return requestId === null ? undefined : redactText(requestId, key);
}

function payloadOf(response: AnyResponse): unknown {
  const { call, status, text } = response;
  if (!isResult(response)) {
    throw apiErrorOf(detailsOf(response, looseJson(text)), call.title, redirectMessage(response));
  }
  const hasNoBody = call.method === 'HEAD' || status === 204 || status === 205;
  if (hasNoBody && call.response.mayBeEmpty) return {};
  const parsed = parseJson(response);
  if ('problem' in parsed && call.response.isStatusEnough) return {};
  if ('problem' in parsed) throw invalidBody(response, text, parsed.problem);
  const unwrapped = call.response.unwrap(parsed.json);
  if ('mismatch' in unwrapped)
    throw invalidBody(response, parsed.json, `${kindOf(parsed.json)} where ${unwrapped.mismatch} was due`);
  if (unwrapped.payload === NO_RESULTS_YET) throw notReady(response, parsed.json);
  return unwrapped.payload;
}

function isResult({ call, status, text }: AnyResponse): boolean {
  if (status >= 200 && status < 300) return true;
  if (!call.response.resultStatuses?.includes(status)) return false;
  const body = looseJson(text);
  return isJsonObject(body) && BULK_STATUSES.some((one) => one === body['status']);
}

function parseJson({
  headers,
  text,
}: AnyResponse): { readonly json: unknown } | { readonly problem: string } {
  if (text.trim() === '') return { problem: 'an empty body' };
  const type = headers.get('content-type');
  const isAttachment = /^attachment/i.test(headers.get('content-disposition') ?? '');
  if (type !== null && !JSON_TYPE.test(type) && !isAttachment)
    return { problem: `content of type ${type.replace(/;.*/, '').slice(0, 100)}` };
  try {
    return { json: JSON.parse(text) };
  } catch {
    return { problem: 'a body that is not valid JSON' };
  }
}

function looseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function checkedData<T>(
  config: Config,
  response: CallResponse<T>,
  payload: unknown,
  state: { readonly info: AttemptInfo },
) {
  const { call } = response;
  // A schema of the caller's own is for the caller to say: nothing but it is known of the response.
  const isOwnSchema = call.response.isOwnSchema && config.invalidResponse === 'keep';
  const checked = check(call.response.schema, payload, isOwnSchema ? 'throw' : config.invalidResponse);
  if (checked.total === 0 && checked.isUsable) return checked;
  const mismatched = checked.mismatched.map((issue) => redactIssue(issue, response.key));
  const message = mismatchMessage(response, mismatched, checked.total);
  if (!checked.isUsable)
    throw new ResponseValidationError(message, { ...factsOf(response, payload), issues: mismatched });
  const requestId = requestIdOf(response);
  config.hooks.onMismatch?.({ ...state.info, requestId, mismatched });
  if (config.invalidResponse === 'warn') config.logger.warn(`${message}; handed over as it arrived`);
  else config.logger.debug(`${message}; kept as it arrived`, { requestId });
  return { data: checked.data, mismatched };
}

function check<T>(schema: z.ZodType<T>, payload: unknown, mode: InvalidResponseMode): CheckedResponse<T> {
  try {
    return checkResponse(schema, payload, mode);
  } catch (cause) {
    if (!(cause instanceof z.core.$ZodAsyncError)) throw cause;
    throw new ConfigurationError('Expected `schema` to check without promises, got an asynchronous one', {
      cause,
    });
  }
}

/** The name of a field can come from the response, and so can the key. */
function redactIssue(issue: ValidationIssue, key: string): ValidationIssue {
  const path = issue.path.map((name) => (typeof name === 'string' ? redactText(name, key) : name));
  return { ...issue, path, message: redactText(issue.message, key) };
}

function mismatchMessage({ call }: AnyResponse, [first]: readonly ValidationIssue[], total: number): string {
  const where = first === undefined ? 'an unknown field' : formatPath(first.path, 'data');
  const more = total > 1 ? ` (and ${total - 1} more)` : '';
  return `${call.title} was answered with an unexpected \`${where}\`: ${excerpt(first?.message ?? '')}${more}`;
}

function invalidBody(response: AnyResponse, body: unknown, got: string): ResponseValidationError {
  const { call, key } = response;
  const message = `Expected ${call.title} to answer with its documented JSON, got ${redactText(got, key)}`;
  const issues = [{ path: [], code: 'invalid_body', message }];
  return new ResponseValidationError(message, { ...factsOf(response, body), issues });
}

/** What a response says, as an error may show it: without the key. */
function factsOf(response: AnyResponse, body: unknown) {
  const { status, key } = response;
  return { status, requestId: requestIdOf(response), body: redactValue(body, key) };
}

function detailsOf(response: AnyResponse, body: unknown): ApiErrorDetails {
  const { call, status, headers, key, attempts } = response;
  return {
    ...factsOf(response, body),
    errors: readErrorItems(body, key),
    method: call.method,
    path: call.path,
    headers: redactHeaders(headers, key),
    attempts,
    retryAfterMs: retryAfterMsOf(status, headers),
  };
}

function redirectMessage({ call, status }: AnyResponse): string | undefined {
  if (status < 300 || status > 399) return undefined;
  return `${call.title} was answered with a redirect (${status}), which is never followed: the key would travel with it`;
}

function notReady(response: AnyResponse, body: unknown): ResultsNotReadyError {
  const details = detailsOf(response, body);
  // A success complains of nothing, whatever else its body holds.
  return new ResultsNotReadyError(`${response.call.title} has no results yet; ask again later`, {
    ...details,
    errors: [],
    retryAfterMs: undefined,
  });
}

/** A response whose body can be read although the pipeline has read it already. */
function rebuiltResponse({ status, statusText, headers, text }: AnyResponse, url: string): Response {
  const hasNoBody = status === 204 || status === 205;
  // A reason phrase may hold bytes that `Response` rejects.
  const phrase = /^[\t\x20-\x7e]*$/.test(statusText) ? statusText : '';
  const init = { status, statusText: phrase, headers: headersOf(headers) };
  return Object.defineProperty(new Response(hasNoBody ? null : text, init), 'url', { value: url });
}

/** Above this a reset header is a Unix timestamp, below it a delay: no delay of ours lasts 3 years. */
const SMALLEST_TIMESTAMP_SECONDS = 100_000_000;
const SMALLEST_TIMESTAMP_MS = 100_000_000_000;

function seconds(text: string | null): number | undefined {
  const trimmed = text?.trim() ?? '';
  return /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

function toMs(value: number): number {
  return Math.min(Math.ceil(value * 1000), Number.MAX_SAFE_INTEGER);
}

/** Reads an HTTP-date in any of its three forms (RFC 9110, 5.6.7). */
function httpDateMs(text: string): number | undefined {
  // A lone number would parse as a year.
  if (!/[A-Za-z]{3}/.test(text)) return undefined;
  // The oldest form ends with the year; it means GMT as well, and would parse as this machine's local time.
  const parsed = Date.parse(/\s\d{4}$/.test(text) ? `${text} GMT` : text);
  return Number.isNaN(parsed) ? undefined : parsed;
}

/** Time until a moment by the service's own clock when it answered: the only one its timestamps may be compared with. */
function untilMs(at: number | undefined, headers: Headers): number | undefined {
  const now = httpDateMs(headers.get('date') ?? '');
  return now === undefined || at === undefined ? undefined : Math.max(0, at - now);
}

function resetDelayMs(headers: Headers): number | undefined {
  const delay = seconds(headers.get('ratelimit-reset'));
  if (delay !== undefined) return toMs(delay);
  const reset = seconds(headers.get('x-ratelimit-reset'));
  if (reset === undefined) return undefined;
  if (reset < SMALLEST_TIMESTAMP_SECONDS) return toMs(reset);
  return untilMs(reset < SMALLEST_TIMESTAMP_MS ? reset * 1000 : reset, headers);
}

/**
 * How long the service asks to wait, in milliseconds: `Retry-After` in seconds, `Retry-After` as a date minus the
 * `Date` header, `RateLimit-Reset`, `X-RateLimit-Reset` minus the `Date` header. Never read from this machine's clock.
 *
 * @returns undefined when the headers do not say
 */
export function parseRetryDelayMs(headers: Headers): number | undefined {
  return requestedDelayMs(headers) ?? resetDelayMs(headers);
}

/** What `Retry-After` alone asks for, in milliseconds; undefined when it is missing or makes no sense. */
export function requestedDelayMs(headers: Headers): number | undefined {
  const retryAfter = headers.get('retry-after');
  if (retryAfter === null) return undefined;
  // Several headers arrive joined by commas: the longest one is the safe one, when all of them are seconds.
  const longest = Math.max(...retryAfter.split(',').map((one) => seconds(one) ?? Number.NaN));
  return Number.isNaN(longest) ? untilMs(httpDateMs(retryAfter), headers) : toMs(longest);
}

/** How long to wait before asking again: known for every 429, where it is one window when nothing is said. */
function retryAfterMsOf(status: number, headers: Headers): number | undefined {
  return status === 429 ? (parseRetryDelayMs(headers) ?? WINDOW_MS) : requestedDelayMs(headers);
}

export function readRateLimitFeedback({
  status,
  headers,
}: Pick<Response, 'status' | 'headers'>): RateLimitFeedback {
  const retryAfterMs = status === 429 ? retryAfterMsOf(status, headers) : undefined;
  const { limit, remaining, resetMs } = parseRateLimit(headers);
  return { status, retryAfterMs, announcedLimit: limit, remaining, resetMs };
}

function integer(text: string | null): number | undefined {
  return /^\d+$/.test(text ?? '') ? Number(text) : undefined;
}

/** A number of the rate limit; the standard header wins. */
function announced(name: 'limit' | 'remaining', headers: Headers): number | undefined {
  return integer(headers.get(`ratelimit-${name}`)) ?? integer(headers.get(`x-ratelimit-${name}`));
}

function announcedLimit(headers: Headers): number | undefined {
  const limit = announced('limit', headers) ?? 0;
  return limit > 0 && Number.isSafeInteger(limit) ? limit : undefined;
}

export function parseRateLimit(headers: Headers): RateLimitInfo {
  return {
    limit: announcedLimit(headers),
    remaining: announced('remaining', headers),
    resetMs: resetDelayMs(headers),
  };
}
