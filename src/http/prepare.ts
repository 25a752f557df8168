import * as z from 'zod';
import type { ErrorContext } from '../common/check-options.ts';
import { findPromise } from '../common/check-options.ts';
import {
  errorMap,
  expected,
  formatPath,
  kindOf,
  PROMISE_RULE,
  quoteValue,
  readBrokenRule,
} from '../common/messages.ts';
import { fieldsOption } from '../common/option-schemas.ts';
import { safeParse, toValidationIssues } from '../common/parsing.ts';
import { hasDotSegment } from '../common/urls.ts';
import type { Config } from '../config/config.ts';
import {
  type Endpoint,
  type EndpointName,
  endpoints,
  type RetryClass,
  ROUTES,
  type TimeoutClass,
} from '../endpoints.ts';
import { RequestValidationError } from '../errors.ts';
import { wholeBody } from '../schemas/unwrap.ts';
import { type CheckedData, checkResponse } from './check-response.ts';

export interface PreparedRequest<T> {
  readonly endpoint: EndpointName | 'request';
  readonly method: string;
  readonly path: string;
  /**
   * Method and URL without query, and without ids if the path is in the endpoint table, so that equal failures have equal
   * messages.
   */
  readonly title: string;
  /** Path and query below the base URL. */
  readonly target: string;
  readonly body: string | undefined;
  readonly timeoutClass: TimeoutClass;
  /** The class of the endpoint, or `safe` or `unsafe` for `client.request`. */
  readonly retryClass: RetryClass;
  /**
   * A further rule of whoever makes the call, asked about failures that may be retried.
   *
   * @param failedAfterMs - time from the start of the attempt to its failure
   */
  readonly mayRetry?: (error: unknown, failedAfterMs: number) => boolean;
  readonly response: ResponseRules;
  /** Turns the payload of a response into the result. */
  readonly read: (payload: unknown, mode: Config['invalidResponse']) => CheckedData<T>;
}

export interface ResponseRules extends Omit<Endpoint['response'], 'schema'> {
  /** True if a response without a body is an empty result. */
  readonly isBodyOptional?: boolean;
  /** Tells whether a bulk result rejects the whole request; the call then fails with an ApiError. */
  readonly isRefusal?: (payload: unknown) => boolean;
}

export interface CallInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** A body that is checked and written as JSON already; replaces `body`. */
  readonly json?: string;
}

type QueryValue = string | number | boolean | undefined | null;

export function checkInput<T>(
  { maskKey, callSite }: ErrorContext,
  schema: z.ZodType<T>,
  value: unknown,
  rootName: string,
): T {
  const promise = findPromise(value);
  if (promise !== undefined) {
    const message = maskKey(`\`${formatPath(promise, rootName)}\` ${PROMISE_RULE}`);
    throw new RequestValidationError([{ path: promise, code: 'invalid_type', message, rule: PROMISE_RULE }], {
      callSite,
    });
  }
  const result = safeParse(schema, value);
  if (result.success) return result.data;
  // Parse again with messages, because building them takes time that a valid input should not cost.
  const { error } = schema.safeParse(value, { error: errorMap(rootName) });
  const issues = toValidationIssues(error ?? result.error).map((issue) => {
    const message = maskKey(issue.message);
    return { ...issue, message, rule: readBrokenRule(message) };
  });
  throw new RequestValidationError(issues, { callSite });
}

export function toJson(value: unknown, name: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  if (text !== undefined) return text;
  const isObject = typeof value === 'object' && value !== null;
  const reason = isObject ? 'remove any BigInt and any circular reference' : `it is ${kindOf(value)}`;
  const rule = 'cannot be written as JSON';
  const message = `\`${name}\` ${rule}; ${reason}`;
  throw new RequestValidationError([{ path: [name], code: 'invalid_value', message, rule }]);
}

function formatQuery(query: Readonly<Record<string, QueryValue>> | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  if (given.length === 0) return '';
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

export type EndpointResult<Name extends EndpointName> = z.output<
  (typeof endpoints)[Name]['response']['schema']
>;

export function prepareRequest<Name extends EndpointName>(
  config: Config,
  name: Name,
  input: CallInput,
): PreparedRequest<EndpointResult<Name>> {
  const row: Endpoint = endpoints[name];
  const schemas = row.request;
  const bodyName = row.retryClass === 'bulk' ? 'items' : 'input';
  const params = schemas.params && checkInput(config, schemas.params, input.params, 'params');
  const query = schemas.query && checkInput(config, schemas.query, input.query ?? {}, 'query');
  const body =
    input.json === undefined
      ? schemas.body && checkInput(config, schemas.body, input.body, bodyName)
      : undefined;
  const path = row.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ''));
  return {
    endpoint: name,
    method: row.method,
    path: row.path,
    title: `${row.method} ${config.baseUrl}${row.path.replace('{trackerId}', '…')}`,
    target: path + formatQuery(query),
    body: body === undefined ? input.json : toJson(body, bodyName),
    timeoutClass: row.timeoutClass,
    retryClass: row.retryClass,
    response: row.response,
    // Safe cast: `Name` chose the row, so its response schema gives exactly `EndpointResult<Name>`.
    read: (payload, mode) =>
      checkResponse(row.response.schema as z.ZodType<EndpointResult<Name>>, payload, mode),
  };
}

/** A request to any path of the service, sent in the same way as the requests of the methods. */
export interface RawRequest {
  /** The HTTP method. */
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the base URL (docs/service.md 1.6), starting with `/`; encode variable parts with `encodeURIComponent`. */
  readonly path: string;
  /** Query parameters; undefined and null values are left out. Default: none. */
  readonly query?: Readonly<Record<string, QueryValue>> | undefined;
  /** A JSON value. Default: none. */
  readonly body?: unknown;
  /** True if a second request does no harm. Default: true for GET and HEAD. */
  readonly idempotent?: boolean | undefined;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/**
 * Quotes a path without its query. For a URL, it shows only the kind (`a string of 40 characters`), because a URL can contain
 * credentials.
 */
function quotePath(value: unknown): string {
  if (typeof value !== 'string' || value.includes('//')) return kindOf(value);
  return quoteValue(value.replace(/[?#].*/s, '?…'));
}

const PATH_RULE = expected(
  'to be a path that starts with one "/" and has no query, fragment, space or backslash',
  quotePath,
);

const queryOption = fieldsOption('{ page: 2 }', (_name, value) => {
  const isValid = value === null || ['undefined', 'string', 'number', 'boolean'].includes(typeof value);
  return isValid ? undefined : 'to be a string, number or boolean';
});

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

const rawRequestSchema = z
  .object({
    method: z.enum(METHODS),
    path: z
      .string(PATH_RULE)
      .regex(/^\/(?!\/)[^?#\\\s]*$/, { ...PATH_RULE, abort: true })
      .refine(
        (path) => !hasDotSegment(path),
        expected('to have no path segment `.` or `..`, even percent-encoded', quotePath),
      ),
    query: queryOption.optional(),
    body: z.unknown(),
    idempotent: z.boolean().optional(),
  })
  .refine(({ method, body }) => !isReading(method) || body === undefined, {
    path: ['body'],
    ...expected('to be left out of a GET or HEAD request'),
  });

export function prepareRawRequest(config: Config, request: RawRequest): PreparedRequest<unknown> {
  checkInput(config, rawRequestSchema, request, 'request');
  // The service counts a HEAD request like the GET of the same path.
  const routeMethod = request.method === 'HEAD' ? 'GET' : request.method;
  const name = ROUTES.find(
    ({ method, pattern }) => method === routeMethod && pattern.test(request.path),
  )?.endpoint;
  const row: Endpoint | undefined = name && endpoints[name];
  const isIdempotent = request.idempotent ?? isReading(request.method);
  // Mask the API key, because messages, hooks and log lines show the path.
  const path = row?.path ?? config.maskKey(request.path);
  return {
    endpoint: name ?? 'request',
    method: request.method,
    path,
    title: `${request.method} ${config.baseUrl}${path}`,
    target: request.path + formatQuery(request.query),
    body: request.body === undefined ? undefined : toJson(request.body, 'body'),
    timeoutClass: row?.timeoutClass ?? 'standard',
    retryClass: isIdempotent ? 'safe' : 'unsafe',
    response: { unwrap: wholeBody, isBodyOptional: true },
    read: (data) => ({ data, isUsable: true, mismatched: [], total: 0 }),
  };
}
