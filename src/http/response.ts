import { toPrintableLine } from '../common/foreign.ts';
import { kindOf } from '../common/messages.ts';
import { isJsonObject, type ValidationIssue } from '../common/parsing.ts';
import type { Secret } from '../common/secrets.ts';
import type { Config } from '../config/config.ts';
import { BULK_STATUSES } from '../schemas/bulk.ts';
import { NO_RESULTS_YET } from '../schemas/unwrap.ts';
import type { CallResult, WithResponse } from './api-promise.ts';
import type { CallErrors } from './call-errors.ts';
import type { PreparedRequest, ResponseRules } from './prepare.ts';
import { copyHeaders, type RawResponse } from './response-head.ts';

const MAX_TYPE_LENGTH = 200;
/** The beginning of an object or a list. */
const JSON_BEGINNING = /^\s*[{[]/;
const JSON_TYPE = /^(application|text)\/([\w.+-]+\+)?json\b/i;

/** @throws ApiError for a response that is not a success; ResponseValidationError for a success that cannot be read */
export function readCallResult<T>(
  config: Config,
  request: PreparedRequest<T>,
  response: RawResponse,
  errors: CallErrors,
  attempts: number,
): CallResult<T> {
  const payload = readPayload(request, response, errors, config.maxResponseBytes);
  const checked = request.read(payload, config.invalidResponse);
  const mismatched = checked.mismatched.map((issue) => maskIssue(issue, response.key));
  if (!checked.isUsable) throw errors.createMismatchError(response, payload, mismatched, checked.total);
  const { data } = checked;
  return {
    data,
    mismatched,
    headers: response.headers,
    details: (): WithResponse<T> => ({
      data,
      response: rebuildResponse(response, config.baseUrl + request.target),
      requestId: response.headers.get('x-request-id') ?? undefined,
      rateLimit: response.rateLimit,
      attempts,
      mismatched,
    }),
    createNotReadyError: () => errors.createNotReadyError(response, parseLoosely(response.text)),
  };
}

function readPayload(
  { method, response: rules }: PreparedRequest<unknown>,
  response: RawResponse,
  errors: CallErrors,
  maxResponseBytes: number,
): unknown {
  const { status, text, isCut } = response;
  if (!isSuccess(response, rules)) throw errors.createApiError(response, parseLoosely(text));
  const isBodyless = method === 'HEAD' || status === 204 || status === 205;
  if (isBodyless && rules.isBodyOptional) return {};
  if (isCut && rules.isStatusEnough && JSON_BEGINNING.test(text)) return {};
  if (isCut) throw errors.createTooLongError(response, maxResponseBytes);
  const parsed = parseBody(response);
  if ('problem' in parsed) {
    const isEmptyOrJson = text.trim() === '' || parseLoosely(text) !== text;
    if (rules.isStatusEnough && isEmptyOrJson) return {};
    throw errors.createBodyError(response, text, parsed.problem);
  }
  // A bulk result contains errors (docs/service.md 7.2), and an error can echo the key. Everything else in it is data.
  const unwrapped = rules.unwrap(rules.resultStatuses ? maskErrors(parsed.json, response) : parsed.json);
  if ('missing' in unwrapped) {
    const { missing } = unwrapped;
    const problem = isJsonObject(parsed.json)
      ? `an object without ${missing}`
      : `${kindOf(parsed.json)} instead of an object with ${missing}`;
    throw errors.createBodyError(response, parsed.json, problem);
  }
  const { payload } = unwrapped;
  if (payload === NO_RESULTS_YET) throw errors.createNotReadyError(response, parsed.json);
  if (rules.isRefusal?.(payload)) throw errors.createApiError(response, payload);
  return payload;
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
  const type = headers.get('content-type') ?? null;
  const isAttachment = /^attachment/i.test(headers.get('content-disposition') ?? '');
  if (type !== null && !JSON_TYPE.test(type) && !isAttachment) {
    const shortType = toPrintableLine(key.mask(type), MAX_TYPE_LENGTH).replace(/;.*/, '');
    return { problem: `${shortType} instead of JSON; check the base URL` };
  }
  try {
    return { json: JSON.parse(text) };
  } catch {
    return { problem: 'a body that is not valid JSON' };
  }
}

/** Returns the parsed JSON, or the text itself if it is not JSON. */
function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Masks the API key: a response could contain it as the name of a field, and an issue names the field. */
function maskIssue(issue: ValidationIssue, key: Secret): ValidationIssue {
  const path = issue.path.map((name) => (typeof name === 'string' ? key.mask(name) : name));
  return { ...issue, path, message: key.mask(issue.message) };
}

/** Masks the API key in the errors of a bulk result and of its items. */
function maskErrors(body: unknown, { text, key }: RawResponse): unknown {
  if (!key.isInJson(body, text)) return body;
  const maskField = ([name, value]: [string, unknown]) =>
    [name, name === 'error' || name === 'errors' ? key.maskValue(value) : value] as const;
  const maskFields = (value: unknown) =>
    isJsonObject(value) ? Object.fromEntries(Object.entries(value).map(maskField)) : value;
  const masked = maskFields(body);
  if (!isJsonObject(masked) || !Array.isArray(masked['data'])) return masked;
  return { ...masked, data: masked['data'].map(maskFields) };
}

function rebuildResponse({ status, statusText, headers, text }: RawResponse, url: string): Response {
  const isBodyless = text === '' || status === 204 || status === 205;
  // A reason phrase may contain bytes that `Response` refuses.
  const phrase = /^[\t\x20-\x7e]*$/.test(statusText) ? statusText : '';
  const init = { status, statusText: phrase, headers: copyHeaders(headers) };
  return Object.defineProperty(new Response(isBodyless ? null : text, init), 'url', { value: url });
}
