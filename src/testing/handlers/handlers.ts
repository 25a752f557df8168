import type { EndpointName } from '../../endpoints.ts';
import { createBulk } from './bulk.ts';
import type { Handler } from './handler.ts';
import { listCouriers, search } from './per-call.ts';
import { results, resultsByTrackingNumber, track } from './results.ts';
import { createTracker, getTracker, listTrackers, updateTracker } from './trackers.ts';
import { resendWebhookEvents, webhookHistory } from './webhook-events.ts';

/** One handler for every row of the endpoint table; a row without one does not compile. */
export const handlers = {
  'trackers.create': createTracker,
  'trackers.list': listTrackers,
  'trackers.createBulk': createBulk,
  'trackers.track': track,
  'trackers.get': getTracker,
  'trackers.update': updateTracker,
  'trackers.resultsByTrackingNumber': resultsByTrackingNumber,
  'trackers.results': results,
  'trackers.resendWebhookEvents': resendWebhookEvents,
  'trackers.webhookHistory': webhookHistory,
  'tracking.search': search,
  'couriers.list': listCouriers,
} satisfies { [Name in EndpointName]: Handler };
