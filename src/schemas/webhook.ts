// Specification: service.md 2.3, 4, 6; public contract

import * as z from 'zod';
import { eventSchema } from './event.ts';
import {
  listOf,
  type NamedSchema,
  namedRecord,
  nullish as observed,
  openEnum,
  type RecordOf,
  record,
} from './record.ts';
import { trackerSchema } from './tracker.ts';
import { shipmentSchema, statisticsSchema } from './tracking.ts';

/** Topic of a push of a proof of delivery, an add-on. */
export const PROOF_OF_DELIVERY_TOPIC = 'tracking/pod';

/** The schema of `WebhookEvent`. */
export const webhookEventSchema = eventSchema.extend({
  /** Opaque identifier; deduplicate on it. */
  eventId: observed(eventSchema.shape.eventId),
});
/** One event of a push: as in results, but without a promise that `eventId` is there. */
export interface WebhookEvent extends z.output<typeof webhookEventSchema> {}

/** The schema of `WebhookTracker`. */
export const webhookTrackerSchema = trackerSchema.omit({ isTracked: true, courierCode: true }).extend({
  /** Allocated by the service; may be missing where `clientTrackerId` is there. */
  trackerId: observed(trackerSchema.shape.trackerId),
  /** In upper case, whatever was sent. */
  trackingNumber: observed(trackerSchema.shape.trackingNumber),
});
/**
 * The tracker of a push: the flat shape has its ids only, and `isTracked` is never sent. Match it to your record by
 * `trackerId` or `clientTrackerId`; a message has at least one of them.
 */
export interface WebhookTracker extends z.output<typeof webhookTrackerSchema> {}

const webhookMetadataFields = {
  /** ISO 8601 date-time. */
  generatedAt: observed(z.string()),
  /** Identifies the push. */
  messageId: observed(z.string()),
  /** What kind of push it is. */
  topic: observed(z.string()),
};
export interface WebhookMetadataSchema extends NamedSchema<typeof webhookMetadataFields, WebhookMetadata> {}
/** The schema of `WebhookMetadata`. */
export const webhookMetadataSchema: WebhookMetadataSchema = namedRecord(webhookMetadataFields);
/** What the service says about a push. */
export interface WebhookMetadata extends RecordOf<typeof webhookMetadataFields> {}

const namedTopic = webhookMetadataSchema.extend({
  /** What kind of push it is. */
  topic: z.string(),
});

/** Says which member of `WebhookMessage` a push is; the service does not send it. */
function kind<const Kind extends string>(value: Kind) {
  return z.literal(value).default(value);
}

/** The schema of `EventsMessage`. */
export const eventsMessageSchema = record({
  /** Which member of `WebhookMessage` it is; not sent by the service. */
  kind: kind('events'),
  /** What the service says about the push. */
  metadata: observed(webhookMetadataSchema),
  /** The tracker whose events these are. */
  tracker: webhookTrackerSchema,
  /** The shipment as it is now. */
  shipment: observed(shipmentSchema),
  /** Only what was discovered since the previous push, in no reliable order. */
  events: z.array(webhookEventSchema),
  /** When each milestone was reached. */
  statistics: observed(statisticsSchema),
});
/** New events of one tracker, with the shipment as it is now. */
export interface EventsMessage extends z.output<typeof eventsMessageSchema> {}

/** The schema of `ProofOfDelivery`. */
export const proofOfDeliverySchema = record({
  /** Which member of `WebhookMessage` it is; not sent by the service. */
  kind: kind('proofOfDelivery'),
  /** What the service says about the push. */
  metadata: namedTopic,
  /** The tracker whose shipment was delivered. */
  tracker: webhookTrackerSchema,
  /** The proof. */
  data: record({
    /** Whether there is one. */
    status: observed(openEnum(['found', 'unavailable'])),
    /** The courier it came from; its shape is not documented. */
    courier: z.unknown().optional(),
    /** What it holds. */
    content: observed(
      record({
        /** What kind of proof it is. */
        type: observed(z.string()),
        /** The proof as text. */
        text: observed(z.string()),
        /** Where the proof can be downloaded. */
        downloadUrl: observed(z.string()),
      }),
    ),
  }),
});
/** A proof of delivery, or the news that there is none. */
export interface ProofOfDelivery extends z.output<typeof proofOfDeliverySchema> {}

/** The schema of `OtherMessage`. */
export const otherMessageSchema = record({
  /** Which member of `WebhookMessage` it is; not sent by the service. */
  kind: kind('other'),
  /** What the service says about the push. */
  metadata: namedTopic,
  /** As it came. */
  tracker: z.unknown().optional(),
  /** As it came. */
  data: z.unknown().optional(),
});
/** A push of a topic that this version does not know, kept as it came. */
export interface OtherMessage extends z.output<typeof otherMessageSchema> {}

/** One item of a webhook; `kind` says which. */
export type WebhookMessage = EventsMessage | ProofOfDelivery | OtherMessage;

/** The schema of `ResendResult`. */
export const resendResultSchema = record({
  /** How many webhook events were queued again, when the service says so; declared as a string, seen as a number. */
  totalResent: z
    .union([z.number(), z.string().regex(/^\d+$/).transform(Number)])
    .optional()
    // The service has taken the request: whatever it says of the total must not make anybody repeat it.
    .catch(undefined),
});
/** What `trackers.resendWebhookEvents` resolves to. */
export interface ResendResult extends z.output<typeof resendResultSchema> {}

const webhookHistoryMetadataFields = {
  /** The tracker's number. */
  trackingNumber: observed(z.string()),
  /** The tracker. */
  trackerId: observed(z.string()),
  /** Your own identifier, if you sent one. */
  clientTrackerId: observed(z.string()),
  /** Where the pushes go; null while no URL is registered. */
  webhookUrl: observed(z.string()),
  /** ISO 8601 date-time of the last push that was accepted. */
  lastSuccessfulPushAt: observed(z.string()),
  /** ISO 8601 date-time of the last push that failed. */
  lastFailedPushAt: observed(z.string()),
};
export interface WebhookHistoryMetadataSchema
  extends NamedSchema<typeof webhookHistoryMetadataFields, WebhookHistoryMetadata> {}
const webhookHistoryMetadataSchema: WebhookHistoryMetadataSchema = namedRecord(webhookHistoryMetadataFields);
/** What a webhook history says of the tracker and its pushes. */
export interface WebhookHistoryMetadata extends RecordOf<typeof webhookHistoryMetadataFields> {}

const webhookPushFields = {
  /** Whether the receiver took it. */
  status: observed(openEnum(['success', 'failed'])),
  /** ISO 8601 date-time. */
  pushTimestamp: observed(z.string()),
  /** What was pushed; `parseWebhook` of `tracking-client/webhooks` reads it. */
  requestBody: z.unknown().optional(),
  /** What the receiver answered: JSON or text. */
  responseBody: z.unknown().optional(),
  /** The headers of its answer. */
  responseHeaders: observed(z.record(z.string(), z.unknown())),
  /** The HTTP status of its answer, as text; null when there was none. */
  responseStatusCode: observed(z.string()),
};
export interface WebhookPushSchema extends NamedSchema<typeof webhookPushFields, WebhookPush> {}
const webhookPushSchema: WebhookPushSchema = namedRecord(webhookPushFields);
/** One push of a webhook history. */
export interface WebhookPush extends RecordOf<typeof webhookPushFields> {}

const webhookHistoryFields = {
  /** The tracker and its last pushes. */
  metadata: observed(webhookHistoryMetadataSchema),
  /** The pushes, newest first. */
  webhooks: listOf(webhookPushSchema),
};
export interface WebhookHistorySchema extends NamedSchema<typeof webhookHistoryFields, WebhookHistory> {}
/** The schema of `WebhookHistory`. */
export const webhookHistorySchema: WebhookHistorySchema = namedRecord(webhookHistoryFields);
/** The webhooks that were sent for a tracker, newest first. */
export interface WebhookHistory extends RecordOf<typeof webhookHistoryFields> {}
