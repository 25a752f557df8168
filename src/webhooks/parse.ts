import { isJsonObject } from '../schemas/envelope.ts';
import type { Delivery } from '../schemas/webhook.ts';
import { decodeBody } from './body.ts';
import type { ItemIssues } from './issue-log.ts';
import { ItemReader } from './item-reader.ts';

/** What a webhook body holds. */
export interface ParsedWebhook {
  /** The items that can be handled. */
  readonly deliveries: Delivery[];
  /**
   * The first 100 items that cannot be handled, or hold events that cannot; empty when all is well. An item with good and bad
   * events is here for the bad and in `deliveries` with the good ones.
   */
  readonly rejected: ItemIssues[];
  /**
   * The first 100 of the `deliveries` with fields that are not what they should be. Nothing depends on these fields, so they are
   * kept as they came, whatever their type says.
   */
  readonly mismatched: ItemIssues[];
}

/**
 * Reads a webhook body, checks every item, and lets no bad item hide a good one.
 * Takes the enveloped shape (`trackings[]`) and the flat one (`trackerId`, `events[]`); keeps unknown fields and topics.
 *
 * @param body - text, UTF-8 bytes, or JSON that is parsed already
 * @returns the deliveries, the items that are none, and the fields that are not what they should be
 * @throws WebhookParseError when text or bytes are not UTF-8 JSON
 * @specification service.md 6; public contract
 * @example
 * const { deliveries, rejected } = parseWebhook('{"trackerId":"t1","events":[{"eventId":"e1"}]}');
 * // deliveries: [{ kind: 'events', tracker: { trackerId: 't1' }, events: [{ eventId: 'e1' }], … }], rejected: [], mismatched: []
 */
export function parseWebhook(body: unknown): ParsedWebhook {
  const reader = new ItemReader();
  const payload = decodeBody(body);
  if (!isJsonObject(payload)) {
    reader.reject(0, 'body', 'an object', payload);
  } else if (!Object.hasOwn(payload, 'trackings')) {
    reader.read(payload, 0);
  } else if (!Array.isArray(payload['trackings'])) {
    reader.reject(0, 'trackings', 'an array', payload['trackings']);
  } else {
    const { trackings } = payload;
    for (let index = 0; index < trackings.length; index += 1) reader.read(trackings[index], index);
  }
  return reader.finish();
}
