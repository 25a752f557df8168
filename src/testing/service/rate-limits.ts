import { type EndpointName, endpoints } from '../../endpoints.ts';
import type { FakeResponse } from './http.ts';

const WINDOW_MS = 1000;

/** How the service counts: windows that start each second, or the second before each request. */
export type LimitWindow = 'fixed' | 'sliding';

/** Counts requests per endpoint in windows of one second. */
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

  /** Counts one request unless its window is full; a refused request uses nothing up. */
  take(endpoint: EndpointName, nowMs: number): { allowed: boolean; headers: Record<string, string> } {
    const limit = this.getLimit(endpoint);
    const isFixed = this.#window === 'fixed';
    const windowStart = isFixed ? Math.floor(nowMs / WINDOW_MS) * WINDOW_MS : nowMs - WINDOW_MS;
    const isInWindow = (at: number) => (isFixed ? at >= windowStart : at > windowStart);
    // Requests "of the future" are forgotten, because a clock that stepped back must not lock anybody out.
    const accepted = (this.#accepted.get(endpoint) ?? []).filter((at) => isInWindow(at) && at <= nowMs);
    const allowed = accepted.length < limit;
    if (allowed) accepted.push(nowMs);
    this.#accepted.set(endpoint, accepted);
    const resetInMs = (isFixed ? windowStart : (accepted[0] ?? nowMs)) + WINDOW_MS - nowMs;
    const headers = buildLimitHeaders(limit, limit - accepted.length, resetInMs, nowMs);
    return { allowed, headers: allowed ? headers : { ...headers, 'retry-after': toSeconds(resetInMs) } };
  }
}

function toSeconds(milliseconds: number): string {
  return String(Math.max(1, Math.ceil(milliseconds / 1000)));
}

/** Builds both header sets, which say the same. */
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

/** Builds a 429, which the service sends in plain text. */
export function toTooManyRequests(headers: FakeResponse['headers']): FakeResponse {
  return {
    status: 429,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
    body: 'Too many requests in this second.',
  };
}
