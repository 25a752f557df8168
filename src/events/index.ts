/**
 * Orders events, lists and describes the known statuses, and reads facts from results and webhooks, without zod and without modules of
 * Node, so it also runs in browsers.
 *
 * @module tracking-client/events
 */

export { advanceStatus, type ShipmentStatus, type StatusAdvance, type StatusNews } from './advance.ts';
export { type DeliveryEstimate, deliveryEstimate, type ShipmentWithEstimates } from './estimate.ts';
export {
  isNewerEvent,
  latestEvent,
  type OccurrenceDatetime,
  parseOccurrenceDatetime,
  sortEvents,
} from './order.ts';
export { STATUS_CATEGORIES, STATUS_CODES, STATUS_MILESTONES } from './statuses.ts';
export { courierOf, daysInTransit, type TrackingParts } from './transit.ts';
export { describeMilestone, MILESTONE_WORDS } from './words.ts';
