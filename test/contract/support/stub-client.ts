import { TrackingClient, type TrackingClientOptions } from 'tracking-client';

/** What the stubbed service answers; without `body` the answer is empty, a string is sent as it is. */
export interface StubAnswer {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that the stub saw. */
export interface StubRequest {
  readonly method: string;
  /** Below the base URL, without its query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** When it was sent, in milliseconds. */
  readonly atMs: number;
}

/** Answers every request of one client. */
export type StubService = (request: StubRequest) => StubAnswer;

const BASE_URL = 'https://api.example.test/public/v1';

function toResponse({ status = 200, body, headers = {} }: StubAnswer): Response {
  if (body === undefined) return new Response(null, { status, headers });
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } });
}

/** A client of a service that is written down in the test alone, so that its truth is the contract's and not the fake's. */
export function stubClient(service: StubAnswer | StubService, options: TrackingClientOptions = {}) {
  const requests: StubRequest[] = [];
  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const sent = new Request(input, init);
    const url = new URL(sent.url);
    const text = await sent.text();
    const request = {
      method: sent.method,
      path: decodeURIComponent(url.pathname.slice(new URL(BASE_URL).pathname.length)),
      query: Object.fromEntries(url.searchParams),
      body: text === '' ? undefined : JSON.parse(text),
      atMs: performance.now(),
    };
    requests.push(request);
    return toResponse(typeof service === 'function' ? service(request) : service);
  };
  const client = new TrackingClient({
    baseUrl: BASE_URL,
    apiKey: 'sk-live-0123456789abcdef',
    fetch,
    rateLimit: false,
    retry: false,
    logLevel: 'silent',
    ...options,
  });
  return { client, requests };
}

/** The rejection of a promise; one that resolves fails the test. */
export async function rejectionOf(promise: PromiseLike<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`Expected a rejection, got ${JSON.stringify(value)}`);
}

/** What a stream has given so far, read in the background. */
export function readInBackground<T>(stream: AsyncIterable<T>) {
  const reading: { items: T[]; hasEnded: boolean; error: unknown } = {
    items: [],
    hasEnded: false,
    error: undefined,
  };
  const run = async () => {
    for await (const item of stream) reading.items.push(item);
  };
  run()
    .catch((error: unknown) => {
      reading.error = error;
    })
    .finally(() => {
      reading.hasEnded = true;
    });
  return reading;
}

/** How a promise stands, without waiting for it. */
export function watch<T>(promise: PromiseLike<T>) {
  const watched: { state: 'pending' | 'resolved' | 'rejected'; value: unknown } = {
    state: 'pending',
    value: undefined,
  };
  promise.then(
    (value) => Object.assign(watched, { state: 'resolved', value }),
    (error: unknown) => Object.assign(watched, { state: 'rejected', value: error }),
  );
  return watched;
}
