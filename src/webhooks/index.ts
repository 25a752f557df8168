/**
 * Receives webhooks: checks and parses them, handles every event once, and orders events.
 *
 * @module tracking-client/webhooks
 */

export type { ValidationIssue } from '../common/validation.ts';
export {
  ConfigurationError,
  isTrackingError,
  TrackingError,
  WebhookAuthenticationError,
  WebhookParseError,
} from '../errors.ts';
export { type OccurrenceDatetime, parseOccurrenceDatetime } from '../events/occurrence-datetime.ts';
export { isNewerEvent, latestEvent, type OrderableEvent, sortEvents } from '../events/order.ts';
export type { StatusCategory, StatusCode, StatusMilestone } from '../schemas/event.ts';
export type { Recipient, Shipment, ShipmentDelivery, Statistics } from '../schemas/tracking.ts';
export type {
  EventsMessage,
  OtherMessage,
  ProofOfDelivery,
  WebhookEvent,
  WebhookMessage,
  WebhookMetadata,
  WebhookTracker,
} from '../schemas/webhook.ts';
export type {
  EventCallback,
  EventContext,
  EventsContext,
  ProofOfDeliveryContext,
  WebhookCallbacks,
} from './callbacks.ts';
export type { Claim, DedupeStore } from './dedupe-store.ts';
export { createWebhookHandler, type WebhookHandler, type WebhookHandlerOptions } from './handler.ts';
export { WebhookInbox } from './inbox.ts';
export { MemoryDedupeStore, type MemoryDedupeStoreOptions } from './memory-store.ts';
export {
  type FastifyLikeReply,
  type FastifyLikeRequest,
  type NodeHandler,
  type NodeRequest,
  toNodeHandler,
} from './node-adapter.ts';
export type {
  DeadLetterContext,
  InboxErrorContext,
  InboxOperation,
  InboxOptions,
  WebhookInboxOptions,
} from './options.ts';
export { type ItemIssues, type ParsedWebhook, parseWebhook } from './parse.ts';
export type {
  ProcessOptions,
  WebhookFailure,
  WebhookOutcome,
  WebhookProcessor,
  WebhookReport,
} from './report.ts';
export type { WebhookSecret, WebhookSecretSource } from './request.ts';
