import { TrackingClient, type TrackingClientOptions } from 'tracking-client';
import { createFakeTrackingService, type FakeTrackingServiceOptions } from 'tracking-client/testing';
import { onTestFinished, vi } from 'vitest';
import { collectBreaches } from './breaches.ts';
import { answerBreaches } from './endpoints.ts';

export const NUMBER = 'RR123456785CN';
export const OTHER_NUMBER = 'LA680658838NL';
export const START_MS = Date.UTC(2026, 2, 10, 12);
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Rules every clock of the test: nothing here sleeps. */
function virtualTime(): void {
  vi.useFakeTimers({ now: START_MS });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

/** Lets virtual time pass, with all that was due in it. */
export async function advance(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return isJson ? JSON.parse(text) : text;
}

/**
 * A fake in virtual time, and two ways to speak to it: a client, and raw requests. Whatever it answers to either is held
 * against the contract's schemas; one breach fails the test.
 */
export function contractFake(
  options: FakeTrackingServiceOptions = {},
  clientOptions: TrackingClientOptions = {},
) {
  virtualTime();
  const fake = createFakeTrackingService({ limits: false, ...options });
  const breaches = collectBreaches();

  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const response = await fake.fetch(request);
    const path = new URL(request.url).pathname.slice(new URL(fake.baseUrl).pathname.length);
    const body = await bodyOf(response.clone());
    breaches.push(...answerBreaches(request.method, path, response.status, body));
    return response;
  };

  /** One raw request; a body is sent as JSON. */
  async function call(
    method: string,
    path: string,
    body?: unknown,
    headers: HeadersInit = {},
  ): Promise<RawAnswer> {
    const sent = new Headers({ authorization: `Bearer ${fake.apiKey}` });
    if (body !== undefined) sent.set('content-type', 'application/json');
    for (const [name, value] of new Headers(headers)) sent.set(name, value);
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(fake.baseUrl + path, { method, headers: sent, ...init });
    return { status: response.status, headers: response.headers, body: await bodyOf(response) };
  }

  const client = new TrackingClient({
    baseUrl: fake.baseUrl,
    apiKey: fake.apiKey,
    fetch,
    rateLimit: false,
    retry: false,
    logLevel: 'silent',
    ...clientOptions,
  });

  /** A tracker that has been fetched: what its shipment says from now on shows at once. */
  async function createFetched(input: object = {}): Promise<string> {
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER, ...input });
    await advance(10_000);
    return trackerId;
  }

  return { fake, client, call, createFetched };
}
