import type { TrackingClient } from '../../src/client.ts';
import { ENDPOINT_NAMES, type EndpointName } from '../../src/endpoints.ts';
import type { RequestOptions } from '../../src/options.ts';
import {
  BULK_SUCCESS,
  COURIER,
  HISTORY,
  PER_CALL_TRACKING,
  TRACKER,
  TRACKING,
} from '../contract/support/samples.ts';

/** How to call one endpoint, with its request, its response and its result. */
export interface SampleCall {
  readonly call: (client: TrackingClient, options?: RequestOptions) => PromiseLike<unknown>;
  readonly method: string;
  readonly target: string;
  readonly sentBody?: unknown;
  readonly response: unknown;
  readonly result: unknown;
}

const input = { trackingNumber: 'LA680658838NL' };

/** A working call of every endpoint of the table. */
export const CALLS: Record<EndpointName, SampleCall> = {
  'trackers.create': {
    call: (client, options) => client.trackers.create(input, options),
    method: 'POST',
    target: '/trackers',
    sentBody: input,
    response: { data: { tracker: TRACKER } },
    result: TRACKER,
  },
  'trackers.list': {
    call: (client, options) => client.trackers.list({}, options),
    method: 'GET',
    target: '/trackers?page=1&limit=100',
    response: { data: { trackers: [TRACKER] } },
    result: { trackers: [TRACKER], page: 1, limit: 100, hasMore: false },
  },
  'trackers.createBulk': {
    call: (client, options) => client.trackers.createBulk([input], options),
    method: 'POST',
    target: '/trackers/bulk',
    sentBody: [input],
    response: BULK_SUCCESS,
    result: BULK_SUCCESS,
  },
  'trackers.track': {
    call: (client, options) => client.trackers.track(input, options),
    method: 'POST',
    target: '/trackers/track',
    sentBody: input,
    response: { data: { trackings: [TRACKING] } },
    result: TRACKING,
  },
  'trackers.get': {
    call: (client, options) => client.trackers.get('tracker-1', options),
    method: 'GET',
    target: '/trackers/tracker-1',
    response: { data: { tracker: TRACKER } },
    result: TRACKER,
  },
  'trackers.update': {
    call: (client, options) => client.trackers.update('tracker-1', { isSubscribed: false }, options),
    method: 'PATCH',
    target: '/trackers/tracker-1',
    sentBody: { isSubscribed: false },
    response: { data: { tracker: TRACKER } },
    result: TRACKER,
  },
  'trackers.resultsByTrackingNumber': {
    call: (client, options) => client.trackers.resultsByTrackingNumber('LA680658838NL', options),
    method: 'GET',
    target: '/trackers/search/LA680658838NL/results',
    response: { data: { trackings: [TRACKING, TRACKING] } },
    result: [TRACKING, TRACKING],
  },
  'trackers.results': {
    call: (client, options) => client.trackers.results('tracker-1', options),
    method: 'GET',
    target: '/trackers/tracker-1/results',
    response: { data: { trackings: [TRACKING] } },
    result: TRACKING,
  },
  'trackers.resendWebhookEvents': {
    call: (client, options) => client.trackers.resendWebhookEvents('tracker-1', options),
    method: 'POST',
    target: '/trackers/tracker-1/webhook-events/resend',
    response: { data: { summary: { totalResent: 3 } } },
    result: { totalResent: 3 },
  },
  'trackers.webhookHistory': {
    call: (client, options) => client.trackers.webhookHistory('tracker-1', options),
    method: 'GET',
    target: '/trackers/tracker-1/webhook-history/download',
    response: HISTORY,
    result: HISTORY,
  },
  'tracking.search': {
    call: (client, options) => client.tracking.search(input, options),
    method: 'POST',
    target: '/tracking/search',
    sentBody: input,
    response: { data: { trackings: [PER_CALL_TRACKING] } },
    result: [PER_CALL_TRACKING],
  },
  'couriers.list': {
    call: (client, options) => client.couriers.list(options),
    method: 'GET',
    target: '/couriers',
    response: { data: { couriers: [COURIER] } },
    result: [COURIER],
  },
};

/** Every row, for `test.each`. */
export const EVERY_CALL: readonly (readonly [EndpointName, SampleCall])[] = ENDPOINT_NAMES.map(
  (name) => [name, CALLS[name]] as const,
);
