import { z } from 'zod';
import {
  checkOptions,
  choiceOption,
  countOption,
  delayOption,
  headersOption,
  isAbortSignal,
  type OptionShape,
  option,
  switchOption,
  timeoutOption,
} from '../common/option-checks.ts';
import { ENDPOINT_NAMES, type Endpoint, type EndpointName, endpoints } from '../endpoints.ts';
import type { Priority } from '../limiter/limiter.ts';
import type { BulkRequestOptions, RequestOptions, RetryOptions } from '../options.ts';

/** When a failed attempt is followed by another one; every field is filled. */
export type RetryPolicy = { readonly [Name in keyof RetryOptions]-?: number };

export const DEFAULT_RETRY: RetryPolicy = {
  retries: 3,
  minDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 60_000,
  maxRateLimitRetries: 20,
};

const retryObject = z.strictObject({
  retries: countOption(0).optional(),
  minDelayMs: delayOption.optional(),
  maxDelayMs: delayOption.optional(),
  maxRetryAfterMs: delayOption.optional(),
  maxRateLimitRetries: countOption(0).optional(),
} satisfies OptionShape<RetryOptions>);

/** Retry options; `false` is none. */
export const retryOption = z
  .preprocess((value) => (value === false ? { retries: 0 } : value), retryObject.optional())
  .optional();

export function completeRetry(given: z.output<typeof retryOption>, base: RetryPolicy): RetryPolicy {
  const own = Object.entries(given ?? {}).filter(([, value]) => value !== undefined);
  return { ...base, ...Object.fromEntries(own) };
}

export const CALL_SHAPE = {
  signal: option<AbortSignal>('an AbortSignal', isAbortSignal).optional(),
  timeoutMs: timeoutOption.optional(),
  totalTimeoutMs: timeoutOption.optional(),
  retry: retryOption,
  headers: headersOption('headers').optional(),
  priority: choiceOption(['interactive', 'background']).optional(),
} satisfies OptionShape<RequestOptions>;

export const BULK_SHAPE = { retryAmbiguous: switchOption.optional() } satisfies OptionShape<
  Omit<BulkRequestOptions, keyof RequestOptions>
>;

/** Options of a call; those of some endpoints have more. */
type CallSchema = z.ZodType<z.output<z.ZodObject<typeof CALL_SHAPE>> & { readonly retryAmbiguous?: unknown }>;

/** Options that have their checks elsewhere, and are named here for "did you mean". */
function checkedElsewhere(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, z.unknown().optional()]));
}

const REQUEST_OPTIONS: CallSchema = z.strictObject({
  ...checkedElsewhere(['method', 'path', 'query', 'body', 'schema', 'idempotent']),
  ...CALL_SHAPE,
});

function schemaOf({ request, retryClass }: Endpoint): CallSchema {
  // The query of an endpoint stands among the options of its method.
  const query = request.query === undefined ? [] : Object.keys(Object(request.query).shape);
  const more = retryClass === 'bulk' ? BULK_SHAPE : {};
  return z.strictObject({ ...checkedElsewhere(query), ...CALL_SHAPE, ...more });
}

const SCHEMAS: ReadonlyMap<EndpointName, CallSchema> = new Map(
  ENDPOINT_NAMES.map((name) => [name, schemaOf(endpoints[name])]),
);

/** The options of each endpoint's method, so that what another method takes is not ignored here. */
export function schemaOfOptions(method: EndpointName | 'request'): CallSchema {
  return (method === 'request' ? undefined : SCHEMAS.get(method)) ?? REQUEST_OPTIONS;
}

/** The options of one call, checked and completed; without `timeoutMs` the client's counts, by timeout class. */
export interface CallOptions extends Omit<RequestOptions, 'retry'> {
  readonly retry: RetryPolicy;
  readonly priority: Priority;
  readonly retryAmbiguous: boolean;
}

/** Checks the options of one call, and fills in what the client has. */
export function resolveCallOptions(
  defaults: { readonly totalTimeoutMs: number | undefined; readonly retry: RetryPolicy },
  options: RequestOptions = {},
  schema: CallSchema = REQUEST_OPTIONS,
): CallOptions {
  const { signal, timeoutMs, totalTimeoutMs, retry, headers, ...own } = checkOptions(schema, options);
  return {
    signal,
    timeoutMs,
    totalTimeoutMs: totalTimeoutMs ?? defaults.totalTimeoutMs,
    retry: completeRetry(retry, defaults.retry),
    headers,
    priority: own.priority ?? 'interactive',
    retryAmbiguous: own.retryAmbiguous === true,
  };
}
