import type { Outcome, RawRequest, Reply } from '../service/http.ts';

/** Statuses whose answers carry no body, and for which `Response` refuses one. */
const BODILESS_STATUSES = new Set([204, 205, 304]);

/** Runs a request of the Fetch API, and rejects as `fetch` does when the connection fails. */
export type FetchLike = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Reads a Fetch API request into the form that the service takes. */
export async function toRawRequest(request: Request, basePath?: string): Promise<RawRequest> {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method,
    target: pathname + search,
    headers: request.headers,
    body: await request.text(),
    basePath,
  };
}

/** The error that `fetch` of Node rejects with when the other side breaks the connection. */
function connectionReset(): TypeError {
  const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
  return new TypeError('fetch failed', { cause });
}

function onAbort(signal: AbortSignal | undefined, run: (reason: unknown) => void): void {
  if (signal === undefined) return;
  if (signal.aborted) run(signal.reason);
  else signal.addEventListener('abort', () => run(signal.reason), { once: true });
}

/** The headers and half of the body, then nothing until the caller gives up. */
export function toStalledResponse(
  { status, headers, body }: Reply,
  signal: AbortSignal | undefined,
): Response {
  const bytes = new TextEncoder().encode(body);
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.subarray(0, Math.ceil(bytes.length / 2)));
      // One step later: a transport that ends the stream by itself on abort must come first, and then this does nothing.
      onAbort(signal, (reason) => void Promise.resolve().then(() => controller.error(reason)));
    },
  });
  // The length tells a parser that the body is not over; MSW 3 takes the end of the connection for its end otherwise.
  return new Response(stream, { status, headers: { ...headers, 'content-length': String(bytes.length) } });
}

/** The answer as a `Response`. */
export function toResponse({ status, headers, body }: Reply): Response {
  return new Response(BODILESS_STATUSES.has(status) ? null : body, { status, headers });
}

function settle(outcome: Outcome, signal: AbortSignal | undefined): Response | Promise<never> {
  switch (outcome.kind) {
    case 'answer':
      return toResponse(outcome.reply);
    case 'stall':
      return toStalledResponse(outcome.reply, signal);
    case 'reset':
      throw connectionReset();
    case 'silence':
      return new Promise(() => {});
  }
}

/**
 * Makes a `fetch` that goes straight into the service.
 *
 * @param ownBasePath - path of the fake's base URL; under any other base the path ends with the version segment
 */
export function createFetch(serve: (raw: RawRequest) => Promise<Outcome>, ownBasePath: string): FetchLike {
  return async (input, init) => {
    const request = new Request(input, init);
    // Not `request.signal`: it follows the caller's signal only as long as the garbage collector lets it.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => onAbort(signal, reject));
    const isOwnBase = new URL(request.url).pathname.startsWith(`${ownBasePath}/`);
    const answered = toRawRequest(request, isOwnBase ? ownBasePath : undefined)
      .then(serve)
      .then((outcome) => settle(outcome, signal));
    return Promise.race([answered, aborted]);
  };
}
