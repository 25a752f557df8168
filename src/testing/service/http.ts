// Specification: service.md 4, 7, 9; public contract, "Errors"
import { ENDPOINT_NAMES, type EndpointName, endpoints } from '../../endpoints.ts';
import type { ApiErrorItem } from '../../schemas/api-error.ts';

/** A request of any transport. */
export interface RawRequest {
  /** HTTP method. */
  readonly method: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  /** All headers, the key's included. */
  readonly headers: Headers;
  /** Text of the body; empty when there is none. */
  readonly body: string;
  /** Path of the base URL; when left out, it ends with the version segment. */
  readonly basePath?: string | undefined;
}

/** One response, before a transport turns it into bytes. */
export interface Reply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * What the transport has to do.
 * - `answer`: send a response
 * - `stall`: send the headers and half of the body, then nothing
 * - `reset`: break the connection
 * - `silence`: never respond
 */
export type Outcome =
  | { readonly kind: 'answer'; readonly reply: Reply }
  | { readonly kind: 'stall'; readonly reply: Reply }
  | { readonly kind: 'reset' }
  | { readonly kind: 'silence' };

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

/** JSON becomes its value, other text stays. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function jsonReply(status: number, body: unknown, headers: Reply['headers'] = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  };
}

/** The error body of an endpoint: the bulk endpoint has an envelope of its own. */
export function errorReply(
  endpoint: EndpointName | undefined,
  { status, errors }: Pick<ServiceError, 'status' | 'errors'>,
): Reply {
  if (endpoint !== 'trackers.createBulk') return jsonReply(status, { errors, data: null });
  return jsonReply(status, { status: 'error', summary: null, data: null, error: errors[0] ?? null });
}

const routes = ENDPOINT_NAMES.map((endpoint) => {
  const { method, path } = endpoints[endpoint];
  return { endpoint, method, pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) };
});

function belowBase(pathname: string, basePath: string | undefined): string {
  if (basePath === undefined) return /^.*?\/v\d+(\/.*)$/.exec(pathname)?.[1] ?? '';
  return pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : '';
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw rejection(400, 'parsing_error', 'The path is not valid percent-encoding.');
  }
}

/** Finds the endpoint of a request; a base path that is left out is everything up to the version segment, e.g. `/public/v1`. */
export function findRoute(method: string, pathname: string, basePath?: string) {
  const path = belowBase(pathname, basePath);
  const matches = routes.filter(({ pattern }) => pattern.test(path));
  const route = matches.find((candidate) => candidate.method === method);
  if (route === undefined) return { allowedMethods: [...new Set(matches.map((match) => match.method))] };
  const segments = Object.entries(route.pattern.exec(path)?.groups ?? {});
  return {
    endpoint: route.endpoint,
    params: Object.fromEntries(segments.map(([name, segment]) => [name, decoded(segment)])),
  };
}
