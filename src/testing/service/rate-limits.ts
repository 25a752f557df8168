import { type EndpointName, endpoints } from '../../endpoints.ts';

const WINDOW_MS = 1000;

/**
 * How the service counts: windows that start each second, or the second before each request.
 *
 * @specification service.md 8
 */
export type LimitWindow = 'fixed' | 'sliding';

/** What counting one request told. */
export interface Allowance {
  readonly allowed: boolean;
  /** Both header sets of service.md 8, and `retry-after` with a refusal. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Counts requests per endpoint in windows of one second (service.md 8). */
export class RateLimits {
  readonly #overrides: Partial<Record<EndpointName, number>>;
  readonly #window: LimitWindow;
  readonly #accepted = new Map<EndpointName, number[]>();

  constructor(overrides: Partial<Record<EndpointName, number>>, window: LimitWindow) {
    this.#overrides = overrides;
    this.#window = window;
  }

  /** How many requests a second the endpoint takes. */
  limitOf(endpoint: EndpointName): number {
    return this.#overrides[endpoint] ?? endpoints[endpoint].limitPerSecond;
  }

  /** Counts one request, unless its window is full: a refused request uses nothing up. */
  take(endpoint: EndpointName, nowMs: number): Allowance {
    const limit = this.limitOf(endpoint);
    const windowStart =
      this.#window === 'fixed' ? Math.floor(nowMs / WINDOW_MS) * WINDOW_MS : nowMs - WINDOW_MS;
    const isInWindow = (at: number) => (this.#window === 'fixed' ? at >= windowStart : at > windowStart);
    const accepted = (this.#accepted.get(endpoint) ?? []).filter((at) => isInWindow(at) && at <= nowMs);
    const allowed = accepted.length < limit;
    if (allowed) accepted.push(nowMs);
    this.#accepted.set(endpoint, accepted);
    const resetAt = this.#window === 'fixed' ? windowStart + WINDOW_MS : (accepted[0] ?? nowMs) + WINDOW_MS;
    const headers = limitHeaders(limit, limit - accepted.length, resetAt - nowMs, nowMs);
    return {
      allowed,
      headers: allowed ? headers : { ...headers, 'retry-after': secondsUp(resetAt - nowMs) },
    };
  }
}

function secondsUp(milliseconds: number): string {
  return String(Math.max(1, Math.ceil(milliseconds / 1000)));
}

/** Both header sets, which say the same (service.md 8). */
export function limitHeaders(
  limit: number,
  remaining: number,
  resetInMs: number,
  nowMs: number,
): Record<string, string> {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': secondsUp(resetInMs),
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil((nowMs + resetInMs) / 1000)),
  };
}
