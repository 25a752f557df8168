import { kindOf } from '../common/validation.ts';
import type { FetchFunction, FetchInit, FetchResponse } from '../options.ts';

/** `fetch` returned something else than a response. */
export class NoResponseError extends Error {}

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
  // Read the global `fetch` at each request, because a test may mock it later.
  const response: FetchResponse = await (fetch ?? globalThis.fetch)(url, init);
  const problem = findProblem(response);
  if (problem === undefined) return response;
  throw new NoResponseError(
    fetch === undefined
      ? `the global \`fetch\` returned ${problem}; let whatever replaces it return a Response`
      : `the function of the option \`fetch\` returned ${problem}; correct that function`,
  );
}

/** Names what a stub of `fetch` returned, if it is not a response. */
function findProblem(response: unknown): string | undefined {
  if (typeof response !== 'object' || response === null) return `${kindOf(response)} instead of a response`;
  const { status, headers, body, text }: Partial<Record<keyof FetchResponse, unknown>> = response;
  if (typeof status !== 'number') return 'an object without `status`';
  if (typeof Object(headers).get !== 'function') return 'a response whose `headers` have no `get`';
  const isReadable = typeof text === 'function' || typeof Object(body).getReader === 'function';
  return isReadable ? undefined : 'a response without a `text` function and without a stream as `body`';
}
