import { type EndpointName, endpoints, ROUTES } from '../../endpoints.ts';
import type { ApiErrorItem } from '../../schemas/api-error.ts';

export interface FakeRequest {
  readonly method: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  readonly headers: Headers;
  /** Empty when there is no body. */
  readonly body: string;
  /** Path of the base URL. Default: everything up to the version segment, e.g. `/public/v1`. */
  readonly basePath?: string | undefined;
}

export interface FakeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The reply to a request, for a transport to carry out: `stall` sends the headers and half of the body, then nothing. */
export type Reply =
  | { readonly kind: 'response' | 'stall'; readonly response: FakeResponse }
  | { readonly kind: 'reset' | 'silence' };

/** A rejected request; `serve` turns it into the error body of the endpoint. */
export class ServiceError extends Error {
  readonly status: number;
  readonly errors: readonly ApiErrorItem[];

  constructor(status: number, errors: readonly ApiErrorItem[]) {
    super(errors.map(({ message }) => message).join('; '));
    this.status = status;
    this.errors = errors;
  }
}

export function rejection(status: number, code: ApiErrorItem['code'], message: string): ServiceError {
  return new ServiceError(status, [{ code, message }]);
}

export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function toJsonResponse(
  status: number,
  body: unknown,
  headers: FakeResponse['headers'] = {},
): FakeResponse {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  };
}

export function toErrorResponse(
  endpoint: EndpointName | undefined,
  { status, errors }: Pick<ServiceError, 'status' | 'errors'>,
  headers: FakeResponse['headers'] = {},
): FakeResponse {
  if (endpoint !== 'trackers.createBulk') return toJsonResponse(status, { errors, data: null }, headers);
  const body = { status: 'error', summary: null, data: null, error: errors[0] ?? null };
  return toJsonResponse(status, body, headers);
}

export function hasJsonType(headers: Headers): boolean {
  return /^application\/json\b/i.test(headers.get('content-type') ?? '');
}

export function checkApiKey(headers: Headers, apiKeys: readonly string[] | undefined): void {
  const authorization = headers.get('authorization')?.trim() ?? '';
  if (authorization === '')
    throw rejection(400, 'auth_missing_header', 'The Authorization header is missing.');
  const key = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  if (key === undefined)
    throw rejection(
      400,
      'auth_invalid_header',
      'The Authorization header must have the form "Bearer <API key>".',
    );
  if (apiKeys?.includes(key) === false)
    throw rejection(401, 'auth_invalid_api_key', 'The API key is unknown.');
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // A segment with a broken escape names no tracker, so it may stay as it is.
    return segment;
  }
}

export function findRoute(method: string, pathname: string, basePath?: string) {
  let path = '';
  if (basePath === undefined) path = /^.*?\/v\d+(\/.*)$/s.exec(pathname)?.[1] ?? '';
  else if (pathname.startsWith(`${basePath}/`)) path = pathname.slice(basePath.length);
  const matches = ROUTES.filter(({ pattern }) => pattern.test(path));
  const route = matches.find((candidate) => candidate.method === method);
  if (route === undefined) return { allowedMethods: [...new Set(matches.map((match) => match.method))] };
  const segments = Object.entries(route.pattern.exec(path)?.groups ?? {});
  return {
    endpoint: route.endpoint,
    params: Object.fromEntries(segments.map(([name, segment]) => [name, decodeSegment(segment)])),
  };
}

export const WINDOW_MS = 1000;

export type LimitWindow = 'fixed' | 'sliding';

export class RateLimits {
  readonly #overrides: Partial<Record<EndpointName, number>>;
  readonly #window: LimitWindow;
  readonly #accepted = new Map<EndpointName, number[]>();

  constructor(overrides: Partial<Record<EndpointName, number>>, window: LimitWindow) {
    this.#overrides = overrides;
    this.#window = window;
  }

  getLimit(endpoint: EndpointName): number {
    return this.#overrides[endpoint] ?? endpoints[endpoint].limitPerSecond;
  }

  /** Counts one request unless its window is full; a refused request does not count. */
  take(endpoint: EndpointName, nowMs: number): { allowed: boolean; headers: Record<string, string> } {
    const limit = this.getLimit(endpoint);
    const isFixed = this.#window === 'fixed';
    const windowStart = isFixed ? Math.floor(nowMs / WINDOW_MS) * WINDOW_MS : nowMs - WINDOW_MS;
    const isInWindow = (at: number) => (isFixed ? at >= windowStart : at > windowStart);
    // If the clock was set back, forget requests that are in the future now. They would count for too long.
    const accepted = (this.#accepted.get(endpoint) ?? []).filter((at) => isInWindow(at) && at <= nowMs);
    const allowed = accepted.length < limit;
    if (allowed) accepted.push(nowMs);
    this.#accepted.set(endpoint, accepted);
    const resetInMs = (isFixed ? windowStart : (accepted[0] ?? nowMs)) + WINDOW_MS - nowMs;
    const headers = buildLimitHeaders(limit, limit - accepted.length, resetInMs, nowMs);
    return { allowed, headers: allowed ? headers : { ...headers, 'retry-after': toSeconds(resetInMs) } };
  }
}

/** Rounds up, so that a caller who waits that long does not come too early. */
export function toSeconds(milliseconds: number): string {
  return String(Math.ceil(milliseconds / 1000));
}

export function buildLimitHeaders(limit: number, remaining: number, resetInMs: number, nowMs: number) {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': toSeconds(resetInMs),
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil((nowMs + resetInMs) / 1000)),
  };
}

export function toTooManyRequests(headers: FakeResponse['headers']): FakeResponse {
  return {
    status: 429,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
    body: 'Too many requests in this second.',
  };
}
