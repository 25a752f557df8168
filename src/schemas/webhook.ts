import { z } from 'zod';
import { eventSchema } from './event.ts';
import { observed, openEnum, record } from './record.ts';
import { shipmentSchema, statisticsSchema } from './shipment.ts';
import { trackerSchema } from './tracker.ts';

/** Topic of a push of events; a push without any topic is one too when it has `events` (service.md 6). */
export const EVENTS_TOPIC = 'tracking/events';
/** Topic of a push of a proof of delivery, an add-on (public contract). */
export const PROOF_OF_DELIVERY_TOPIC = 'tracking/pod';

/** One event of a push: as in results, but without a promise that `eventId` is there (service.md 6). */
export const webhookEventSchema = eventSchema.extend({ eventId: observed(eventSchema.shape.eventId) });
/** One event of a push. */
export type WebhookEvent = z.output<typeof webhookEventSchema>;

/** The tracker of a push: the flat shape has its ids only (service.md 6), and `isTracked` is never sent. */
export const webhookTrackerSchema = trackerSchema
  .omit({ isTracked: true, courierCode: true })
  .extend({ trackingNumber: observed(trackerSchema.shape.trackingNumber) });
/** The tracker of a push; match it to your record by `trackerId` or `clientTrackerId`. */
export type WebhookTracker = z.output<typeof webhookTrackerSchema>;

/** What the service says about a push (public contract). */
export const webhookMetadataSchema = record({
  /** ISO 8601 date-time. */
  generatedAt: observed(z.string()),
  messageId: observed(z.string()),
  topic: observed(z.string()),
});
/** What the service says about a push. */
export type WebhookMetadata = z.output<typeof webhookMetadataSchema>;

const namedTopic = webhookMetadataSchema.extend({ topic: z.string() });

/** Says which member of `Delivery` a push is; the service does not send it. */
function kind<const Kind extends string>(value: Kind) {
  return z.literal(value).default(value);
}

/** New events of one tracker, with the shipment as it is now. */
export const eventsDeliverySchema = record({
  kind: kind('events'),
  metadata: observed(webhookMetadataSchema),
  tracker: webhookTrackerSchema,
  shipment: observed(shipmentSchema),
  /** Only what was discovered since the previous push (service.md 6), in no reliable order. */
  events: z.array(webhookEventSchema),
  statistics: observed(statisticsSchema),
});
/** New events of one tracker, with the shipment as it is now. */
export type EventsDelivery = z.output<typeof eventsDeliverySchema>;

/** A proof of delivery, or the news that there is none. */
export const proofOfDeliverySchema = record({
  kind: kind('proofOfDelivery'),
  metadata: namedTopic,
  tracker: webhookTrackerSchema,
  data: record({
    status: observed(openEnum(['found', 'unavailable'])),
    /** The courier it came from; its shape is not documented. */
    courier: z.unknown().optional(),
    content: observed(
      record({ type: observed(z.string()), text: observed(z.string()), downloadUrl: observed(z.string()) }),
    ),
  }),
});
/** A proof of delivery, or the news that there is none. */
export type ProofOfDelivery = z.output<typeof proofOfDeliverySchema>;

/** A push of a topic that this version does not know, kept as it came. */
export const otherDeliverySchema = record({
  kind: kind('other'),
  metadata: namedTopic,
  tracker: z.unknown().optional(),
  data: z.unknown().optional(),
});
/** A push of a topic that this version does not know. */
export type OtherDelivery = z.output<typeof otherDeliverySchema>;

/** One item of a webhook; `kind` tells which. */
export type Delivery = EventsDelivery | ProofOfDelivery | OtherDelivery;
