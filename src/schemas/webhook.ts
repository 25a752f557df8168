import * as z from 'zod';
import { eventSchema } from './event.ts';
import { listOf, type NamedSchema, namedRecord, nullish, openEnum, type RecordOf, record } from './record.ts';
import { trackerSchema } from './tracker.ts';
import { shipmentSchema, statisticsSchema } from './tracking.ts';

/** Topic of a proof of delivery, an add-on (docs/service.md 8.6). */
export const PROOF_OF_DELIVERY_TOPIC = 'tracking/pod';

/** The schema of `WebhookEvent`. */
export const webhookEventSchema = eventSchema.extend({
  /** Opaque identifier; use it to find duplicates. */
  eventId: nullish(eventSchema.shape.eventId),
});
/** An event of a push, like one of results, except that `eventId` may be missing. */
export interface WebhookEvent extends z.output<typeof webhookEventSchema> {}

/** The schema of `WebhookTracker`. */
export const webhookTrackerSchema = trackerSchema.omit({ isTracked: true, courierCode: true }).extend({
  /** Allocated by the service; it may be missing if there is a `clientTrackerId`. */
  trackerId: nullish(trackerSchema.shape.trackerId),
  /** In upper case, even if sent in lower case. */
  trackingNumber: nullish(trackerSchema.shape.trackingNumber),
});
/**
 * The tracker of a push. Match it to your record by `trackerId` or `clientTrackerId`: at least one of them is there. The flat
 * shape has nothing else, and `isTracked` is never sent.
 */
export interface WebhookTracker extends z.output<typeof webhookTrackerSchema> {}

const webhookMetadataFields = {
  /** ISO 8601 date-time. */
  generatedAt: nullish(z.string()),
  /** Identifies the tracked object; the same in every push of it. */
  messageId: nullish(z.string()),
  /** The kind of push. */
  topic: nullish(z.string()),
};
/** The schema of `WebhookMetadata`. */
export const webhookMetadataSchema: NamedSchema<typeof webhookMetadataFields, WebhookMetadata> =
  namedRecord(webhookMetadataFields);
/** Facts about a push. */
export interface WebhookMetadata extends RecordOf<typeof webhookMetadataFields> {}

const namedTopic = webhookMetadataSchema.extend({
  /** The kind of push. */
  topic: z.string(),
});

/** A field that tells the members of `WebhookMessage` apart; the service does not send it. */
function kind<const Kind extends string>(value: Kind) {
  return z.literal(value).default(value);
}

/** The schema of `EventsMessage`. */
export const eventsMessageSchema = record({
  /** Tells the members of `WebhookMessage` apart; not sent by the service. */
  kind: kind('events'),
  /** Facts about the push. */
  metadata: nullish(webhookMetadataSchema),
  /** The tracker whose events these are. */
  tracker: webhookTrackerSchema,
  /** The shipment as it is now. */
  shipment: nullish(shipmentSchema),
  /** Only the events since the previous push, in no reliable order. */
  events: z.array(webhookEventSchema),
  /** When each milestone was reached. */
  statistics: nullish(statisticsSchema),
});
/** New events of one tracker, with the shipment as it is now. */
export interface EventsMessage extends z.output<typeof eventsMessageSchema> {}

/** The schema of `ProofOfDelivery`. */
export const proofOfDeliverySchema = record({
  /** Tells the members of `WebhookMessage` apart; not sent by the service. */
  kind: kind('proofOfDelivery'),
  /** Facts about the push. */
  metadata: namedTopic,
  /** The tracker whose shipment was delivered. */
  tracker: webhookTrackerSchema,
  /** The proof. */
  data: record({
    /** Whether there is one. */
    status: nullish(openEnum(['found', 'unavailable'])),
    /** The courier it came from; its shape is not documented. */
    courier: z.unknown().optional(),
    /** The content. */
    content: nullish(
      record({
        /** The kind of proof. */
        type: nullish(z.string()),
        /** The proof as text. */
        text: nullish(z.string()),
        /** Where the proof can be downloaded. */
        downloadUrl: nullish(z.string()),
      }),
    ),
  }),
});
/** A proof of delivery, or the news that there is none. */
export interface ProofOfDelivery extends z.output<typeof proofOfDeliverySchema> {}

/** The schema of `OtherMessage`. */
export const otherMessageSchema = record({
  /** Tells the members of `WebhookMessage` apart; not sent by the service. */
  kind: kind('other'),
  /** Facts about the push. */
  metadata: namedTopic,
  /** As it came. */
  tracker: z.unknown().optional(),
  /** As it came. */
  data: z.unknown().optional(),
});
/** A push of a topic that this version does not know, kept as it came. */
export interface OtherMessage extends z.output<typeof otherMessageSchema> {}

/** One item of a webhook; `kind` tells which. */
export type WebhookMessage = EventsMessage | ProofOfDelivery | OtherMessage;

/** The schema of `ResendResult`. */
export const resendResultSchema = record({
  /** The number of events that are pushed again, when the service tells it. */
  totalResent: z
    .union([z.number(), z.string().regex(/^\d+$/).transform(Number)])
    .optional()
    // An odd total must not reject a call that was carried out, because the caller would repeat it (docs/service.md 8.12).
    .catch(undefined),
});
/** The result of `trackers.resendWebhookEvents`. */
export interface ResendResult extends z.output<typeof resendResultSchema> {}

const webhookHistoryMetadataFields = {
  /** The tracker's number. */
  trackingNumber: nullish(z.string()),
  /** The tracker. */
  trackerId: nullish(z.string()),
  /** Your own identifier, if you sent one. */
  clientTrackerId: nullish(z.string()),
  /** Where the pushes go; null while no URL is registered. */
  webhookUrl: nullish(z.string()),
  /** ISO 8601 date-time of the last push that was accepted. */
  lastSuccessfulPushAt: nullish(z.string()),
  /** ISO 8601 date-time of the last push that failed. */
  lastFailedPushAt: nullish(z.string()),
};
const webhookHistoryMetadataSchema: NamedSchema<typeof webhookHistoryMetadataFields, WebhookHistoryMetadata> =
  namedRecord(webhookHistoryMetadataFields);
/** The tracker of a webhook history and its last pushes. */
export interface WebhookHistoryMetadata extends RecordOf<typeof webhookHistoryMetadataFields> {}

const webhookPushFields = {
  /** Whether the receiver accepted it. */
  status: nullish(openEnum(['success', 'failed'])),
  /** ISO 8601 date-time. */
  pushTimestamp: nullish(z.string()),
  /** The body of the push; `parseWebhook` of `tracking-client/webhooks` reads it. */
  requestBody: z.unknown().optional(),
  /** The receiver's response: JSON or text. */
  responseBody: z.unknown().optional(),
  /** The headers of that response. */
  responseHeaders: nullish(z.record(z.string(), z.unknown())),
  /** The HTTP status of that response, as text; null without a response. */
  responseStatusCode: nullish(z.string()),
};
const webhookPushSchema: NamedSchema<typeof webhookPushFields, WebhookPush> = namedRecord(webhookPushFields);
/** One push of a webhook history. */
export interface WebhookPush extends RecordOf<typeof webhookPushFields> {}

const webhookHistoryFields = {
  /** The tracker and its last pushes. */
  metadata: nullish(webhookHistoryMetadataSchema),
  /** The pushes, newest first. */
  webhooks: listOf(webhookPushSchema),
};
/** The schema of `WebhookHistory`. */
export const webhookHistorySchema: NamedSchema<typeof webhookHistoryFields, WebhookHistory> =
  namedRecord(webhookHistoryFields);
/** The webhooks that were sent for a tracker, newest first. */
export interface WebhookHistory extends RecordOf<typeof webhookHistoryFields> {}
