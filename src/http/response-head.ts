import { toPrintableLine } from '../common/foreign.ts';
import type { Secret } from '../common/secrets.ts';
import { type RateLimitInfo, WINDOW_MS } from '../limiter/limiter.ts';
import type { FetchResponse } from '../options.ts';

/** The part of a response that comes before its body. */
export interface ResponseHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: FetchResponse['headers'];
  /** The key of this attempt. A server can echo it, but no error may show it. */
  readonly key: Secret;
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

/** The headers that the client reads. */
export const HEADER_NAMES = [
  'content-disposition',
  'content-type',
  'date',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
];

const MAX_REQUEST_ID_LENGTH = 200;

export function readHead({ status, statusText, headers }: FetchResponse, key: Secret): ResponseHead {
  // The `get` of a stub may return undefined.
  const requestId = headers.get('x-request-id') ?? undefined;
  return {
    status,
    statusText,
    headers,
    key,
    requestId: requestId && toPrintableLine(key.mask(requestId), MAX_REQUEST_ID_LENGTH),
    rateLimit: readRateLimit(headers),
    retryAfterMs: readRetryAfterMs(status, headers),
  };
}

/** Copies headers, with each value as `toValue` returns it. */
export function copyHeaders(
  headers: Iterable<[string, string]>,
  toValue = (value: string) => value,
): Headers {
  const copy = new Headers();
  // The headers of a stub may lack an iterator.
  if (!(Symbol.iterator in headers)) return copy;
  for (const [name, value] of headers) {
    try {
      // `append` instead of `set`, because a response can have several headers with the name `set-cookie`.
      copy.append(name, toValue(value));
    } catch {
      // `fetch` accepts names such as `bad name` from a server, but `Headers` refuses them, so they are left out.
    }
  }
  return copy;
}

/** From this value on `X-RateLimit-Reset` is a Unix time (docs/service.md 6.2), because no delay lasts three years. */
const MIN_TIMESTAMP_SECONDS = 100_000_000;

/** Reads the announced rate limit. `RateLimit-*` overrides `X-RateLimit-*` (docs/service.md 6.2). */
export function readRateLimit(headers: FetchResponse['headers']): RateLimitInfo {
  const limit = readInteger(headers.get('ratelimit-limit')) ?? readInteger(headers.get('x-ratelimit-limit'));
  return {
    limit: limit !== undefined && limit > 0 && Number.isSafeInteger(limit) ? limit : undefined,
    remaining:
      readInteger(headers.get('ratelimit-remaining')) ?? readInteger(headers.get('x-ratelimit-remaining')),
    resetMs: readResetMs(headers),
  };
}

/** Reads how many milliseconds the service asks to wait (docs/service.md 6.5). Without a time, a 429 means one window. */
export function readRetryAfterMs(status: number, headers: FetchResponse['headers']): number | undefined {
  const items = readItems(headers, 'retry-after');
  const requestedMs = longest([
    ...items.map((item) => toMs(parseSeconds(item))),
    ...items.map((item) => readTimeUntil(parseDate(item), headers)),
  ]);
  return status === 429 ? (requestedMs ?? readResetMs(headers) ?? WINDOW_MS) : requestedMs;
}

function readResetMs(headers: FetchResponse['headers']): number | undefined {
  const delays = readItems(headers, 'ratelimit-reset').map((item) => toMs(parseSeconds(item)));
  const resets = readItems(headers, 'x-ratelimit-reset').map((item) => {
    const reset = parseSeconds(item);
    const isDelay = reset === undefined || reset < MIN_TIMESTAMP_SECONDS;
    return isDelay ? toMs(reset) : readTimeUntil(reset * 1000, headers);
  });
  return longest(delays) ?? longest(resets);
}

/** Dates are compared with the `Date` header, never with this machine's clock, which may be wrong. */
function readTimeUntil(momentMs: number | undefined, headers: FetchResponse['headers']): number | undefined {
  const sentAtMs = readSentAtMs(headers);
  return momentMs === undefined || sentAtMs === undefined ? undefined : Math.max(0, momentMs - sentAtMs);
}

/** Reads when the service sent a response, in milliseconds since the epoch: the earliest date of its `Date` header. */
export function readSentAtMs(headers: Pick<FetchResponse['headers'], 'get'>): number | undefined {
  const dates = readItems(headers, 'date')
    .map(parseDate)
    .filter((date) => date !== undefined);
  return dates.length === 0 ? undefined : Math.min(...dates);
}

/** Reads the values of a header. A gateway may add a header that the service sent already; `fetch` joins them by commas. */
function readItems(headers: Pick<FetchResponse['headers'], 'get'>, name: string): string[] {
  // A date has a comma after the day of the week.
  return headers.get(name)?.match(/[A-Za-z]{3,9},[^,]*|[^,]+/g) ?? [];
}

function longest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

function readInteger(text: string | null): number | undefined {
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
}

function parseSeconds(text: string): number | undefined {
  const trimmed = text.trim();
  return /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

function parseDate(text: string): number | undefined {
  // A lone number would parse as a year.
  const parsed = /[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(parsed) ? undefined : parsed;
}
