import type { EndpointName } from './endpoints.ts';
import type { Limiter, Priority } from './limiter/limiter.ts';
import type { Hooks } from './observability/hooks.ts';
import type { Logger, LogLevel } from './observability/logger.ts';
import type { SearchBy } from './schemas/tracker.ts';

/** How often a failed request is sent again; the endpoint decides which failures count. */
export interface RetryOptions {
  /** How often a failed request, 429s included, is sent again. Default 4; 20 for `createMany` and polls. */
  readonly retries?: number | undefined;
  /** Longest wait that the service may ask for, in milliseconds. Default 60,000; 3,600,000 for `createMany` and polls. */
  readonly maxRetryAfterMs?: number | undefined;
}

/** How the limiter of a client is set up; beside a `limiter` only `limits` counts. */
export interface RateLimitOptions {
  /** Requests per second by endpoint, where your account's differ. Default: those of the endpoint table. */
  readonly limits?: Partial<Record<EndpointName, number>> | undefined;
  /** Calls that may wait for one endpoint; the next one rejects with `QueueFullError`. Default: no bound. */
  readonly maxQueue?: number | undefined;
}

/** Options of `new TrackingClient`. */
export interface TrackingClientOptions {
  /**
   * Where the service is, with its version segment. Default: the environment variable `TRACKING_BASE_URL`.
   * @example 'https://api.example.com/public/v1'
   */
  readonly baseUrl?: string | URL | undefined;
  /**
   * The API key, or a function that returns it before every attempt, from memory, because the call holds its token meanwhile.
   * Default: the environment variable `TRACKING_API_KEY`.
   */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Time for one attempt, headers and body, in milliseconds. Default 30,000; 90,000 for `track` and `search`. */
  readonly timeoutMs?: number | undefined;
  /** Time for the whole call with queueing, attempts and waits, in milliseconds. Default: none. */
  readonly totalTimeoutMs?: number | undefined;
  /** Retries, or `false` for none at all. Default: those of `RetryOptions`. */
  readonly retry?: false | RetryOptions | undefined;
  /** The built-in limiter, or `false` to send at once and meet the service's 429s. Default: on. */
  readonly rateLimit?: false | RateLimitOptions | undefined;
  /** A `TokenBucketLimiter` to share among clients, or a `RedisLimiter` among processes. Default: one of its own. */
  readonly limiter?: Limiter | undefined;
  /**
   * Names the account for the limiter, so that clients with different keys of one account share its allowance. Default: a hash of
   * the key. A client whose key is a function is an account of its own, and needs this option beside a `RedisLimiter`.
   */
  readonly account?: string | undefined;
  /** The `fetch` to use, e.g. `fake.fetch` in tests. Default: the global one. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Headers for every request; `authorization` belongs to `apiKey`. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Takes the log lines: a logger of pino, winston, bunyan or NestJS as it is. Default: the console. */
  readonly logger?: Logger | undefined;
  /** The least urgent lines that are logged. Default: the environment variable `TRACKING_LOG`, else `warn`. */
  readonly logLevel?: LogLevel | undefined;
  /** Callbacks around every call and attempt; one that throws never breaks a call. Default: none. */
  readonly hooks?: Hooks | undefined;
  /**
   * Handles a success that breaks its schema. `keep`: hands the data over as it came; `withResponse().mismatched`, the hook
   * `onMismatch` and one `warn` line for each endpoint and field report it. `throw`: rejects with
   * `ResponseValidationError`. Unusable data rejects in both modes. Default `keep`.
   */
  readonly invalidResponse?: 'keep' | 'throw' | undefined;
  /** Longest response, in bytes after decompression; a longer one rejects. Default 67,108,864 (64 MiB). */
  readonly maxResponseBytes?: number | undefined;
  /** Allows `http:` beyond loopback addresses, where everybody on the way can read the key. Default false. */
  readonly allowInsecureHttp?: boolean | undefined;
}

/** Options of one call, the last argument of every method. */
export interface RequestOptions {
  /** Ends the call in any phase; it rejects with the signal's own reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Time for one attempt, headers and body, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined;
  /** Time for the whole call, in milliseconds. Default: the client's. */
  readonly totalTimeoutMs?: number | undefined;
  /** Retries of this call: `false` for none, or what differs from the client's. Default: the client's. */
  readonly retry?: false | RetryOptions | undefined;
  /** More headers; they win over the client's. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Which of two waiting calls goes first: `interactive` before `background`. Default `interactive`. */
  readonly priority?: Priority | undefined;
}

/** Options of calls that address one tracker. */
export interface TrackerRequestOptions extends RequestOptions {
  /** Which id is given, the service's or your own `clientTrackerId`. Default `trackerId`. */
  readonly searchBy?: SearchBy | undefined;
}

/** Options of `trackers.createBulk`. */
export interface BulkRequestOptions extends RequestOptions {
  /**
   * Also repeats a request that may have been carried out; items that it created then come back as `existing`. Default false.
   */
  readonly retryAmbiguous?: boolean | undefined;
}
