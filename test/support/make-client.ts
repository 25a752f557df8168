import { TrackingClient } from '../../src/client.ts';
import type { TrackingClientOptions } from '../../src/options.ts';

export const BASE_URL = 'https://api.example.test/public/v1';
export const API_KEY = 'sk-live-0123456789abcdef';

/** A response of the stubbed service; an object is sent as JSON, a string unchanged. */
export interface StubResponse {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** One step of the script: a response, a failure of `fetch`, or a function that makes either. */
export type Step = StubResponse | Error | ((request: Request) => Promise<Response> | Response);

/** A request as the stub saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  /** Path and query below the base URL. */
  readonly target: string;
  readonly headers: Headers;
  readonly body: string;
}

export function toResponse({ status = 200, body, headers = {} }: StubResponse): Response {
  const type: Record<string, string> = { 'content-type': 'application/json' };
  if (body === undefined) return new Response(null, { status, headers });
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return new Response(text, { status, headers: { ...type, ...headers } });
}

/** A failure as Node's `fetch` reports it: the reason is the cause. */
export function networkFailure(code: string): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(`socket: ${code}`), { code }) });
}

/**
 * A client whose `fetch` follows a script; the last step repeats. No limiter, no waits between attempts and no log
 * lines unless the options say otherwise.
 */
export function makeClient(script: Step | readonly Step[] = {}, options: TrackingClientOptions = {}) {
  const steps: Step[] = Array.isArray(script) ? [...script] : [script as Step];
  const requests: SeenRequest[] = [];

  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const { method, url, headers } = request;
    requests.push({
      method,
      url,
      target: url.slice(BASE_URL.length),
      headers,
      body: await request.clone().text(),
    });
    const step = steps.length > 1 ? steps.shift() : steps[0];
    if (step instanceof Error) throw step;
    return typeof step === 'function' ? await step(request) : toResponse(step ?? {});
  };

  const client = new TrackingClient({
    baseUrl: BASE_URL,
    apiKey: API_KEY,
    fetch,
    rateLimit: false,
    logLevel: 'silent',
    ...options,
  });
  return { client, requests, fetch };
}

/** Returns the rejection reason of a promise; a promise that resolves fails the test. */
export async function catchRejection(promise: PromiseLike<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`Expected a rejection, got ${JSON.stringify(value)}`);
}
