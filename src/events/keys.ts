import { createHash } from 'node:crypto';
import { canonicalJson } from '../common/canonical-json.ts';
import type { ProofOfDelivery, WebhookEvent, WebhookMetadata, WebhookTracker } from '../schemas/webhook.ts';

/** Topic of a push of events; a push without any topic is one too when it has `events`. */
export const EVENTS_TOPIC = 'tracking/events';

/** What the keys of events are built from, beside the events. */
interface MessageIds {
  readonly metadata?: Pick<WebhookMetadata, 'topic'> | null | undefined;
  readonly tracker: WebhookTracker;
}

/**
 * Builds the function that names the events of one message: `topic:trackerId:eventId`, since two trackers may share an event id.
 * A tracker without `trackerId` is named by its `clientTrackerId`, an event without id by the SHA-256 of its content.
 */
export function buildEventKeys({ metadata, tracker }: MessageIds): (event: WebhookEvent) => string {
  const prefix = `${escapeKeyPart(metadata?.topic || EVENTS_TOPIC)}:${getTrackerName(tracker)}:`;
  return (event) => prefix + (event.eventId || hashContent(event));
}

/**
 * Builds the key of a proof of delivery: its tracker and the SHA-256 of its content. The `messageId` is the same for all pushes of
 * a tracker, and a `downloadUrl` is signed anew for each push, so neither its query nor its fragment counts.
 */
export function buildProofOfDeliveryKey({ tracker, data }: ProofOfDelivery): string {
  const downloadUrl: unknown = data.content?.downloadUrl;
  // Webhooks keep what came, so the type may be wrong.
  const isSigned = typeof downloadUrl === 'string' && /[?#]/.test(downloadUrl);
  const unsigned = isSigned
    ? { ...data, content: { ...data.content, downloadUrl: downloadUrl.replace(/[?#].*$/s, '') } }
    : data;
  return `${getTrackerName(tracker)}:${hashContent(unsigned)}`;
}

/** One name for a tracker in all webhooks. Escaping `%` keeps a `trackerId` from looking like a `clientTrackerId`. */
export function getTrackerName({ trackerId, clientTrackerId }: WebhookTracker): string {
  // Webhooks keep what came, so an id that is not needed may have any type.
  const isNamed = typeof trackerId === 'string' && (trackerId !== '' || typeof clientTrackerId !== 'string');
  return isNamed ? escapeKeyPart(trackerId) : `%client=${escapeKeyPart(clientTrackerId ?? '')}`;
}

/** Ids are opaque: a colon inside one must not make two keys the same. */
function escapeKeyPart(part: string): string {
  return part.includes(':') || part.includes('%') ? part.replaceAll('%', '%25').replaceAll(':', '%3A') : part;
}

function hashContent(content: object): string {
  return `sha256-${createHash('sha256').update(canonicalJson(content)).digest('hex')}`;
}
