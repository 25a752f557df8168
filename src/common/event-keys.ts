import { createHash } from 'node:crypto';
import type { WebhookEvent } from '../schemas/event.ts';
import type { WebhookTracker } from '../schemas/tracker.ts';
import type { ProofOfDelivery } from '../schemas/webhook.ts';

/** Topic of a push of events, also assumed for a push that has `events` but no topic. */
export const EVENTS_TOPIC = 'tracking/events';

/**
 * Builds the key under which webhooks, polls and stores remember an event: `topic:trackerId:eventId` (docs/service.md 8.3). The key
 * of an event without id has the SHA-256 of its content instead (docs/service.md 2.4).
 *
 * @param tracker - the record of the tracker, or its ids; without a `trackerId` the key has the `clientTrackerId`
 * @param event - an event of a webhook or of results
 * @param account - the account that you named in `process` or in your function `secret`, if any. Default: none
 * @returns the key, the same for each copy of the event
 * @throws RangeError if an event without id is nested deeper than the call stack allows
 * @example
 * const key = buildEventKey({ trackerId: 't1' }, { eventId: 'e1' }); // tracking/events:t1:e1
 */
export function buildEventKey(
  tracker: Pick<WebhookTracker, 'trackerId' | 'clientTrackerId'>,
  event: WebhookEvent,
  account?: string,
): string {
  // Results keep an id of a wrong type, and every object would become `[object Object]`.
  const id: unknown = event.eventId;
  const isUsable = typeof id === 'string' || typeof id === 'number';
  const name = isUsable && id ? id : hashContent(event);
  return `${EVENTS_TOPIC}:${nameAccount(account)}${getTrackerName(tracker)}:${name}`;
}

/**
 * Builds the key of a proof of delivery from its tracker and the SHA-256 of its content, because the `messageId` may be the same
 * for all pushes of a tracker (docs/service.md 8.13). Query and fragment of the `downloadUrl` are left out, because each push has a
 * new signature there.
 */
export function buildProofOfDeliveryKey({ tracker, data }: ProofOfDelivery, account?: string): string {
  const downloadUrl: unknown = data.content?.downloadUrl;
  // Webhooks keep fields that break the schema, so the type may be wrong.
  const unsigned =
    typeof downloadUrl === 'string'
      ? { ...data, content: { ...data.content, downloadUrl: downloadUrl.replace(/[?#].*$/s, '') } }
      : data;
  return `${nameAccount(account)}${getTrackerName(tracker)}:${hashContent(unsigned)}`;
}

/**
 * Names a tracker, by its `clientTrackerId` if it has no `trackerId`. A name from a `clientTrackerId` begins with `%client=`. `%`
 * is escaped in ids, so no name from a `trackerId` begins like this.
 */
export function getTrackerName({
  trackerId,
  clientTrackerId,
}: Pick<WebhookTracker, 'trackerId' | 'clientTrackerId'>): string {
  // Webhooks keep fields that break the schema. `parseWebhook` makes sure that one of the two ids is a string; the other id may
  // have any type.
  const isNamed = typeof trackerId === 'string' && (trackerId !== '' || typeof clientTrackerId !== 'string');
  return isNamed ? escapeKeyPart(trackerId) : `%client=${escapeKeyPart(clientTrackerId ?? '')}`;
}

/** Builds the part of a key that names the account. No name of a tracker begins with `%account=`. */
function nameAccount(account: string | undefined): string {
  return account === undefined ? '' : `%account=${escapeKeyPart(account)}:`;
}

/** Escapes colons, so that different ids never build the same key. */
function escapeKeyPart(part: string): string {
  return part.includes(':') || part.includes('%') ? part.replaceAll('%', '%25').replaceAll(':', '%3A') : part;
}

function hashContent(content: object): string {
  return `sha256-${createHash('sha256').update(canonicalJson(content)).digest('hex')}`;
}

/**
 * Writes JSON with the keys of objects sorted.
 *
 * @throws RangeError if the value is nested deeper than the call stack allows
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`);
  return `{${fields.join(',')}}`;
}
