import type { Limiter, LimiterOptions, Priority } from './limiter/limiter.ts';
import type { Hooks } from './observability/hooks.ts';
import type { Logger, LogLevel } from './observability/logger.ts';
import type { SearchBy } from './schemas/tracker.ts';

/** The retries of a failed request; the endpoint decides which failures are retried. */
export interface RetryOptions {
  /** Maximum number of retries of one request. Retries after a 429 count, too. Default 4; 20 for `createMany`. */
  readonly retries?: number | undefined;
  /**
   * Longest wait that the service may ask for, in milliseconds. If it asks for more, the call rejects at once. Default 60,000;
   * 3,600,000 for `createMany` and for a poll after a 429.
   */
  readonly maxRetryAfterMs?: number | undefined;
  /**
   * Longest wait before a retry if the service asks for none, in milliseconds. Waits grow from half a second. The longest wait of a
   * call is random, between half of this value and all of it. Default 8,000.
   */
  readonly maxBackoffMs?: number | undefined;
}

/** The second argument of the option `fetch`. */
export interface FetchInit {
  /** HTTP method. */
  readonly method: string;
  /** All headers, with names in lower case. */
  readonly headers: Record<string, string>;
  /** The body, a JSON text. */
  readonly body?: string;
  /** Redirects are never followed, because the key would travel with them. */
  readonly redirect: 'manual';
  /** Aborts when the call is aborted or its time is up. */
  readonly signal: AbortSignal;
}

/** The parts of a response that the client reads. All implementations of `fetch` have them. */
export interface FetchResponse {
  /** HTTP status. */
  readonly status: number;
  /** Reason phrase. */
  readonly statusText: string;
  /** True for a status from 200 to 299. */
  readonly ok: boolean;
  /** The headers. */
  readonly headers: { get(name: string): string | null } & Iterable<[string, string]>;
  /** Read as a stream if it is one; otherwise with `text()`. */
  readonly body: unknown;
  /** Reads the body. */
  text(): Promise<string>;
}

/** A function such as the global `fetch`. */
export type FetchFunction = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** Options of `new TrackingClient`. */
export interface TrackingClientOptions {
  /**
   * URL of the service, with its version (docs/service.md 1.6). Default: the environment variable `TRACKING_BASE_URL`.
   * @example 'https://api.example.com/public/v1'
   */
  readonly baseUrl?: string | URL | undefined;
  /**
   * The API key, or a function that returns it. The function is called before every attempt. It should be fast, because the attempt
   * already holds a token of the rate limit. Default: the environment variable `TRACKING_API_KEY`.
   */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /**
   * Time limit of one attempt, in milliseconds. The whole response must arrive in this time. Default 30,000; 90,000 for `track` and
   * `search` (docs/service.md 6.4).
   */
  readonly timeoutMs?: number | undefined;
  /** Time limit of the whole call, in milliseconds. It includes all attempts and waits. Default: none. */
  readonly totalTimeoutMs?: number | undefined;
  /** Settings of retries, or `false`. Default: `{}`. */
  readonly retry?: false | RetryOptions | undefined;
  /**
   * Options of the client's limiter, or `false`. `withOptions` refuses this option, because the new client
   * shares the limiter. Default: `{}` (`false` in a Cloudflare Worker).
   */
  readonly rateLimit?: false | LimiterOptions | undefined;
  /**
   * A shared limiter, instead of `rateLimit`. Pass a `TokenBucketLimiter` for clients of one process, or a `RedisLimiter` for
   * several processes. Set `limits` on the limiter; accounts with different limits need a limiter each. Clients of `withOptions`
   * keep the limiter, so `withOptions` refuses `rateLimit` and `limiter`. Default: a limiter of its own.
   */
  readonly limiter?: Limiter | undefined;
  /**
   * Name of the account, if its clients have different keys (docs/service.md 1.8). Default: a hash of the key, or a random id if
   * `apiKey` is a function. Required if `apiKey` is a function and `limiter` is a `RedisLimiter`.
   */
  readonly account?: string | undefined;
  /**
   * The `fetch` to use, such as `fake.fetch` in tests. The `fetch` of `undici` works, too. It is called with the URL as a string
   * and with plain options. If it throws for another reason than the network, the call is not retried. Default: the global `fetch`.
   */
  readonly fetch?: FetchFunction | undefined;
  /** Additional headers of every request. `authorization` is refused, because `apiKey` sets it. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A logger, for example of pino, winston, bunyan or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
  /** The lowest level that is logged. Default: the environment variable `TRACKING_LOG` or `warn`. */
  readonly logLevel?: LogLevel | undefined;
  /** Hooks, or a list of objects with hooks. A hook that throws never breaks a call. Default: none. */
  readonly hooks?: Hooks | readonly Hooks[] | undefined;
  /**
   * Whether to `keep` fields of an unexpected type, or to `throw` a `ResponseValidationError`. With `keep`, the client
   * reports the mismatch in `withResponse().mismatched`, to the hook `onMismatch`, and with one `warn` line for each
   * endpoint and field. In both modes a call rejects if the result, a list of records or an item of such a list has the wrong type,
   * or if a single tracker has no valid `trackerId`. Default `keep`.
   */
  readonly invalidResponse?: 'keep' | 'throw' | undefined;
  /**
   * Maximum length of a decompressed response, in bytes. If the body of a 2xx is longer, the call rejects. If the body of an error
   * is longer, the error contains only the beginning of the body. Default 67,108,864 (64 MiB).
   */
  readonly maxResponseBytes?: number | undefined;
  /** Allows `http:` to other machines (docs/service.md 1.7). The key is then sent unencrypted. Default false. */
  readonly allowInsecureHttp?: boolean | undefined;
}

/** Options of one call, the last argument of every method. */
export interface RequestOptions {
  /** A signal that aborts the call. The call then rejects with the signal's own reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit of one attempt, in milliseconds. The whole response must arrive in this time. Default: the client's. */
  readonly timeoutMs?: number | undefined;
  /** Time limit of the whole call, in milliseconds. Default: the client's. */
  readonly totalTimeoutMs?: number | undefined;
  /** `false` for no retries, or the settings that differ from the client's. Default: the client's. */
  readonly retry?: false | RetryOptions | undefined;
  /** Additional headers, which override the client's. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Waiting calls with `interactive` go before those with `background`. Default `interactive`. */
  readonly priority?: Priority | undefined;
}

/** Options of calls that address one tracker. */
export interface TrackerRequestOptions extends RequestOptions {
  /** The kind of the id: `trackerId`, or your own `clientTrackerId` (docs/service.md 3.12). Default `trackerId`. */
  readonly searchBy?: SearchBy | undefined;
}

/** Options of `trackers.createBulk`. */
export interface BulkRequestOptions extends RequestOptions {
  /**
   * Also retries requests that the service may have carried out (docs/service.md 4.5). The trackers that it created then have the
   * status `existing`. Default false.
   */
  readonly retryAmbiguous?: boolean | undefined;
}
