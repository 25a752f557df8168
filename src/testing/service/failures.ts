import * as z from 'zod';
import { checkOneOf, checkOptions } from '../../common/check-options.ts';
import { expected, quoteValue } from '../../common/messages.ts';
import { countOption, delayOption, headersOption, type OptionShape } from '../../common/option-schemas.ts';
import { ENDPOINT_NAMES, type EndpointName } from '../../endpoints.ts';
import type { KnownErrorCode } from '../../schemas/api-error.ts';
import type { OpenEnum } from '../../schemas/record.ts';
import {
  buildLimitHeaders,
  type FakeResponse,
  type Reply,
  toErrorResponse,
  toJsonResponse,
  toSeconds,
  toTooManyRequests,
  WINDOW_MS,
} from './http.ts';

const FAILURE_KINDS = ['reset', 'timeout', 'stall', 'badJson', 'html', 'commitThenDrop'] as const;
/**
 * Ways to fail other than with a status.
 * - `reset`: the connection breaks, and nothing was carried out
 * - `timeout`: no response ever comes, and nothing was carried out
 * - `stall`: the request is carried out, headers and half a body come, then nothing
 * - `badJson`: JSON that is cut off, with status 200 unless `status` is set; nothing was carried out
 * - `html`: a gateway's error page, with status 502 unless `status` is set; nothing was carried out
 * - `commitThenDrop`: the request is carried out, then the connection breaks
 */
export type FailureKind = (typeof FAILURE_KINDS)[number];

interface StatusFailure {
  /** HTTP status of the response. */
  readonly status: number;
  /** Error code. Default: a code that fits the status; none for 402 and 429. */
  readonly code?: OpenEnum<KnownErrorCode> | undefined;
  /** Message of the error. Default: a message that the failure was injected. */
  readonly message?: string | undefined;
  /** Milliseconds until the caller may retry; sent as `Retry-After` in seconds, rounded up. Default: 1000 for 429, else none. */
  readonly retryAfterMs?: number | undefined;
  /** More headers of the response, e.g. `{ 'retry-after': '<a date>' }`; they replace headers of the fake. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Body to send instead of the service's error body. */
  readonly body?: string | undefined;
  /** How many requests fail. Default 1; `Infinity` for all. */
  readonly times?: number | undefined;
}

interface KindFailure {
  /** How the request fails. */
  readonly kind: FailureKind;
  /** HTTP status for the kinds `html` and `badJson`. Default: 502 and 200. */
  readonly status?: number | undefined;
  /** How many requests fail. Default 1; `Infinity` for all. */
  readonly times?: number | undefined;
}

/** A failure to inject, and how often it happens. */
export type Failure = StatusFailure | KindFailure;

export interface PlannedFailure {
  readonly remaining: number;
  cancel(): void;
}

const statusOption = z.int(expected('to be a whole number from 200 to 599', quoteValue)).min(200).max(599);
const timesOption = countOption(1, true).default(1);
const textOption = z.string().optional();

const statusFailure = z.strictObject({
  status: statusOption,
  code: textOption,
  message: textOption,
  retryAfterMs: delayOption.optional(),
  headers: headersOption.optional(),
  body: textOption,
  times: timesOption,
} satisfies OptionShape<StatusFailure>);

const kindFailure = z.strictObject({
  kind: z.enum(FAILURE_KINDS),
  status: statusOption.optional(),
  times: timesOption,
} satisfies OptionShape<KindFailure>);

type ResolvedFailure = z.output<typeof statusFailure> | z.output<typeof kindFailure>;

export class Failures {
  #plans: { readonly endpoint: string; readonly failure: ResolvedFailure; remaining: number }[] = [];

  plan(endpoint: EndpointName | '*', failure: Failure): PlannedFailure {
    checkOneOf('endpoint', endpoint, [...ENDPOINT_NAMES, '*']);
    const schema = 'kind' in Object(failure) ? kindFailure : statusFailure;
    const resolved = checkOptions<typeof kindFailure | typeof statusFailure>(schema, failure, 'failure');
    const plan = {
      endpoint,
      failure: resolved,
      remaining: resolved.times,
      cancel: () => {
        plan.remaining = 0;
      },
    };
    this.#plans.push(plan);
    return plan;
  }

  take(endpoint: EndpointName): ResolvedFailure | undefined {
    this.#plans = this.#plans.filter(({ remaining }) => remaining > 0);
    const plan = this.#plans.find((candidate) => ['*', endpoint].includes(candidate.endpoint));
    if (plan !== undefined) plan.remaining -= 1;
    return plan?.failure;
  }
}

const DEFAULT_CODES: Readonly<Record<number, KnownErrorCode>> = {
  401: 'auth_invalid_api_key',
  403: 'quota_limit_reached',
  404: 'tracker_not_found',
  409: 'request_conflict',
};

interface FailedRequest {
  readonly endpoint: EndpointName;
  /** Requests per second; undefined where the fake counts nothing. */
  readonly limit: number | undefined;
  readonly nowMs: number;
}

/**
 * A 429 has the limit headers (docs/service.md 6.2) and `Retry-After` (docs/service.md 6.3) of a full window. It is plain
 * text (docs/service.md 7.4) unless it has a code.
 */
function buildFailure(
  failure: z.output<typeof statusFailure>,
  { endpoint, limit, nowMs }: FailedRequest,
): FakeResponse {
  const { status, message = `Injected failure ${status}.`, retryAfterMs = WINDOW_MS, body } = failure;
  const hasRetryAfter = status === 429 || failure.retryAfterMs !== undefined;
  const headers = {
    ...(hasRetryAfter && { 'retry-after': toSeconds(retryAfterMs) }),
    ...(status === 429 && limit !== undefined && buildLimitHeaders(limit, 0, retryAfterMs, nowMs)),
    ...failure.headers,
  };
  if (body !== undefined) return { status, headers, body };
  if (status === 429 && failure.code === undefined) return toTooManyRequests(headers);
  // The service documents no code for a 402.
  if (status === 402 && failure.code === undefined)
    return toJsonResponse(
      status,
      { errors: failure.message === undefined ? [] : [{ message }], data: null },
      headers,
    );
  const code =
    failure.code ?? DEFAULT_CODES[status] ?? (status < 500 ? 'validation_error' : 'processing_error');
  return toErrorResponse(endpoint, { status, errors: [{ code, message }] }, headers);
}

function respond(status: number, contentType: string, body: string): Reply {
  const headers = { 'content-type': `${contentType}; charset=utf-8` };
  return { kind: 'response', response: { status, headers, body } };
}

/** Makes a request fail; `run` carries the request out, for failures that happen after that. */
export function fail(failure: ResolvedFailure, request: FailedRequest, run: () => FakeResponse): Reply {
  if (!('kind' in failure)) return { kind: 'response', response: buildFailure(failure, request) };
  const { kind, status = kind === 'html' ? 502 : 200 } = failure;
  if (kind === 'timeout') return { kind: 'silence' };
  if (kind === 'badJson') return respond(status, 'application/json', '{"data":{"tracker":{"trackerId":"');
  if (kind === 'html')
    return respond(status, 'text/html', `<!DOCTYPE html><html><body>${status}</body></html>`);
  if (kind === 'stall') return { kind: 'stall', response: run() };
  if (kind === 'commitThenDrop') run();
  return { kind: 'reset' };
}
