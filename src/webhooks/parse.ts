import type { z } from 'zod';
import { isJsonObject } from '../schemas/envelope.ts';
import {
  type Delivery,
  EVENTS_TOPIC,
  type EventsDelivery,
  eventsDeliverySchema,
  otherDeliverySchema,
  PROOF_OF_DELIVERY_TOPIC,
  proofOfDeliverySchema,
  webhookTrackerSchema,
} from '../schemas/webhook.ts';
import { errorMap, kindOf, toValidationIssues, type ValidationIssue } from '../validation.ts';
import { decodeBody } from './body.ts';

/** An item of a webhook that is not what it should be, or holds events that are not. */
export interface RejectedItem {
  /** Its place in `trackings`; 0 for a body that is one item itself. */
  readonly index: number;
  /** What is wrong with it; paths start at the item. */
  readonly issues: readonly ValidationIssue[];
}

/** What a webhook body holds. */
export interface ParsedWebhook {
  readonly deliveries: Delivery[];
  /** Empty when all is well. An item with good and bad events is here for the bad and in `deliveries` with the good ones. */
  readonly rejected: RejectedItem[];
}

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads a webhook body, checks every item, and lets no bad item hide a good one (service.md 6, public contract).
 * Takes the enveloped shape (`trackings[]`) and the flat one (`trackerId`, `events[]`); keeps unknown fields and topics.
 *
 * @param body - text, UTF-8 bytes, or JSON that is parsed already
 * @returns the deliveries, and the items that are none
 * @throws WebhookParseError when text or bytes are not UTF-8 JSON
 * @example
 * const { deliveries, rejected } = parseWebhook('{"trackerId":"t1","events":[{"eventId":"e1"}]}');
 * // deliveries: [{ kind: 'events', tracker: { trackerId: 't1' }, events: [{ eventId: 'e1' }], … }], rejected: []
 */
export function parseWebhook(body: unknown): ParsedWebhook {
  const parsed: ParsedWebhook = { deliveries: [], rejected: [] };
  const payload = decodeBody(body);
  if (!isJsonObject(payload)) {
    parsed.rejected.push(mistyped(0, 'body', 'an object', payload));
    return parsed;
  }
  if (!Object.hasOwn(payload, 'trackings')) {
    readItem(parsed, payload, 0);
    return parsed;
  }
  const { trackings } = payload;
  if (!Array.isArray(trackings)) {
    parsed.rejected.push(mistyped(0, 'trackings', 'an array', trackings));
    return parsed;
  }
  for (let index = 0; index < trackings.length; index += 1) readItem(parsed, trackings[index], index);
  return parsed;
}

function readItem(parsed: ParsedWebhook, sent: unknown, index: number): void {
  if (!isJsonObject(sent)) {
    parsed.rejected.push(mistyped(index, `trackings[${index}]`, 'an object', sent));
    return;
  }
  // `kind` is ours to set; one that the service may send some day must not decide anything.
  const item = Object.hasOwn(sent, 'kind') ? { ...sent, kind: undefined } : sent;
  const topic = topicOf(item);
  if (topic === PROOF_OF_DELIVERY_TOPIC) check(parsed, proofOfDeliverySchema, withTracker(item), index);
  else if (topic === undefined || topic === EVENTS_TOPIC) readEvents(parsed, withTracker(item), index);
  else check(parsed, otherDeliverySchema, item, index);
}

function topicOf(item: JsonObject): string | undefined {
  const { metadata } = item;
  if (!isJsonObject(metadata)) return undefined;
  const { topic } = metadata;
  return typeof topic === 'string' && topic !== '' ? topic : undefined;
}

/** The flat shape names the tracker's ids beside the events; gives it a tracker like the enveloped one. */
function withTracker(item: JsonObject): JsonObject {
  if (isJsonObject(item['tracker']) || !Object.hasOwn(item, 'trackerId')) return item;
  const known = Object.keys(webhookTrackerSchema.shape).filter((key) => Object.hasOwn(item, key));
  return { ...item, tracker: Object.fromEntries(known.map((key) => [key, item[key]])) };
}

function readEvents(parsed: ParsedWebhook, item: JsonObject, index: number): void {
  if (check(parsed, eventsDeliverySchema, item, index)) return;
  const salvaged = withoutBrokenEvents(item, parsed.rejected.at(-1)?.issues ?? []);
  if (salvaged !== undefined) parsed.deliveries.push(salvaged);
}

/** The delivery with its good events only; undefined when more than events is broken, or none is good. */
function withoutBrokenEvents(
  item: JsonObject,
  issues: readonly ValidationIssue[],
): EventsDelivery | undefined {
  const { events } = item;
  if (!Array.isArray(events)) return undefined;
  const broken = new Set(issues.map(({ path }) => (path[0] === 'events' ? path[1] : undefined)));
  const good = events.filter((_, position) => !broken.has(position));
  return good.length === 0 ? undefined : eventsDeliverySchema.safeParse({ ...item, events: good }).data;
}

function check<Schema extends z.ZodType<Delivery>>(
  parsed: ParsedWebhook,
  schema: Schema,
  item: JsonObject,
  index: number,
): boolean {
  const result = schema.safeParse(item);
  if (result.success) {
    parsed.deliveries.push(result.data);
    return true;
  }
  // Asked again with our words, so that a good item never pays for them.
  const { error = result.error } = schema.safeParse(item, { error: errorMap('tracking') });
  parsed.rejected.push({ index, issues: toValidationIssues(error) });
  return false;
}

function mistyped(index: number, name: string, wanted: string, got: unknown): RejectedItem {
  const message = `Expected \`${name}\` to be ${wanted}, got ${kindOf(got)}`;
  return { index, issues: [{ path: [], code: 'invalid_type', message }] };
}
