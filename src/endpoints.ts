import * as z from 'zod';
import { bulkInputSchema, bulkResultSchema } from './schemas/bulk.ts';
import { courierSchema } from './schemas/courier.ts';
import { listOf } from './schemas/record.ts';
import {
  searchBySchema,
  trackerIdentifier,
  trackerInputSchema,
  trackerListQuerySchema,
  trackerSchema,
  trackerUpdateSchema,
  trackingNumberIdentifier,
  trackingSearchInputSchema,
} from './schemas/tracker.ts';
import { perCallTrackingListSchema, trackingListSchema, trackingSchema } from './schemas/tracking.ts';
import {
  bulkBody,
  firstInData,
  inData,
  recordInData,
  resendSummary,
  type Unwrap,
  wholeBody,
} from './schemas/unwrap.ts';
import { resendResultSchema, webhookHistorySchema } from './schemas/webhook.ts';

/**
 * Tells which failed requests may be sent again:
 * - `safe`: a retry changes nothing, or the service reuses what exists (docs/service.md 4.1, 4.2)
 * - `bulk`: a request that may have created some items is retried only with `retryAmbiguous` (docs/service.md 4.5)
 * - `unsafe`: each request is paid for or pushes webhooks, so it is retried only after a 429 of the rate limit, or if it was never
 *   sent (docs/service.md 1.2, 8.8)
 */
export type RetryClass = 'safe' | 'bulk' | 'unsafe';

/**
 * The time limit of one attempt. A `synchronous` endpoint asks couriers before it responds, so its limit is longer
 * (docs/service.md 6.4).
 */
export type TimeoutClass = 'standard' | 'synchronous';

export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Path below the base URL; `{name}` stands for an entry of `params`. */
  readonly path: `/${string}`;
  /** Requests that the service allows in a window of one second (docs/service.md 6.1). */
  readonly limitPerSecond: number;
  readonly timeoutClass: TimeoutClass;
  readonly retryClass: RetryClass;
  /** The parts of the request that are checked before sending. */
  readonly request: {
    /** Values of the `{name}`s of the path. */
    readonly params?: z.ZodType<Record<string, string>>;
    readonly query?: z.ZodType<Record<string, string | number | undefined>>;
    readonly body?: z.ZodType;
  };
  readonly response: {
    /** Takes the payload out of the body. */
    readonly unwrap: Unwrap;
    /** Checks the payload; its output is the result. */
    readonly schema: z.ZodType;
    /**
     * HTTP statuses outside 2xx with which a bulk request can still have a result. The body is a result if its field `status` is
     * `success`, `partial` or `error` (docs/service.md 7.2).
     */
    readonly resultStatuses?: readonly number[];
    /**
     * True if the body of a 2xx may be empty or any JSON (docs/service.md 8.12). Everything else comes from another server, such as
     * the login page of a proxy. A body that breaks off cannot be judged, so the status decides; of a body that is too long, the
     * beginning is judged.
     */
    readonly isStatusEnough?: boolean;
  };
  /** One line for the documentation. */
  readonly summary: string;
}

const trackerParams = z.object({ trackerId: trackerIdentifier });
const searchBy = z.object({ searchBy: searchBySchema.optional() });
const TRACKING_FIELDS = Object.keys(trackingSchema.shape);

/** All facts about the endpoints; client, limiter, retry policy, fake service and documentation are derived from this table. */
export const endpoints = {
  'trackers.create': {
    method: 'POST',
    path: '/trackers',
    limitPerSecond: 10,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: { body: trackerInputSchema },
    response: { unwrap: recordInData('tracker', 'trackerId'), schema: trackerSchema },
    summary: 'Creates a tracker, or returns the tracker with the same data.',
  },
  'trackers.list': {
    method: 'GET',
    path: '/trackers',
    limitPerSecond: 10,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: { query: trackerListQuerySchema },
    response: { unwrap: inData('trackers'), schema: listOf(trackerSchema) },
    summary: 'Lists one page of trackers.',
  },
  'trackers.createBulk': {
    method: 'POST',
    path: '/trackers/bulk',
    limitPerSecond: 3,
    timeoutClass: 'standard',
    retryClass: 'bulk',
    request: { body: bulkInputSchema },
    response: { unwrap: bulkBody, schema: bulkResultSchema, resultStatuses: [400, 403] },
    summary: 'Creates 1 to 100 trackers.',
  },
  'trackers.track': {
    method: 'POST',
    path: '/trackers/track',
    limitPerSecond: 10,
    timeoutClass: 'synchronous',
    retryClass: 'safe',
    request: { body: trackerInputSchema },
    response: { unwrap: firstInData('trackings', TRACKING_FIELDS), schema: trackingSchema },
    summary: 'Creates a tracker and gets its results, in up to a minute.',
  },
  'trackers.get': {
    method: 'GET',
    path: '/trackers/{trackerId}',
    limitPerSecond: 10,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: { params: trackerParams, query: searchBy },
    response: { unwrap: recordInData('tracker', 'trackerId'), schema: trackerSchema },
    summary: 'Gets one tracker.',
  },
  'trackers.update': {
    method: 'PATCH',
    path: '/trackers/{trackerId}',
    limitPerSecond: 10,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: { params: trackerParams, query: searchBy, body: trackerUpdateSchema },
    response: { unwrap: recordInData('tracker', 'trackerId'), schema: trackerSchema },
    summary: 'Changes a tracker; `isSubscribed: false` stops tracking.',
  },
  'trackers.resultsByTrackingNumber': {
    method: 'GET',
    path: '/trackers/search/{trackingNumber}/results',
    limitPerSecond: 10,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: { params: z.object({ trackingNumber: trackingNumberIdentifier }) },
    response: { unwrap: inData('trackings'), schema: trackingListSchema },
    summary: 'Gets the results of all trackers with this number.',
  },
  'trackers.results': {
    method: 'GET',
    path: '/trackers/{trackerId}/results',
    limitPerSecond: 10,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: { params: trackerParams, query: searchBy },
    response: { unwrap: firstInData('trackings', TRACKING_FIELDS), schema: trackingSchema },
    summary: 'Gets the results of one tracker with all events.',
  },
  'trackers.resendWebhookEvents': {
    method: 'POST',
    path: '/trackers/{trackerId}/webhook-events/resend',
    limitPerSecond: 1,
    timeoutClass: 'standard',
    retryClass: 'unsafe',
    request: { params: trackerParams, query: searchBy },
    response: { unwrap: resendSummary, schema: resendResultSchema, isStatusEnough: true },
    summary: 'Asks the service to send the webhooks of a tracker again.',
  },
  'trackers.webhookHistory': {
    method: 'GET',
    path: '/trackers/{trackerId}/webhook-history/download',
    limitPerSecond: 1,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: { params: trackerParams, query: searchBy },
    response: { unwrap: wholeBody, schema: webhookHistorySchema },
    summary: 'Downloads the webhooks that were sent for a tracker.',
  },
  'tracking.search': {
    method: 'POST',
    path: '/tracking/search',
    limitPerSecond: 10,
    timeoutClass: 'synchronous',
    retryClass: 'unsafe',
    request: { body: trackingSearchInputSchema },
    response: { unwrap: inData('trackings'), schema: perCallTrackingListSchema },
    summary: 'Looks up a number without a tracker (per-call plan).',
  },
  'couriers.list': {
    method: 'GET',
    path: '/couriers',
    limitPerSecond: 1,
    timeoutClass: 'standard',
    retryClass: 'safe',
    request: {},
    response: { unwrap: inData('couriers'), schema: listOf(courierSchema) },
    summary: 'Lists the couriers and their codes.',
  },
} as const satisfies Record<string, Endpoint>;

function readNames<Name extends string>(table: Readonly<Record<Name, Endpoint>>): readonly Name[] {
  // Safe cast: the keys of a `const` object literal are exactly its `keyof`.
  return Object.keys(table) as Name[];
}

/** Every endpoint name, in the order of the table. */
export const ENDPOINT_NAMES = readNames(endpoints);

/** The name of an endpoint, which is also the name of its method on the client, e.g. `trackers.get`. */
// The type is derived from `ENDPOINT_NAMES`, so that the generated `.d.ts` contains twelve names instead of the whole table.
export type EndpointName = (typeof ENDPOINT_NAMES)[number];

/** The method and the path pattern of each endpoint; the named groups of a pattern are the values in the path. */
export const ROUTES = ENDPOINT_NAMES.map((endpoint) => {
  const { method, path } = endpoints[endpoint];
  return { endpoint, method, pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) };
});
