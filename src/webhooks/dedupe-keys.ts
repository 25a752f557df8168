import { createHash } from 'node:crypto';
import { canonicalJson } from '../common/canonical-json.ts';
import {
  EVENTS_TOPIC,
  type EventsDelivery,
  type ProofOfDelivery,
  type WebhookEvent,
} from '../schemas/webhook.ts';

/**
 * The name under which an event is remembered: `topic:trackerId:eventId`, since two trackers may share an event id.
 * An event without id is named by the SHA-256 of its content.
 *
 * @param delivery - the delivery that brought the event
 * @param event - one of its events
 * @returns the key, the same for every redelivery; also a good idempotency key for your own writes
 * @specification service.md 6
 */
export function eventKey(delivery: EventsDelivery, event: WebhookEvent): string {
  const topic = delivery.metadata?.topic || EVENTS_TOPIC;
  return `${escaped(topic)}:${escaped(delivery.tracker.trackerId)}:${event.eventId || contentHash(event)}`;
}

/**
 * The name under which a proof of delivery is remembered: `trackerId:messageId`; without a message id, its content's SHA-256.
 *
 * @param delivery - the proof of delivery
 * @returns the key, the same for every redelivery
 * @specification public contract
 */
export function proofOfDeliveryKey(delivery: ProofOfDelivery): string {
  return `${escaped(delivery.tracker.trackerId)}:${delivery.metadata.messageId || contentHash(delivery.data)}`;
}

/** Ids are opaque; one with a colon must not make two keys one. */
function escaped(part: string): string {
  return part.includes(':') || part.includes('%') ? part.replaceAll('%', '%25').replaceAll(':', '%3A') : part;
}

function contentHash(content: object): string {
  return `sha256-${createHash('sha256').update(canonicalJson(content)).digest('hex')}`;
}
