import { readError } from '../common/foreign.ts';
import { describeThrown, kindOf } from '../common/messages.ts';
import { hasMethods } from '../common/option-schemas.ts';
import type { FetchFunction, FetchInit, FetchResponse } from '../options.ts';
import { readFetchFailure } from './fetch-failure.ts';
import { HEADER_NAMES } from './response-head.ts';

/** `fetch` returned something other than a response, or threw, as a stub may do. */
export class NoResponseError extends Error {
  /**
   * @param fetch - the option `fetch`
   * @param problem - what `fetch` did, such as "returned undefined"
   */
  constructor(fetch: FetchFunction | undefined, problem: string, options?: ErrorOptions) {
    super(
      fetch === undefined
        ? `the global \`fetch\` ${problem}; let whatever replaces it return a Response`
        : `the function of the option \`fetch\` ${problem}; correct that function`,
      options,
    );
  }
}

/** @throws TypeError if there is no `fetch`. The global one is read at each request, because a test may mock it later. */
export function checkFetch(fetch: FetchFunction | undefined): void {
  if (typeof (fetch ?? globalThis.fetch) !== 'function')
    throw new TypeError('this runtime has no global `fetch`; pass the option `fetch`');
}

/**
 * Calls `fetch` with a URL and plain options, because the `fetch` of another library cannot read a `Request` of this runtime. Ky
 * gets neither the signal nor the body: it follows a signal with `AbortSignal.any` and copies a body twice, which would cost more
 * processor time than everything else in a call.
 *
 * @param request - the request that ky made
 * @throws NoResponseError, and whatever `fetch` throws
 */
export async function callFetch(
  fetch: FetchFunction | undefined,
  { method, url, headers }: Request,
  { body, signal }: { readonly body: string | undefined; readonly signal: AbortSignal },
): Promise<FetchResponse> {
  const init: FetchInit = {
    method,
    headers: Object.fromEntries(headers),
    ...(body !== undefined && { body }),
    // No redirect is followed, because the key would travel with it (docs/service.md 1.7).
    redirect: 'manual',
    signal,
  };
  const response: FetchResponse = await (fetch ?? callGlobalFetch)(url, init);
  const problem = findProblem(response);
  if (problem !== undefined) throw new NoResponseError(fetch, `returned ${problem}`);
  return response;
}

/** A real `fetch` rejects and never throws, so an error that is thrown comes from a stub. */
function callGlobalFetch(url: string, init: FetchInit): Promise<FetchResponse> {
  try {
    return globalThis.fetch(url, init);
  } catch (cause) {
    // Some mocks throw if they do not expect the request. Their own words say more.
    if (readFetchFailure(cause, false, false).isPermanent) throw cause;
    throw new NoResponseError(undefined, `threw ${describeThrown(cause)}`, { cause });
  }
}

/** Names what a stub of `fetch` returned, if it is not a response. */
function findProblem(response: unknown): string | undefined {
  if (typeof response !== 'object' || response === null) return `${kindOf(response)} instead of a response`;
  try {
    const { status, headers, body, text }: Partial<Record<keyof FetchResponse, unknown>> = response;
    // A mock that returns one response for all calls: its body was read by the first call.
    if (Reflect.get(response, 'bodyUsed') === true || Reflect.get(Object(body), 'locked') === true)
      return 'a response whose body was read before; return a new response for each call';
    if (status === undefined) return 'an object without `status`';
    if (!Number.isInteger(status)) return `a response whose \`status\` is ${kindOf(status)}`;
    const isReadable = typeof text === 'function' || isStream(body);
    if (!isReadable) return 'a response without a `text` function and without a stream as `body`';
    return findHeaderProblem(headers);
  } catch (error) {
    return `a response that cannot be read: ${readError(error)?.message ?? kindOf(error)}`;
  }
}

function findHeaderProblem(headers: unknown): string | undefined {
  if (!hasGet(headers)) return 'a response whose `headers` have no `get`';
  for (const name of HEADER_NAMES) {
    const value = headers.get(name);
    // Some stubs return undefined for a header that is missing.
    if (typeof value !== 'string' && value !== null && value !== undefined)
      return `a response whose header \`${name}\` is ${kindOf(value)}`;
  }
  return undefined;
}

function hasGet(headers: unknown): headers is { get(name: string): unknown } {
  return hasMethods(headers, 'get');
}

export function isStream(body: unknown): body is ReadableStream<Uint8Array> {
  return hasMethods(body, 'getReader');
}
