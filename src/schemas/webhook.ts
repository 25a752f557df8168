import * as z from 'zod';
import { webhookEventSchema } from './event.ts';
import { type FieldsOf, listOf, namedRecord, nullish, openEnum, record } from './record.ts';
import { webhookTrackerSchema } from './tracker.ts';
import { shipmentSchema, statisticsSchema } from './tracking.ts';

/** Topic of a proof of delivery, an add-on (docs/service.md 8.6). */
export const PROOF_OF_DELIVERY_TOPIC = 'tracking/pod';

const webhookMetadataSchema = namedRecord<WebhookMetadata>()({
  /** ISO 8601 date-time. */
  generatedAt: nullish(z.string()),
  /** Do not skip messages by it: it may be the same in all pushes of a tracker (docs/service.md 8.13). */
  messageId: nullish(z.string()),
  topic: nullish(z.string()),
});
/** Facts about a push. */
export interface WebhookMetadata extends FieldsOf<typeof webhookMetadataSchema> {}

const namedTopic = record({ ...webhookMetadataSchema.shape, topic: z.string() });

function kind<const Kind extends string>(value: Kind) {
  return z.literal(value).default(value);
}

export const eventsMessageSchema = namedRecord<EventsMessage>()({
  /** Added by this package, not sent by the service. */
  kind: kind('events'),
  metadata: nullish(webhookMetadataSchema),
  tracker: webhookTrackerSchema,
  shipment: nullish(shipmentSchema),
  /** Only the events since the previous push, in no reliable order (docs/service.md 8.2). */
  events: z.array(webhookEventSchema),
  statistics: nullish(statisticsSchema),
});
/** New events of one tracker, with the shipment as it is now. */
export interface EventsMessage extends FieldsOf<typeof eventsMessageSchema> {}

export const proofOfDeliverySchema = namedRecord<ProofOfDelivery>()({
  /** Added by this package, not sent by the service. */
  kind: kind('proofOfDelivery'),
  metadata: namedTopic,
  tracker: webhookTrackerSchema,
  data: record({
    status: nullish(openEnum(['found', 'unavailable'])),
    /** The courier that the proof came from; the shape is not documented. */
    courier: z.unknown().optional(),
    content: nullish(
      record({
        type: nullish(z.string()),
        text: nullish(z.string()),
        downloadUrl: nullish(z.string()),
      }),
    ),
  }),
});
/** A proof of delivery, or the news that there is none. */
export interface ProofOfDelivery extends FieldsOf<typeof proofOfDeliverySchema> {}

export const otherMessageSchema = namedRecord<OtherMessage>()({
  /** Added by this package, not sent by the service. */
  kind: kind('other'),
  metadata: namedTopic,
  tracker: z.unknown().optional(),
  data: z.unknown().optional(),
});
/** A push of a topic that this version does not know (docs/service.md 8.14), kept as it came. */
export interface OtherMessage extends FieldsOf<typeof otherMessageSchema> {}

/** One message of a webhook; `kind` tells its type. */
export type WebhookMessage = EventsMessage | ProofOfDelivery | OtherMessage;

export const resendResultSchema = namedRecord<ResendResult>()({
  /** The number of events that are pushed again, if the service reports it. */
  totalResent: z
    .union([z.number(), z.string().regex(/^\d+$/).transform(Number)])
    .optional()
    // An unusual total must not reject a call that was carried out, because the caller would repeat it (docs/service.md 8.12).
    .catch(undefined),
});
/** The result of `trackers.resendWebhookEvents`. */
export interface ResendResult extends FieldsOf<typeof resendResultSchema> {}

const webhookHistoryMetadataSchema = namedRecord<WebhookHistoryMetadata>()({
  trackingNumber: nullish(z.string()),
  trackerId: nullish(z.string()),
  clientTrackerId: nullish(z.string()),
  /** The URL of the receiver; null while none is registered. */
  webhookUrl: nullish(z.string()),
  lastSuccessfulPushAt: nullish(z.string()),
  lastFailedPushAt: nullish(z.string()),
});
/** The tracker of a webhook history, and the ISO 8601 times of its last pushes. */
export interface WebhookHistoryMetadata extends FieldsOf<typeof webhookHistoryMetadataSchema> {}

const webhookPushSchema = namedRecord<WebhookPush>()({
  status: nullish(openEnum(['success', 'failed'])),
  pushTimestamp: nullish(z.string()),
  /**
   * The body of the push, which may lack the tracker and the metadata (docs/service.md 8.9). The method `processHistory` of
   * `WebhookInbox` (`tracking-client/webhooks`) handles the pushes of a history again.
   */
  requestBody: z.unknown().optional(),
  /** The receiver's response: JSON or text. */
  responseBody: z.unknown().optional(),
  responseHeaders: nullish(z.record(z.string(), z.unknown())),
  /** The HTTP status of that response, as text; null without a response. */
  responseStatusCode: nullish(z.string()),
});
/** One push of a webhook history, with its ISO 8601 time. */
export interface WebhookPush extends FieldsOf<typeof webhookPushSchema> {}

/** The schema of `WebhookHistory`. */
export const webhookHistorySchema = namedRecord<WebhookHistory>()({
  metadata: nullish(webhookHistoryMetadataSchema),
  webhooks: listOf(webhookPushSchema),
});
/** The webhooks that were sent for a tracker, newest first (docs/service.md 8.9). */
export interface WebhookHistory extends FieldsOf<typeof webhookHistorySchema> {}
