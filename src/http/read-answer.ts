import { z } from 'zod';
import { type ApiError, type ApiErrorDetails, ResultsNotReadyError } from '../api-errors.ts';
import { redactHeaders, redactText, redactValue } from '../common/secrets.ts';
import { errorMap, formatPath, hotSchema, kindOf, toValidationIssues } from '../common/validation.ts';
import type { Endpoint } from '../endpoints.ts';
import { ConfigurationError, ResponseValidationError } from '../errors.ts';
import { WINDOW_MS } from '../limiter/token-pool.ts';
import { type ApiErrorItem, isKnownErrorCode } from '../schemas/api-error.ts';
import { isJsonObject, NO_RESULTS_YET } from '../schemas/envelope.ts';
import { apiErrorOf, excerpt, readErrorItems } from './api-error-of.ts';
import { parseRetryDelayMs, requestedDelayMs } from './response-headers.ts';
import type { RawAnswer } from './transport.ts';

/** The facts of a call that an answer's errors need. */
export interface AnsweredCall {
  readonly method: string;
  readonly path: string;
  readonly response: Endpoint['response'];
  readonly attempts: number;
  /** The key, which no error may show: a server can echo it. */
  readonly secret: string;
}

const JSON_TYPE = /^(application|text)\/([\w.+-]+\+)?json\b/i;
/** A page of records that all lack a field would make an error of megabytes, in every log. */
const MOST_ISSUES_KEPT = 20;
const BULK_STATUSES = ['success', 'partial', 'error'];

type Parsed = { readonly json: unknown } | { readonly problem: string };

function parseJson(answer: RawAnswer): Parsed {
  if (answer.text.trim() === '') return { problem: 'an empty body' };
  const type = answer.headers.get('content-type');
  const isAttachment = /^attachment/i.test(answer.headers.get('content-disposition') ?? '');
  if (type !== null && !JSON_TYPE.test(type) && !isAttachment) {
    return { problem: `content of type ${type.split(';')[0]?.slice(0, 100)}` };
  }
  try {
    return { json: JSON.parse(answer.text) };
  } catch {
    return { problem: 'a body that is not valid JSON' };
  }
}

function looseJson(answer: RawAnswer): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    return answer.text;
  }
}

/** The request id as logs and errors may show it. */
export function requestIdOf(answer: RawAnswer, secret: string): string | undefined {
  const requestId = answer.headers.get('x-request-id');
  return requestId === null ? undefined : redactText(requestId, secret);
}

/** The errors as the service sent them, without the key; a known code stays one, whatever the key is. */
function errorItemsOf(body: unknown, secret: string): ApiErrorItem[] {
  return readErrorItems(body).map(({ code, message, ...rest }) => ({
    // Sound: what `redactValue` makes of a JSON object is a JSON object.
    ...(redactValue(rest, secret) as object),
    code: isKnownErrorCode(code) ? code : redactText(code, secret),
    message: message === undefined || message === null ? undefined : redactText(message, secret),
  }));
}

function invalid(call: AnsweredCall, answer: RawAnswer, body: unknown, got: string): ResponseValidationError {
  const cause = redactText(got, call.secret);
  const message = `Expected ${call.method} ${call.path} to answer with its documented JSON, got ${cause}`;
  return new ResponseValidationError(message, {
    issues: [{ path: [], code: 'invalid_body', message }],
    body: redactValue(body, call.secret),
    status: answer.status,
    requestId: requestIdOf(answer, call.secret),
  });
}

/** How long to wait before asking again: always known for a 429, else only what the service asked for. */
function retryAfterMsOf(answer: RawAnswer): number | undefined {
  return answer.status === 429 ? rateLimitDelayMs(answer.headers) : requestedDelayMs(answer.headers);
}

/** The pause after a 429: what the headers say, else one window. */
export function rateLimitDelayMs(headers: Headers): number {
  return parseRetryDelayMs(headers) ?? WINDOW_MS;
}

/** What an answer says, as an error may show it: without the key. */
function detailsOf(call: AnsweredCall, answer: RawAnswer, body: unknown): ApiErrorDetails {
  return {
    status: answer.status,
    errors: errorItemsOf(body, call.secret),
    requestId: requestIdOf(answer, call.secret),
    method: call.method,
    path: call.path,
    headers: redactHeaders(answer.headers, call.secret),
    body: redactValue(body, call.secret),
    attempts: call.attempts,
    retryAfterMs: retryAfterMsOf(answer),
  };
}

function failure(call: AnsweredCall, answer: RawAnswer): ApiError {
  const details = detailsOf(call, answer, looseJson(answer));
  if (answer.status < 300 || answer.status > 399) return apiErrorOf(details);
  const message = `${call.method} ${call.path} was answered with a redirect (${answer.status}), which is never followed: the key would travel with it`;
  return apiErrorOf(details, message);
}

function isResult(call: AnsweredCall, answer: RawAnswer): boolean {
  if (answer.status >= 200 && answer.status < 300) return true;
  if (!call.response.resultStatuses?.includes(answer.status)) return false;
  const body = looseJson(answer);
  return isJsonObject(body) && BULK_STATUSES.some((status) => status === body['status']);
}

function notReady(call: AnsweredCall, answer: RawAnswer, body: unknown): ResultsNotReadyError {
  const message = `${call.method} ${call.path} has no results yet; ask again later`;
  const details = detailsOf(call, answer, body);
  // A success complains of nothing, whatever else its body holds.
  return new ResultsNotReadyError(message, { ...details, errors: [], retryAfterMs: undefined });
}

/**
 * Takes the payload out of an answer; it is not validated yet.
 *
 * @throws ApiError for every answer that is not a result; ResponseValidationError for a success without the documented
 * JSON; ResultsNotReadyError when there is nothing to show yet
 */
export function readPayload(call: AnsweredCall, answer: RawAnswer): unknown {
  if (!isResult(call, answer)) throw failure(call, answer);
  const hasNoBody = call.method === 'HEAD' || answer.status === 204 || answer.status === 205;
  if (hasNoBody && call.response.mayBeEmpty) return {};
  const parsed = parseJson(answer);
  if ('problem' in parsed) throw invalid(call, answer, answer.text, parsed.problem);
  const unwrapped = call.response.unwrap(parsed.json);
  if ('mismatch' in unwrapped) {
    throw invalid(call, answer, parsed.json, `${kindOf(parsed.json)} where ${unwrapped.mismatch} was due`);
  }
  if (unwrapped.payload === NO_RESULTS_YET) throw notReady(call, answer, parsed.json);
  return unwrapped.payload;
}

function checkPayload<T>(schema: z.ZodType<T>, payload: unknown): z.ZodSafeParseResult<T> {
  try {
    return hotSchema(schema).safeParse(payload, { error: errorMap('data') });
  } catch (cause) {
    if (!(cause instanceof z.core.$ZodAsyncError)) throw cause;
    throw new ConfigurationError('Expected `schema` to check without promises, got an asynchronous one', {
      cause,
    });
  }
}

/** A payload that matches its schema, or the error that says where it does not. */
export function validatePayload<T>(
  call: AnsweredCall,
  answer: RawAnswer,
  payload: unknown,
  schema: z.ZodType<T>,
): { readonly data: T } | { readonly error: ResponseValidationError } {
  const result = checkPayload(schema, payload);
  if (result.success) return { data: result.data };
  const issues = toValidationIssues(result.error, MOST_ISSUES_KEPT).map((issue) => ({
    ...issue,
    // The name of a field can come from the answer.
    path: issue.path.map((key) => (typeof key === 'string' ? redactText(key, call.secret) : key)),
    message: redactText(issue.message, call.secret),
  }));
  const [first] = issues;
  const where = first === undefined ? 'an unknown field' : formatPath(first.path, 'data');
  const others = result.error.issues.length - 1;
  const more = others > 0 ? ` (and ${others} more)` : '';
  const message = `${call.method} ${call.path} was answered with an unexpected \`${where}\`: ${excerpt(first?.message ?? '')}${more}`;
  const error = new ResponseValidationError(message, {
    issues,
    body: redactValue(payload, call.secret),
    status: answer.status,
    requestId: requestIdOf(answer, call.secret),
  });
  return { error };
}
