/**
 * Receives webhooks: checks and parses them, and handles every event once.
 *
 * @module tracking-client/webhooks
 */

export { buildEventKey } from '../common/event-keys.ts';
export { WebhookAuthenticationError, WebhookParseError } from '../errors.ts';
export type { WebhookEvent } from '../schemas/event.ts';
export type { WebhookTracker } from '../schemas/tracker.ts';
export type { EventsMessage, OtherMessage, ProofOfDelivery, WebhookMessage } from '../schemas/webhook.ts';
export type { Claim, DedupeStore } from './dedupe-store.ts';
export {
  createWebhookHandler,
  type WebhookHandler,
  type WebhookHandlerOptions,
  type WebhookMetrics,
  type WebhookRefusal,
} from './handler.ts';
export { WebhookInbox } from './inbox.ts';
export type {
  EventContext,
  InboxOptions,
  ProcessOptions,
  WebhookCallbacks,
  WebhookInboxOptions,
} from './inbox-options.ts';
export type { WebhookReport } from './items.ts';
export { MemoryDedupeStore, type MemoryDedupeStoreOptions } from './memory-store.ts';
export { type NodeHandler, toNodeHandler } from './node-adapter.ts';
export { type ParsedWebhook, parseWebhook } from './parse.ts';
