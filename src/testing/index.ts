/**
 * Tools to test your code without the service: a fake service, a sender of webhooks, and builders of records.
 *
 * @module tracking-client/testing
 */

export {
  buildCourier,
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
} from './builders.ts';
export { createFakeTrackingService, type FakeTrackingService } from './fake-tracking-service.ts';
export type { FakePlans, FakeTrackingServiceOptions, RecordedRequest } from './options.ts';
export type { Failure } from './service/failures.ts';
export type { FakeShipment } from './shipments/fake-shipment.ts';
export type { EventInput, PlayName } from './shipments/shipment.ts';
export type { FakeServer } from './transports.ts';
export type { QueuedPush, WebhookQueue } from './webhooks/queue.ts';
export {
  createWebhookSender,
  type SentWebhook,
  type WebhookSender,
  type WebhookSenderOptions,
  type WebhookSenderReport,
} from './webhooks/sender.ts';
