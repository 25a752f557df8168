// Specification: service.md 2.3, 4, 6; public contract

import { z } from 'zod';
import { eventSchema } from './event.ts';
import { observed, openEnum, type RecordSchema, record } from './record.ts';
import { trackerSchema } from './tracker.ts';
import { shipmentSchema, statisticsSchema } from './tracking.ts';

/** Topic of a push of events; a push without any topic is one too when it has `events`. */
export const EVENTS_TOPIC = 'tracking/events';
/** Topic of a push of a proof of delivery, an add-on. */
export const PROOF_OF_DELIVERY_TOPIC = 'tracking/pod';

/** The schema of `WebhookEvent`. */
export const webhookEventSchema = eventSchema.extend({
  /** Opaque identifier; deduplicate on it. */
  eventId: observed(eventSchema.shape.eventId),
});
/** One event of a push: as in results, but without a promise that `eventId` is there. */
export type WebhookEvent = z.output<typeof webhookEventSchema>;

/** The schema of `WebhookTracker`. */
export const webhookTrackerSchema = trackerSchema.omit({ isTracked: true, courierCode: true }).extend({
  /** In upper case, whatever was sent. */
  trackingNumber: observed(trackerSchema.shape.trackingNumber),
});
/**
 * The tracker of a push: the flat shape has its ids only, and `isTracked` is never sent. Match it to your record by
 * `trackerId` or `clientTrackerId`.
 */
export type WebhookTracker = z.output<typeof webhookTrackerSchema>;

const webhookMetadataFields = {
  /** ISO 8601 date-time. */
  generatedAt: observed(z.string()),
  /** Identifies the push. */
  messageId: observed(z.string()),
  /** What kind of push it is. */
  topic: observed(z.string()),
};
/** The type of `webhookMetadataSchema`. */
export interface WebhookMetadataSchema extends RecordSchema<typeof webhookMetadataFields> {}
/** The schema of `WebhookMetadata`. */
export const webhookMetadataSchema: WebhookMetadataSchema = record(webhookMetadataFields);
/** What the service says about a push. */
export type WebhookMetadata = z.output<typeof webhookMetadataSchema>;

const namedTopic = webhookMetadataSchema.extend({
  /** What kind of push it is. */
  topic: z.string(),
});

/** Says which member of `Delivery` a push is; the service does not send it. */
function kind<const Kind extends string>(value: Kind) {
  return z.literal(value).default(value);
}

/** The schema of `EventsDelivery`. */
export const eventsDeliverySchema = record({
  /** Which member of `Delivery` it is; not sent by the service. */
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
export type EventsDelivery = z.output<typeof eventsDeliverySchema>;

/** The schema of `ProofOfDelivery`. */
export const proofOfDeliverySchema = record({
  /** Which member of `Delivery` it is; not sent by the service. */
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
export type ProofOfDelivery = z.output<typeof proofOfDeliverySchema>;

/** The schema of `OtherDelivery`. */
export const otherDeliverySchema = record({
  /** Which member of `Delivery` it is; not sent by the service. */
  kind: kind('other'),
  /** What the service says about the push. */
  metadata: namedTopic,
  /** As it came. */
  tracker: z.unknown().optional(),
  /** As it came. */
  data: z.unknown().optional(),
});
/** A push of a topic that this version does not know, kept as it came. */
export type OtherDelivery = z.output<typeof otherDeliverySchema>;

/** One item of a webhook; `kind` says which. */
export type Delivery = EventsDelivery | ProofOfDelivery | OtherDelivery;

/** The schema of `ResendResult`. */
export const resendResultSchema = record({
  /** How many webhook events were queued again, when the service says so; declared as a string, seen as a number. */
  totalResent: z
    .union([z.number(), z.string().regex(/^\d+$/).transform(Number)])
    .nullish()
    .transform((total) => total ?? undefined)
    .optional(),
});
/** What `trackers.resendWebhookEvents` resolves to. */
export type ResendResult = z.output<typeof resendResultSchema>;

/** The schema of `WebhookHistory`. */
export const webhookHistorySchema = record({
  /** What the service says about the list; its shape is not documented. */
  metadata: observed(z.record(z.string(), z.unknown())),
  /** The pushes as the service recorded them; their shape is not documented. */
  webhooks: z.array(z.unknown()),
});
/** The webhooks that were sent for a tracker. */
export type WebhookHistory = z.output<typeof webhookHistorySchema>;
