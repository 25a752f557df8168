import { maskText, toPrintableLine } from '../common/secrets.ts';
import { WINDOW_MS } from '../limiter/limiter.ts';

/** The rate limit that the headers of one response announce (docs/service.md 6.2). */
export interface RateLimitInfo {
  /** Requests allowed in a window of one second, if announced as a positive integer. */
  readonly limit: number | undefined;
  /** Requests left in the window. */
  readonly remaining: number | undefined;
  /** Time until the limit resets, in milliseconds. */
  readonly resetMs: number | undefined;
}

/** The part of a response that comes before its body. */
export interface ResponseHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  /** The key of this attempt. A server can echo it, but no error may show it. */
  readonly key: string;
  /** The id of the request, with the key masked, because logs and errors show the id. */
  readonly requestId: string | undefined;
  readonly rateLimit: RateLimitInfo;
  /** How long the service asks to wait; one window after a 429 that names no time. */
  readonly retryAfterMs: number | undefined;
}

/** A response with its body. */
export interface RawResponse extends ResponseHead {
  readonly text: string;
  /** True if the body is longer than `maxResponseBytes`; `text` is its beginning. */
  readonly isCut: boolean;
}

const MAX_REQUEST_ID_LENGTH = 200;

export function readHead({ status, statusText, headers }: Response, key: string): ResponseHead {
  const requestId = headers.get('x-request-id');
  return {
    status,
    statusText,
    headers,
    key,
    requestId:
      requestId === null ? undefined : toPrintableLine(maskText(requestId, key), MAX_REQUEST_ID_LENGTH),
    rateLimit: readRateLimit(headers),
    retryAfterMs: readRetryAfterMs(status, headers),
  };
}

/** From this value on `X-RateLimit-Reset` is a Unix time (docs/service.md 6.2), because no delay lasts three years. */
const MIN_TIMESTAMP_SECONDS = 100_000_000;

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
export function readRetryAfterMs(status: number, headers: Headers): number | undefined {
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
