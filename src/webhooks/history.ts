import { EVENTS_TOPIC } from '../common/event-keys.ts';
import { kindOf } from '../common/messages.ts';
import { isJsonObject } from '../common/parsing.ts';
import { WebhookParseError } from '../errors.ts';
import { PROOF_OF_DELIVERY_TOPIC } from '../schemas/webhook.ts';
import { decodeBody, type ItemReader, type JsonObject, namesTracker, refusePromise } from './parse.ts';

/**
 * Reads the pushes of a webhook history, oldest first. The index of an item is the position of its push in `webhooks`.
 *
 * @throws WebhookParseError when the value is not a webhook history
 */
export function readHistory(reader: ItemReader, history: unknown): void {
  refusePromise('history', history);
  if (!isJsonObject(history) || !Array.isArray(history['webhooks'])) {
    const got = isJsonObject(history) ? 'an object without the list `webhooks`' : kindOf(history);
    throw new WebhookParseError(
      `Expected \`history\` to be a result of \`trackers.webhookHistory\`, got ${got}`,
    );
  }
  reader.nameItem = (index) => `\`webhooks[${index}]\` of the webhook history`;
  // The service lists the newest push first (docs/service.md 8.9).
  for (const [index, push] of [...history['webhooks'].entries()].reverse()) {
    const { requestBody, pushTimestamp } = isJsonObject(push) ? push : {};
    reader.readBody(tryDecode(requestBody), {
      index,
      complete: (item) => completeItem(item, history['metadata'], pushTimestamp),
    });
  }
}

/** A body that is not JSON is rejected like any other value that is not an object, so that the other pushes are handled. */
function tryDecode(body: unknown): unknown {
  try {
    return decodeBody(body);
  } catch {
    return body;
  }
}

/** Adds what the history leaves out of the item of a push: the tracker, the topic and the time (docs/service.md 8.9). */
function completeItem(item: JsonObject, history: unknown, pushTimestamp: unknown): JsonObject {
  const { tracker } = item;
  const isProof = isJsonObject(item['data']) && !Object.hasOwn(item, 'events');
  const metadata = item['metadata'] ?? { topic: isProof ? PROOF_OF_DELIVERY_TOPIC : EVENTS_TOPIC };
  const completed: Record<string, unknown> = isProof ? { ...item, metadata } : { ...item };
  if (!namesTracker(item) && isJsonObject(history)) {
    const { trackerId, trackingNumber, clientTrackerId } = history;
    const ids = { trackerId, trackingNumber, clientTrackerId };
    completed['tracker'] = isJsonObject(tracker) ? { ...tracker, ...ids } : ids;
  }
  if (
    typeof pushTimestamp === 'string' &&
    isJsonObject(metadata) &&
    (metadata['generatedAt'] ?? null) === null
  ) {
    completed['metadata'] = { ...metadata, generatedAt: pushTimestamp };
  }
  return completed;
}
