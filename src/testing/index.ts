/**
 * Tests code that uses the service, without the service: a fake of it, a sender of webhooks, and builders of records.
 *
 * @module tracking-client/testing
 */

export {
  type BuildOptions,
  buildCourier,
  buildDelivery,
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  type Overrides,
} from './builders/builders.ts';
export {
  type DedupeStoreContractCase,
  type DedupeStoreContractOptions,
  dedupeStoreContract,
} from './dedupe-store-contract.ts';
export { createFakeTrackingService, type FakeTrackingService } from './fake-tracking-service.ts';
export type { FakePlans, FakeTrackingServiceOptions } from './options.ts';
export type { FakeCourier } from './service/couriers.ts';
export type { Failure, FailureKind, PlannedFailure } from './service/failures.ts';
export type { LimitWindow } from './service/rate-limits.ts';
export type { RecordedRequest } from './service/request-log.ts';
export type { Outcome, RawRequest } from './service/serve.ts';
export type { EventInput } from './shipments/event-defaults.ts';
export type { FakeShipment } from './shipments/fake-shipment.ts';
export type { PlayName } from './shipments/plays.ts';
export type { ShipmentInput } from './shipments/shipment-state.ts';
export type { FetchLike } from './transport/fetch.ts';
export type { FakeServer, ListenOptions } from './transport/http-server.ts';
export type { PushAttempt, PushItem, WebhookPush, WebhookQueue } from './webhooks/webhook-queue.ts';
export type { WebhookTarget } from './webhooks/webhook-request.ts';
export {
  createWebhookSender,
  type SentWebhook,
  type WebhookSender,
  type WebhookSenderReport,
} from './webhooks/webhook-sender.ts';
export type { WebhookSenderOptions } from './webhooks/webhook-sender-options.ts';
