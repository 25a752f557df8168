import type { RateLimitFeedback } from '../limiter/limiter.ts';
import { WINDOW_MS } from '../limiter/limiter.ts';
import type { RateLimitInfo } from './api-promise.ts';

/** The part of a response that these functions read. */
type ResponseHead = Pick<Response, 'status' | 'headers'>;

/** From this value on `X-RateLimit-Reset` is a Unix timestamp, because no delay lasts three years. */
const MIN_TIMESTAMP_SECONDS = 100_000_000;

/** Reads the headers and the status that the limiter learns from. */
export function readRateLimitFeedback(response: ResponseHead): RateLimitFeedback {
  const { status, headers } = response;
  const { limit, remaining, resetMs } = readRateLimit(headers);
  const retryAfterMs = status === 429 ? readRetryAfterMs(response) : undefined;
  return { status, retryAfterMs, announcedLimit: limit, remaining, resetMs };
}

/** Reads the announced allowance. The standard header of each pair wins (docs/service.md 6). */
export function readRateLimit(headers: Headers): RateLimitInfo {
  const limit = readInteger(headers, 'limit');
  return {
    limit: limit !== undefined && limit > 0 && Number.isSafeInteger(limit) ? limit : undefined,
    remaining: readInteger(headers, 'remaining'),
    resetMs: readResetMs(headers),
  };
}

/**
 * Reads how long the service asks to wait, in milliseconds. A 429 always asks for something: `Retry-After` as seconds or date,
 * `RateLimit-Reset`, `X-RateLimit-Reset`, else one window. Other responses ask with `Retry-After` only.
 *
 * Dates are compared with the `Date` header, never with this machine's clock, which may be wrong.
 */
export function readRetryAfterMs({ status, headers }: ResponseHead): number | undefined {
  const requestedMs = readRetryAfterHeader(headers);
  return status === 429 ? (requestedMs ?? readResetMs(headers) ?? WINDOW_MS) : requestedMs;
}

function readRetryAfterHeader(headers: Headers): number | undefined {
  const delay = parseSeconds(headers.get('retry-after'));
  return delay === undefined ? readTimeUntil(parseDate(headers.get('retry-after')), headers) : delay * 1000;
}

function readResetMs(headers: Headers): number | undefined {
  const delay = parseSeconds(headers.get('ratelimit-reset'));
  if (delay !== undefined) return delay * 1000;
  const reset = parseSeconds(headers.get('x-ratelimit-reset'));
  if (reset === undefined) return undefined;
  return reset < MIN_TIMESTAMP_SECONDS ? reset * 1000 : readTimeUntil(reset * 1000, headers);
}

/** Time from the `Date` header to a moment; undefined without either. */
function readTimeUntil(momentMs: number | undefined, headers: Headers): number | undefined {
  const sentAtMs = parseDate(headers.get('date'));
  return sentAtMs === undefined || momentMs === undefined ? undefined : Math.max(0, momentMs - sentAtMs);
}

function readInteger(headers: Headers, name: 'limit' | 'remaining'): number | undefined {
  return parseInteger(headers.get(`ratelimit-${name}`)) ?? parseInteger(headers.get(`x-ratelimit-${name}`));
}

function parseInteger(text: string | null): number | undefined {
  return /^\d+$/.test(text ?? '') ? Number(text) : undefined;
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
