/**
 * What one answer's headers say about the allowance.
 *
 * @specification service.md 8
 */
export interface RateLimitInfo {
  /** Requests allowed in a window of one second, when announced as a positive integer. */
  readonly limit: number | undefined;
  /** Requests left in the window. */
  readonly remaining: number | undefined;
  /** Time until the limit resets, in milliseconds. */
  readonly resetMs: number | undefined;
}

/** Above this a reset header is a Unix timestamp, below it a delay: no delay of ours lasts 3 years. */
const SMALLEST_TIMESTAMP_SECONDS = 100_000_000;
const SMALLEST_TIMESTAMP_MS = 100_000_000_000;

function seconds(text: string | null | undefined): number | undefined {
  const trimmed = text?.trim();
  return trimmed !== undefined && /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

function toMs(value: number): number {
  return Math.min(Math.ceil(value * 1000), Number.MAX_SAFE_INTEGER);
}

/** Reads an HTTP-date in any of its three forms (RFC 9110, 5.6.7). */
function httpDateMs(text: string | null): number | undefined {
  // A lone number would parse as a year.
  if (text === null || !/[A-Za-z]{3}/.test(text)) return undefined;
  // The oldest form ends with the year; it means GMT as well, and would parse as this machine's local time.
  const parsed = Date.parse(/\s\d{4}$/.test(text) ? `${text} GMT` : text);
  return Number.isNaN(parsed) ? undefined : parsed;
}

/** The service's own clock when it answered: the only clock its timestamps may be compared with. */
function serviceNowMs(headers: Headers): number | undefined {
  return httpDateMs(headers.get('date'));
}

/** Several `Retry-After` headers arrive joined by commas: the longest one is the safe one. */
function retryAfterSecondsMs(value: string): number | undefined {
  const all = value.split(',').map(seconds);
  if (all.some((one) => one === undefined)) return undefined;
  return toMs(Math.max(...all.map((one) => one ?? 0)));
}

function retryAfterDateMs(value: string, headers: Headers): number | undefined {
  const now = serviceNowMs(headers);
  const at = httpDateMs(value);
  return now === undefined || at === undefined ? undefined : Math.max(0, at - now);
}

function timestampDelayMs(headers: Headers): number | undefined {
  const value = seconds(headers.get('x-ratelimit-reset'));
  if (value === undefined) return undefined;
  if (value < SMALLEST_TIMESTAMP_SECONDS) return toMs(value);
  const now = serviceNowMs(headers);
  if (now === undefined) return undefined;
  const at = value >= SMALLEST_TIMESTAMP_MS ? value : value * 1000;
  return Math.max(0, at - now);
}

function resetDelayMs(headers: Headers): number | undefined {
  const reset = seconds(headers.get('ratelimit-reset'));
  return reset === undefined ? timestampDelayMs(headers) : toMs(reset);
}

/**
 * How long the service asks to wait, in milliseconds: `Retry-After` in seconds, `Retry-After` as a date minus the
 * `Date` header, `RateLimit-Reset`, `X-RateLimit-Reset` minus the `Date` header. Never read from this machine's clock.
 *
 * @returns undefined when the headers do not tell
 */
export function parseRetryDelayMs(headers: Headers): number | undefined {
  return requestedDelayMs(headers) ?? resetDelayMs(headers);
}

/** What `Retry-After` alone asks for, in milliseconds; undefined when it is missing or makes no sense. */
export function requestedDelayMs(headers: Headers): number | undefined {
  const retryAfter = headers.get('retry-after');
  if (retryAfter === null) return undefined;
  return retryAfterSecondsMs(retryAfter) ?? retryAfterDateMs(retryAfter, headers);
}

function integer(text: string | null): number | undefined {
  return text !== null && /^\s*\d+\s*$/.test(text) ? Number(text) : undefined;
}

/** The requests a window allows, when announced as a positive integer; the standard header wins. */
export function announcedLimit(headers: Headers): number | undefined {
  const limit = integer(headers.get('ratelimit-limit')) ?? integer(headers.get('x-ratelimit-limit'));
  return limit !== undefined && limit > 0 && Number.isSafeInteger(limit) ? limit : undefined;
}

/** Reads both header sets; the standard one wins. */
export function parseRateLimit(headers: Headers): RateLimitInfo {
  return {
    limit: announcedLimit(headers),
    remaining: integer(headers.get('ratelimit-remaining')) ?? integer(headers.get('x-ratelimit-remaining')),
    resetMs: resetDelayMs(headers),
  };
}
