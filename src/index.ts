/**
 * The client of the service, the schemas and types of the service's records, the errors, and the limiter, which stays within the
 * rate limits of the service.
 * @module tracking-client
 */

export type { BulkCreation, BulkSummary, CreateManyOptions } from './bulk/create-many.ts';
export type { BulkOutcome } from './bulk/outcomes.ts';
export { TrackingClient } from './client.ts';
export { buildEventKey } from './common/event-keys.ts';
export type { ValidationIssue } from './common/parsing.ts';
export type { CheckCouriersOptions, CourierCheck, CourierProblem } from './couriers/check.ts';
export type { FindCouriersOptions } from './couriers/find.ts';
export type { EndpointName } from './endpoints.ts';
export {
  ApiError,
  AuthenticationError,
  ConfigurationError,
  ConflictError,
  ConnectionError,
  InvalidRequestError,
  isTrackingError,
  NoActiveSubscriptionError,
  NotFoundError,
  PermissionDeniedError,
  QueueFullError,
  QuotaExceededError,
  RateLimitError,
  RequestValidationError,
  ResponseValidationError,
  ResultsNotReadyError,
  ServerError,
  ShippingDateOutdatedError,
  TimeoutError,
  TrackingError,
} from './errors.ts';
export { advanceStatus, type ShipmentStatus, type StatusAdvance, type StatusNews } from './events/advance.ts';
export { type DeliveryEstimate, deliveryEstimate, type ShipmentWithEstimates } from './events/estimate.ts';
export {
  isNewerEvent,
  latestEvent,
  type OccurrenceDatetime,
  parseOccurrenceDatetime,
  sortEvents,
} from './events/order.ts';
export {
  type KnownStatusCategory,
  type KnownStatusCode,
  type KnownStatusMilestone,
  STATUS_CATEGORIES,
  STATUS_CODES,
  STATUS_MILESTONES,
} from './events/statuses.ts';
export { courierOf, daysInTransit, type TrackingParts } from './events/transit.ts';
export { describeMilestone, MILESTONE_WORDS } from './events/words.ts';
export type { ApiPromise, WithResponse } from './http/api-promise.ts';
export type { RawRequest } from './http/prepare.ts';
export type { BucketSnapshot, LimiterOptions, RateLimitInfo } from './limiter/limiter.ts';
export { TokenBucketLimiter } from './limiter/token-bucket.ts';
export type { AttemptInfo, Hooks } from './observability/hooks.ts';
export type { Logger, LogLevel } from './observability/logger.ts';
export type {
  BulkRequestOptions,
  RequestOptions,
  RetryOptions,
  TrackerRequestOptions,
  TrackingClientOptions,
} from './options.ts';
export type { PollManyUpdate, TrackerPolls } from './polling/poll-many.ts';
export type { PollUpdate } from './polling/poll-once.ts';
export type {
  PollContext,
  PollManyOptions,
  PollOnceOptions,
  PollOptions,
  ResultsManyOptions,
  TrackerToPoll,
} from './polling/poll-options.ts';
export type { ResultsManyItem } from './polling/results-many.ts';
export type { CouriersResource, TrackersResource, TrackingResource } from './resources.ts';
export type { ApiErrorItem, ErrorCode, KnownErrorCode } from './schemas/api-error.ts';
export { type BulkItem, type BulkResult, bulkResultSchema } from './schemas/bulk.ts';
export { type Courier, courierSchema } from './schemas/courier.ts';
export {
  eventSchema,
  type StatusCategory,
  type StatusCode,
  type StatusMilestone,
  type TrackingEvent,
} from './schemas/event.ts';
export {
  type Tracker,
  type TrackerInput,
  type TrackerListQuery,
  type TrackerPage,
  type TrackerUpdate,
  type TrackingSearchInput,
  trackerInputSchema,
  trackerSchema,
  trackerUpdateSchema,
  trackingSearchInputSchema,
} from './schemas/tracker.ts';
export {
  type PerCallTracking,
  perCallTrackingSchema,
  type Recipient,
  type Shipment,
  type ShipmentDelivery,
  type Statistics,
  shipmentSchema,
  type Tracking,
  trackingSchema,
} from './schemas/tracking.ts';
export {
  type ResendResult,
  type WebhookHistory,
  type WebhookPush,
  webhookHistorySchema,
} from './schemas/webhook.ts';
export { VERSION } from './version.ts';
