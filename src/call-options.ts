import type { Config } from './config.ts';
import { ENDPOINT_NAMES, type Endpoint, type EndpointName, endpoints } from './endpoints.ts';
import { ConfigurationError } from './errors.ts';
import { checkHeaders, checkOneOf, checkTimeoutMs } from './option-checks.ts';
import type { RequestOptions } from './options.ts';
import type { BulkRequestOptions } from './resources/request-options.ts';
import { type RetryPolicy, resolveRetry } from './retry-policy.ts';

/** The options of one call, checked and completed. */
export interface CallOptions {
  readonly signal: AbortSignal | undefined;
  /** Undefined: the client's, by timeout class. */
  readonly timeoutMs: number | undefined;
  readonly totalTimeoutMs: number | undefined;
  readonly retry: RetryPolicy;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly priority: 'interactive' | 'background';
}

// Typed against the options, so an option without an entry here does not compile.
/** The names of what every call takes. */
export const CALL_OPTIONS = Object.keys({
  signal: true,
  timeoutMs: true,
  totalTimeoutMs: true,
  retry: true,
  headers: true,
  priority: true,
} satisfies Record<keyof RequestOptions, true>);

// Typed against the options, so an option without an entry here does not compile.
const BULK_OPTIONS = Object.keys({ retryAmbiguous: true } satisfies Record<
  Exclude<keyof BulkRequestOptions, keyof RequestOptions>,
  true
>);

function optionsOf({ request, retryClass }: Endpoint): readonly string[] {
  // The query of an endpoint stands among the options of its method.
  const query = request.query === undefined ? [] : Object.keys(Object(request.query).shape);
  return [...query, ...CALL_OPTIONS, ...(retryClass === 'bulk' ? BULK_OPTIONS : [])];
}

/** The names of the options of each endpoint's method, so that what another method takes is not ignored here. */
export const METHOD_OPTIONS: ReadonlyMap<EndpointName, readonly string[]> = new Map(
  ENDPOINT_NAMES.map((name) => [name, optionsOf(endpoints[name])]),
);

function isAbortSignal(value: unknown): value is AbortSignal {
  // By shape: a test environment may have an AbortSignal of its own.
  const isObject = typeof value === 'object' && value !== null;
  return isObject && 'aborted' in value && 'addEventListener' in value;
}

/**
 * Checks and completes the options of one call.
 *
 * @throws ConfigurationError naming the option that makes no sense
 */
export function resolveCallOptions(config: Config, options: RequestOptions = {}): CallOptions {
  const { signal, timeoutMs, totalTimeoutMs, retry, headers, priority } = options;
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new ConfigurationError('Expected `signal` to be an AbortSignal');
  }
  return {
    signal,
    timeoutMs: timeoutMs === undefined ? undefined : checkTimeoutMs('timeoutMs', timeoutMs),
    totalTimeoutMs:
      totalTimeoutMs === undefined ? config.totalTimeoutMs : checkTimeoutMs('totalTimeoutMs', totalTimeoutMs),
    retry: resolveRetry(retry, config.retry),
    headers: headers === undefined ? undefined : checkHeaders('headers', headers),
    priority: checkOneOf('priority', priority ?? 'interactive', ['interactive', 'background']),
  };
}
