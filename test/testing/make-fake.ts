import { expect } from 'vitest';
import type { EndpointName } from '../../src/endpoints.ts';
import type { ApiErrorItem } from '../../src/schemas/api-error.ts';
import type { BulkItem, BulkResult } from '../../src/schemas/bulk.ts';
import type { Courier } from '../../src/schemas/courier.ts';
import type { TrackingEvent } from '../../src/schemas/event.ts';
import type { Tracker } from '../../src/schemas/tracker.ts';
import type { Shipment, Statistics } from '../../src/schemas/tracking.ts';
import { createFakeTrackingService, type FakeTrackingServiceOptions } from '../../src/testing/index.ts';
import { findResponseBreaches } from '../contract/support/endpoints.ts';

export const NUMBER = 'RR123456785CN';
export const OTHER_NUMBER = 'LA680658838NL';
export const START_MS = Date.UTC(2026, 2, 10, 12);
export const DAY_MS = 86_400_000;

interface WireTracking {
  readonly tracker: Tracker;
  readonly shipment: Shipment;
  readonly events: readonly TrackingEvent[];
  readonly statistics: Statistics;
}

/** `data` of every endpoint at once; which part is there depends on the endpoint. */
interface WireData extends ReadonlyArray<BulkItem> {
  readonly tracker: Tracker;
  readonly trackers: readonly Tracker[];
  readonly trackings: readonly [WireTracking, ...WireTracking[]];
  readonly couriers: readonly Courier[];
  readonly summary: { readonly totalResent: number };
}

/** The body of every endpoint at once. */
export interface WireBody {
  readonly data: WireData;
  readonly errors?: readonly ApiErrorItem[];
  readonly error?: ApiErrorItem | null;
  readonly status?: string;
  readonly summary?: BulkResult['summary'];
  readonly metadata?: Record<string, unknown>;
  readonly webhooks?: readonly unknown[];
}

/** The response of a raw request. */
export interface WireResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: WireBody;
  readonly text: string;
}

/** A fake on a clock of its own, and raw HTTP requests to it. Each response must keep the contract. */
export function makeFake(options: FakeTrackingServiceOptions = {}) {
  const clock = { nowMs: START_MS };
  const fake = createFakeTrackingService({ now: () => clock.nowMs, limits: false, ...options });

  async function call(method: string, path: string, input?: unknown, more = {}): Promise<WireResponse> {
    const response = await fake.fetch(fake.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${fake.apiKey}`,
        ...(input !== undefined && { 'content-type': 'application/json' }),
        ...more,
      },
      ...(input === undefined ? {} : { body: typeof input === 'string' ? input : JSON.stringify(input) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    // A test that reads a field which its endpoint does not send fails, so the type needs no check.
    const body: WireBody = isJson ? JSON.parse(text) : {};
    const { status, headers } = response;
    expect(findResponseBreaches(method, path, { status, headers, body: isJson ? body : text })).toEqual([]);
    return { status, headers, body, text };
  }

  const create = (input: object = {}) => call('POST', '/trackers', { trackingNumber: NUMBER, ...input });
  const track = (input: object = {}) => call('POST', '/trackers/track', { trackingNumber: NUMBER, ...input });
  const createId = async (input: object = {}): Promise<string> =>
    (await create(input)).body.data.tracker.trackerId;
  const advance = (ms: number) => {
    clock.nowMs += ms;
  };
  return { fake, clock, call, create, createId, track, advance };
}

/** The first error code of a response, whichever envelope it has. */
export function readCode({ body }: WireResponse): string | undefined {
  return body.errors?.[0]?.code ?? body.error?.code;
}

/** Status and first error code of a response. */
export function refusal(response: WireResponse): [number, string | undefined] {
  return [response.status, readCode(response)];
}

/** One valid request for every endpoint, for tests that loop over the table. */
export const sampleCalls: Record<EndpointName, (trackerId: string) => [string, string, unknown?]> = {
  'trackers.create': () => ['POST', '/trackers', { trackingNumber: NUMBER }],
  'trackers.list': () => ['GET', '/trackers?page=1&limit=100'],
  'trackers.createBulk': () => ['POST', '/trackers/bulk', [{ trackingNumber: NUMBER }]],
  'trackers.track': () => ['POST', '/trackers/track', { trackingNumber: NUMBER }],
  'trackers.get': (id) => ['GET', `/trackers/${id}`],
  'trackers.update': (id) => ['PATCH', `/trackers/${id}`, { isSubscribed: true }],
  'trackers.resultsByTrackingNumber': () => ['GET', `/trackers/search/${NUMBER}/results`],
  'trackers.results': (id) => ['GET', `/trackers/${id}/results`],
  'trackers.resendWebhookEvents': (id) => ['POST', `/trackers/${id}/webhook-events/resend`],
  'trackers.webhookHistory': (id) => ['GET', `/trackers/${id}/webhook-history/download`],
  'tracking.search': () => ['POST', '/tracking/search', { trackingNumber: NUMBER }],
  'couriers.list': () => ['GET', '/couriers'],
};
