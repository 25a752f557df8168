import * as z from 'zod';
import { checkOptions, type ErrorContext } from '../common/check-options.ts';
import {
  countOption,
  delayOption,
  headersOption,
  isAbortSignal,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-schemas.ts';
import { ENDPOINT_NAMES, type Endpoint, type EndpointName, endpoints } from '../endpoints.ts';
import type { Priority } from '../limiter/limiter.ts';
import type { BulkRequestOptions, RequestOptions, RetryOptions } from '../options.ts';

export type RetryPolicy = { readonly [Name in keyof RetryOptions]-?: number };

const DEFAULT_RETRY: RetryPolicy = { retries: 4, maxRetryAfterMs: 60_000, maxBackoffMs: 8_000 };

/** The defaults for calls that no user waits for: they accept a `Retry-After` of up to an hour. */
export const BACKGROUND_RETRY: RetryPolicy = { ...DEFAULT_RETRY, maxRetryAfterMs: 3_600_000 };

const retryObject = z.strictObject({
  retries: countOption(0).optional(),
  maxRetryAfterMs: delayOption.optional(),
  maxBackoffMs: timeoutOption.optional(),
} satisfies OptionShape<RetryOptions>);

export const retryOption = z
  .preprocess((value) => (value === false ? { retries: 0 } : value), retryObject.optional())
  .optional();

export function completeRetry(
  call: RetryOptions | undefined,
  client: RetryOptions,
  defaults: RetryPolicy = DEFAULT_RETRY,
): RetryPolicy {
  return {
    retries: call?.retries ?? client.retries ?? defaults.retries,
    maxRetryAfterMs: call?.maxRetryAfterMs ?? client.maxRetryAfterMs ?? defaults.maxRetryAfterMs,
    maxBackoffMs: call?.maxBackoffMs ?? client.maxBackoffMs ?? defaults.maxBackoffMs,
  };
}

export const CALL_SHAPE = {
  signal: option<AbortSignal>('an AbortSignal', isAbortSignal).optional(),
  timeoutMs: timeoutOption.optional(),
  totalTimeoutMs: timeoutOption.optional(),
  retry: retryOption,
  headers: headersOption.optional(),
  priority: z.enum(['interactive', 'background']).optional(),
} satisfies OptionShape<RequestOptions>;

export const BULK_SHAPE = { retryAmbiguous: z.boolean().optional() } satisfies OptionShape<
  Omit<BulkRequestOptions, keyof RequestOptions>
>;

type CallSchema = z.ZodType<z.output<z.ZodObject<typeof CALL_SHAPE>> & { readonly retryAmbiguous?: unknown }>;

function createSchema({ request, retryClass }: Endpoint): CallSchema {
  // Methods of one tracker take `searchBy` among their options. Allow any value here, because `prepareRequest` checks it later.
  const names = request.params && request.query ? Object.keys(Object(request.query).shape) : [];
  const query = Object.fromEntries(names.map((name) => [name, z.unknown().optional()]));
  const bulk = retryClass === 'bulk' ? BULK_SHAPE : {};
  return z.strictObject({ ...query, ...CALL_SHAPE, ...bulk });
}

const REQUEST_SCHEMA: CallSchema = z.strictObject(CALL_SHAPE);
const ENDPOINT_SCHEMAS: ReadonlyMap<string, CallSchema> = new Map(
  ENDPOINT_NAMES.map((name) => [name, createSchema(endpoints[name])]),
);

/** The options of one call, checked and completed. Without `timeoutMs` the timeout class of the endpoint applies. */
export interface CallOptions extends Omit<RequestOptions, 'retry'> {
  readonly retry: RetryPolicy;
  readonly priority: Priority;
  readonly retryAmbiguous: boolean;
}

export function resolveCallOptions(
  client: ErrorContext & { readonly totalTimeoutMs: number | undefined; readonly retry: RetryOptions },
  method: EndpointName | 'request',
  options: RequestOptions,
): CallOptions {
  const checked = checkOptions(ENDPOINT_SCHEMAS.get(method) ?? REQUEST_SCHEMA, options, undefined, client);
  return {
    ...checked,
    totalTimeoutMs: checked.totalTimeoutMs ?? client.totalTimeoutMs,
    retry: completeRetry(checked.retry, client.retry),
    priority: checked.priority ?? 'interactive',
    retryAmbiguous: checked.retryAmbiguous === true,
  };
}
