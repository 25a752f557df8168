import { ENDPOINT_NAMES, type EndpointName, endpoints } from '../../endpoints.ts';
import { ServiceError } from './replies.ts';

/** An endpoint of the table together with the values of its path. */
export interface Route {
  readonly endpoint: EndpointName;
  readonly params: Readonly<Record<string, string>>;
}

const VERSION_SEGMENT = /^v\d+$/;

/** Literal segments before parameters, so `/trackers/bulk` is not taken for a tracker id. */
const routes = ENDPOINT_NAMES.map((endpoint) => ({
  endpoint,
  method: endpoints[endpoint].method,
  segments: endpoints[endpoint].path.split('/').slice(1),
})).sort((one, other) => countParams(one.segments) - countParams(other.segments));

function countParams(segments: readonly string[]): number {
  return segments.filter((segment) => segment.startsWith('{')).length;
}

/** Splits a path below the base; without a given base it ends with the version segment (service.md 9). */
function segmentsBelowBase(pathname: string, basePath: string | undefined): string[] | undefined {
  const segments = pathname.split('/').slice(1);
  if (basePath === undefined) {
    const version = segments.findIndex((segment) => VERSION_SEGMENT.test(segment));
    return version === -1 ? undefined : segments.slice(version + 1);
  }
  const base = basePath.split('/').filter((segment) => segment !== '');
  return base.every((segment, index) => segments[index] === segment)
    ? segments.slice(base.length)
    : undefined;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ServiceError(400, {
      code: 'parsing_error',
      message: 'The path is not valid percent-encoding.',
    });
  }
}

function match(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const segment = segments[index] ?? '';
    if (!part.startsWith('{')) {
      if (part !== segment) return undefined;
    } else if (segment === '') {
      return undefined;
    } else {
      params[part.slice(1, -1)] = decoded(segment);
    }
  }
  return params;
}

/** Why no endpoint answers a request: nothing is there, or only for other methods. */
export interface NoRoute {
  readonly allowedMethods: readonly string[];
}

/**
 * Finds the endpoint of a request.
 *
 * @param basePath - path of the base URL; when left out, everything up to the version segment, e.g. `/public/v1`
 * @throws ServiceError (400) when the path is not valid percent-encoding
 */
export function findRoute(method: string, pathname: string, basePath?: string): Route | NoRoute {
  const segments = segmentsBelowBase(pathname, basePath);
  if (segments === undefined) return { allowedMethods: [] };
  const matches = routes.flatMap((route) => {
    const params = match(route.segments, segments);
    return params === undefined ? [] : [{ route, params }];
  });
  const found = matches.find(({ route }) => route.method === method);
  if (found !== undefined) return { endpoint: found.route.endpoint, params: found.params };
  return { allowedMethods: [...new Set(matches.map(({ route }) => route.method))] };
}
