/**
 * The client: create trackers, read and poll their results, look couriers up. Beside it the schemas and types of all
 * records, the errors, and the limiter that keeps to the service's allowance.
 *
 * @module tracking-client
 */

export { TrackingClient } from './client.ts';
export type { ValidationIssue } from './common/validation.ts';
export type { EndpointName } from './endpoints.ts';
export {
  ApiError,
  type ApiErrorDetails,
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
  type TimeoutPhase,
  TrackingError,
  WebhookAuthenticationError,
  WebhookParseError,
} from './errors.ts';
export { type OccurrenceDatetime, parseOccurrenceDatetime } from './events/occurrence-datetime.ts';
export { isNewerEvent, latestEvent, type OrderableEvent, sortEvents } from './events/order.ts';
export { ApiPromise, type RateLimitInfo, type WithResponse } from './http/api-promise.ts';
export type { RawRequest } from './http/prepare.ts';
export {
  type AcquireOptions,
  type BucketId,
  type BucketSnapshot,
  type Limiter,
  LongPauseError,
  type Permit,
  type Priority,
  type RateLimitFeedback,
} from './limiter/limiter.ts';
export { TokenBucketLimiter, type TokenBucketLimiterOptions } from './limiter/token-bucket.ts';
export type {
  AttemptInfo,
  CallInfo,
  DoneInfo,
  ErrorInfo,
  Hooks,
  MismatchInfo,
  PollInfo,
  RateLimitedInfo,
  RequestInfo,
  ResponseInfo,
  RetryInfo,
} from './observability/hooks.ts';
export type { Logger, LogLevel } from './observability/logger.ts';
export type {
  BulkRequestOptions,
  RateLimitOptions,
  RequestOptions,
  RetryOptions,
  TrackerRequestOptions,
  TrackingClientOptions,
} from './options.ts';
export {
  type ApiErrorItem,
  type ErrorCode,
  KNOWN_ERROR_CODES,
  type KnownErrorCode,
} from './schemas/api-error.ts';
export {
  type BulkInputData,
  type BulkItem,
  type BulkResult,
  bulkResultSchema,
  MAX_BULK_ITEMS,
} from './schemas/bulk.ts';
export {
  COURIER_REQUIRED_FIELDS,
  type Courier,
  type CourierCodes,
  courierSchema,
} from './schemas/courier.ts';
export {
  eventSchema,
  STATUS_CATEGORIES,
  STATUS_CODES,
  STATUS_MILESTONES,
  type StatusCategory,
  type StatusCode,
  type StatusMilestone,
  type TrackingEvent,
} from './schemas/event.ts';
export type { SearchBy } from './schemas/identifier.ts';
export type { OpenEnum } from './schemas/record.ts';
export {
  type Tracker,
  type TrackerInput,
  type TrackerListQuery,
  type TrackerPage,
  type TrackerUpdate,
  trackerInputSchema,
  trackerListQuerySchema,
  trackerSchema,
  trackerUpdateSchema,
} from './schemas/tracker.ts';
export {
  type PerCallTracking,
  perCallTrackingSchema,
  type Recipient,
  type Shipment,
  type ShipmentDelivery,
  type Statistics,
  shipmentSchema,
  statisticsSchema,
  type Tracking,
  type TrackingSearchInput,
  trackingSchema,
  trackingSearchInputSchema,
} from './schemas/tracking.ts';
export {
  type ResendResult,
  resendResultSchema,
  type WebhookHistory,
  type WebhookHistoryMetadata,
  type WebhookPush,
  webhookHistorySchema,
} from './schemas/webhook.ts';
export type { BulkOutcome, BulkStatus } from './trackers/bulk-results.ts';
export type { BulkCreation, BulkSummary, CreateManyOptions, TrackerInputs } from './trackers/create-many.ts';
export type { CouriersResource, TrackingResource } from './trackers/lookups.ts';
export type {
  PollManyUpdate,
  TrackerIds,
  TrackerPollFailure,
  TrackerPolls,
  TrackerPollUpdate,
} from './trackers/poll-many.ts';
export type { PollManyOptions, PollOptions } from './trackers/poll-options.ts';
export type { PollContext, PollUpdate } from './trackers/polled-tracker.ts';
export type { TrackersResource } from './trackers/trackers.ts';
export { VERSION } from './version.ts';
