import type { z } from 'zod';
import { errorMap, expected, toValidationIssues, type ValidationIssue } from '../common/validation.ts';
import type { Config } from '../config/config.ts';
import {
  ENDPOINT_NAMES,
  type Endpoint,
  type EndpointName,
  endpoints,
  type RetryClass,
  type TimeoutClass,
} from '../endpoints.ts';
import { RequestValidationError } from '../errors.ts';
import { hasDotSegment } from '../schemas/identifier.ts';
import { misspeltFields } from '../schemas/misspelt-fields.ts';

/** One call, validated and ready to be sent. */
export interface PreparedCall<T> {
  readonly endpoint: EndpointName | 'request';
  readonly method: string;
  /** Path template, for hooks and errors. */
  readonly path: string;
  /** Method and whole URL as messages show them: without query and ids, which would set apart what is one failure. */
  readonly title: string;
  /** Path and query to send, below the base URL. */
  readonly target: string;
  readonly body: string | undefined;
  readonly limitPerSecond: number;
  /** What the caller allowed at most; what the service announces never raises the limit above it. */
  readonly maxLimitPerSecond: number | undefined;
  readonly timeoutClass: TimeoutClass;
  readonly retryClass: RetryClass;
  readonly response: Omit<Endpoint['response'], 'schema'> & {
    readonly schema: z.ZodType<T>;
    readonly isOwnSchema?: boolean;
  };
}

/** What a method hands over; each part is checked against its schema in the table. */
export interface CallInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

type QueryValue = string | number | boolean | undefined | null;

/** @throws RequestValidationError naming what breaks the schema */
export function checkInput<T>(schema: z.ZodType<T>, value: unknown, rootName: string): T {
  const result = schema.safeParse(value, { error: errorMap(rootName) });
  if (result.success) return result.data;
  throw new RequestValidationError(toValidationIssues(result.error));
}

/** Of a misspelt field the other rules it breaks say less: that the one that was meant is missing. */
function checkBody(schema: z.ZodType, body: unknown): unknown {
  const misspelt = misspeltFields(schema, body);
  if (misspelt.length > 0) throw new RequestValidationError(misspelt);
  return checkInput(schema, body, 'input');
}

function issue(path: string, rule: string, value: unknown): ValidationIssue {
  return {
    path: [path],
    code: 'invalid_value',
    message: expected(rule).error({ path: [path], input: value }),
  };
}

/** JSON text; what JSON can't hold (a cycle, a bigint, a function) is the caller's mistake. */
function toJson(value: unknown, name: string): string {
  try {
    const text: string | undefined = JSON.stringify(value);
    if (text !== undefined) return text;
  } catch {
    // Reported below like a value without a JSON form.
  }
  throw new RequestValidationError([issue(name, 'to be a JSON value', value)]);
}

function queryString(query: Readonly<Record<string, QueryValue>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) search.append(name, String(value));
  }
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}

function fillPath(template: string, params: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
}

export type EndpointResult<Name extends EndpointName> = z.output<
  (typeof endpoints)[Name]['response']['schema']
>;

/** Checks the input of an endpoint of the table and builds the call. */
export function prepareCall<Name extends EndpointName>(
  config: Config,
  name: Name,
  input: CallInput,
): PreparedCall<EndpointResult<Name>> {
  const row: Endpoint = endpoints[name];
  const params =
    row.request.params === undefined ? {} : checkInput(row.request.params, input.params, 'params');
  const query =
    row.request.query === undefined ? {} : checkInput(row.request.query, input.query ?? {}, 'query');
  const body = row.request.body === undefined ? undefined : checkBody(row.request.body, input.body);
  return {
    endpoint: name,
    method: row.method,
    path: row.path,
    title: `${row.method} ${config.baseUrl}${row.path}`,
    target: fillPath(row.path, params) + queryString(query),
    body: body === undefined ? undefined : toJson(body, 'input'),
    limitPerSecond: config.limits[name] ?? row.limitPerSecond,
    maxLimitPerSecond: config.limits[name],
    timeoutClass: row.timeoutClass,
    retryClass: row.retryClass,
    // Sound: the row was taken by `Name`, so its response schema gives exactly `EndpointResult<Name>`.
    response: row.response as PreparedCall<EndpointResult<Name>>['response'],
  };
}

/** A request outside the table, sent through the same pipeline. */
export interface RawRequest<Schema extends z.ZodType = z.ZodType<unknown>> {
  /** The HTTP method. */
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the base URL, starting with `/`; encode variable parts with `encodeURIComponent`. */
  readonly path: string;
  /** Query parameters; those that are undefined or null are left out. Default: none. */
  readonly query?: Readonly<Record<string, QueryValue>> | undefined;
  /** A JSON value. Default: none. */
  readonly body?: unknown;
  /** Checks the body of the response, without promises; its output is the result. Default: the body as it is. */
  readonly schema?: Schema | undefined;
  /** True when repeating the request does no harm. Default: true for GET and HEAD. */
  readonly idempotent?: boolean | undefined;
}

/** Requests per second for paths outside the table: what most endpoints allow (service.md 8). */
const RAW_LIMIT_PER_SECOND = 10;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

function checkRaw(request: RawRequest<z.ZodType>, schema: unknown): void {
  const issues: ValidationIssue[] = [];
  if (!METHODS.includes(request.method))
    issues.push(issue('method', `to be one of ${METHODS.join(', ')}`, request.method));
  const { path } = request;
  const isPath =
    typeof path === 'string' && path.startsWith('/') && !path.startsWith('//') && !/[?#\\\s]/.test(path);
  if (!isPath) issues.push(issue('path', 'to be a path that starts with one "/" and has no query', path));
  else if (hasDotSegment(path)) issues.push(issue('path', 'to have no dot segments', path));
  const { query } = request;
  if (!isQuery(query ?? {}))
    issues.push(issue('query', 'to be an object of texts, numbers and booleans', query));
  const hasBody = request.body !== undefined;
  if (hasBody && (request.method === 'GET' || request.method === 'HEAD'))
    issues.push(issue('body', `to be left out of a ${request.method} request`, request.body));
  const { idempotent } = request;
  if (idempotent !== undefined && typeof idempotent !== 'boolean')
    issues.push(issue('idempotent', 'to be true or false', idempotent));
  // By shape: the schema may come from another copy of zod.
  if (typeof Object(schema).safeParse !== 'function')
    issues.push(issue('schema', 'to be a zod schema', schema));
  if (issues.length > 0) throw new RequestValidationError(issues);
}

/** What is read by iterating (URLSearchParams, a Map) has no fields, and would be sent as none. */
function isQuery(query: object): boolean {
  if (typeof query !== 'object' || Symbol.iterator in query) return false;
  return Object.values(query).every(
    (value) =>
      value === undefined || value === null || ['string', 'number', 'boolean'].includes(typeof value),
  );
}

/** The row that rules a raw path, so that it shares the bucket of the endpoint it really asks. */
function rowOf(method: string, path: string): EndpointName | undefined {
  return ENDPOINT_NAMES.filter((name) => endpoints[name].method === method).find((name) =>
    new RegExp(`^${endpoints[name].path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  );
}

export function prepareRawCall<T>(
  config: Config,
  request: RawRequest<z.ZodType<T>>,
  schema: z.ZodType<T>,
): PreparedCall<T> {
  checkRaw(request, schema);
  const name = rowOf(request.method, request.path);
  const row: Endpoint | undefined = name && endpoints[name];
  const isIdempotent = request.idempotent ?? (request.method === 'GET' || request.method === 'HEAD');
  const limit = name && config.limits[name];
  const path = row?.path ?? request.path;
  return {
    endpoint: name ?? 'request',
    method: request.method,
    path,
    title: `${request.method} ${config.baseUrl}${path}`,
    target: request.path + queryString(request.query ?? {}),
    body: request.body === undefined ? undefined : toJson(request.body, 'body'),
    limitPerSecond: limit ?? row?.limitPerSecond ?? RAW_LIMIT_PER_SECOND,
    maxLimitPerSecond: limit,
    timeoutClass: row?.timeoutClass ?? 'standard',
    retryClass: isIdempotent ? 'safe' : 'billed',
    response: { unwrap: (body) => ({ payload: body }), schema, mayBeEmpty: true, isOwnSchema: true },
  };
}
