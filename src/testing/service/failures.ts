import { checkCount, checkKnownOptions, checkOneOf } from '../../common/option-checks.ts';
import { ENDPOINT_NAMES, type EndpointName } from '../../endpoints.ts';
import { ConfigurationError } from '../../errors.ts';
import type { KnownErrorCode } from '../../schemas/api-error.ts';
import type { OpenEnum } from '../../schemas/record.ts';
import { limitHeaders } from './rate-limits.ts';
import { errorReply, type Reply } from './replies.ts';

/** Ways to fail that no status can tell. */
export const FAILURE_KINDS = ['reset', 'timeout', 'stall', 'badJson', 'html', 'commitThenDrop'] as const;
/**
 * Ways to fail that no status can tell.
 * - `reset`: the connection breaks, and nothing was carried out
 * - `timeout`: no answer ever comes, and nothing was carried out
 * - `stall`: the request is carried out, headers and half a body come, then nothing
 * - `badJson`: 200 with JSON that is cut off
 * - `html`: a gateway's error page, 502 unless `status` says otherwise
 * - `commitThenDrop`: the request is carried out, then the connection breaks
 */
export type FailureKind = (typeof FAILURE_KINDS)[number];

/** What goes wrong, and how often. */
export type Failure =
  | {
      /** HTTP status of the answer. */
      readonly status: number;
      /** Error code; default one that fits the status. */
      readonly code?: OpenEnum<KnownErrorCode>;
      /** Message of the error. Default: one that says it was injected. */
      readonly message?: string;
      /** `Retry-After`: seconds, or any text to send as it is. */
      readonly retryAfter?: number | string;
      /** More headers of the answer. Default: none. */
      readonly headers?: Readonly<Record<string, string>>;
      /** Body to send instead of the service's error body. */
      readonly body?: string;
      /** How many requests fail. Default 1; `Infinity` for all. */
      readonly times?: number;
    }
  | {
      /** How it goes wrong. */
      readonly kind: FailureKind;
      /** HTTP status of the kinds that answer. Default: theirs. */
      readonly status?: number;
      /** How many requests fail. Default 1; `Infinity` for all. */
      readonly times?: number;
    };

/** A planned failure. */
export interface PlannedFailure {
  /** How many requests it will still fail. */
  readonly remaining: number;
  /** Ends it now. */
  cancel(): void;
}

class Plan implements PlannedFailure {
  readonly endpoint: EndpointName | '*';
  readonly failure: Failure;
  remaining: number;

  constructor(endpoint: EndpointName | '*', failure: Failure) {
    this.endpoint = endpoint;
    this.failure = failure;
    this.remaining = failure.times ?? 1;
  }

  cancel(): void {
    this.remaining = 0;
  }
}

const STATUS_FIELDS = ['status', 'code', 'message', 'retryAfter', 'headers', 'body', 'times'];
const KIND_FIELDS = ['kind', 'status', 'times'];

/** The statuses a final answer can have. */
function checkStatus(status: unknown): void {
  if (checkCount('status', status, 200) <= 599) return;
  throw new ConfigurationError(`Expected \`status\` to be at most 599, got ${String(status)}`);
}

function check(endpoint: string, failure: Failure): void {
  checkOneOf('endpoint', endpoint, [...ENDPOINT_NAMES, '*']);
  const hasKind = typeof failure === 'object' && failure !== null && 'kind' in failure;
  checkKnownOptions('failure', failure, hasKind ? KIND_FIELDS : STATUS_FIELDS);
  if ('kind' in failure) checkOneOf('kind', failure.kind, FAILURE_KINDS);
  const { status, times = 1 } = failure;
  if (status !== undefined || !('kind' in failure)) checkStatus(status);
  checkCount('times', times, 1, true);
}

/** The failures that wait for their requests; the one planned first is used first. */
export class Failures {
  #plans: Plan[] = [];

  plan(endpoint: EndpointName | '*', failure: Failure): PlannedFailure {
    check(endpoint, failure);
    const plan = new Plan(endpoint, failure);
    this.#plans.push(plan);
    return plan;
  }

  /** The failure of one request, if it is to fail. */
  take(endpoint: EndpointName | undefined): Failure | undefined {
    this.#plans = this.#plans.filter((plan) => plan.remaining > 0);
    const plan = this.#plans.find(({ endpoint: planned }) => planned === '*' || planned === endpoint);
    if (plan === undefined) return undefined;
    plan.remaining -= 1;
    return plan.failure;
  }
}

const CODES: Readonly<Record<number, KnownErrorCode>> = {
  401: 'auth_invalid_api_key',
  403: 'quota_limit_reached',
  404: 'tracker_not_found',
  409: 'request_conflict',
};

function codeOf(status: number): KnownErrorCode {
  return CODES[status] ?? (status < 500 ? 'validation_error' : 'processing_error');
}

/**
 * The answer of a failure that has a status. A 429 is plain text unless it has a code, as in the service, and announces
 * the `limit` that all other answers announce.
 */
export function failureReply(
  failure: Extract<Failure, { status: number }>,
  { isBulk, limit, nowMs }: { isBulk: boolean; limit: number | undefined; nowMs: number },
): Reply {
  const { status, code, message = `Injected failure ${status}.`, retryAfter, headers = {}, body } = failure;
  const waitMs = Number(retryAfter) * 1000;
  const limitSet =
    status === 429 && limit !== undefined
      ? limitHeaders(limit, 0, Number.isFinite(waitMs) ? waitMs : 1000, nowMs)
      : {};
  const extra = {
    ...limitSet,
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    ...headers,
  };
  if (body !== undefined) return { status, headers: extra, body };
  if (status === 429 && code === undefined) return tooManyRequests(extra);
  const reply = errorReply(isBulk, status, [{ code: code ?? codeOf(status), message }]);
  return { ...reply, headers: { ...reply.headers, ...extra } };
}

/** The service's refusal of a request too many is plain text (public contract). */
export function tooManyRequests(headers: Reply['headers']): Reply {
  return {
    status: 429,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
    body: 'Too many requests in this second.',
  };
}

/** A page as a gateway in front of the service sends it. */
export function htmlReply(status = 502): Reply {
  return {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body: `<!DOCTYPE html><html><head><title>${status}</title></head><body><h1>Bad gateway</h1></body></html>`,
  };
}

/** A success whose JSON ends in the middle. */
export function cutOffReply(status = 200): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: '{"data":{"tracker":{"trackerId":"',
  };
}
