import * as z from 'zod';
import { STATUS_CATEGORIES, STATUS_CODES, STATUS_MILESTONES } from '../events/statuses.ts';
import { type FieldsOf, namedRecord, nullish, openEnum } from './record.ts';

export const statusMilestoneSchema = openEnum(STATUS_MILESTONES);
/** The progress of a shipment; a value added later is a plain string. */
export type StatusMilestone = z.output<typeof statusMilestoneSchema>;
export const statusCategorySchema = openEnum(STATUS_CATEGORIES);
/** The family of a status; a value added later is a plain string. */
export type StatusCategory = z.output<typeof statusCategorySchema>;
export const statusCodeSchema = openEnum(STATUS_CODES);
/** The precise status; a value added later is a plain string. */
export type StatusCode = z.output<typeof statusCodeSchema>;

/** The schema of `TrackingEvent`. */
export const eventSchema = namedRecord<TrackingEvent>()({
  /** Opaque; the same whenever the event is sent again (docs/service.md 2.4). To find duplicates, use `buildEventKey`. */
  eventId: z.string(),
  trackingNumber: nullish(z.string()),
  /** The number under which the courier reported the event. */
  eventTrackingNumber: nullish(z.string()),
  /** The status in the courier's own words. */
  status: nullish(z.string()),
  /**
   * As sent: a local time, a local time with an offset, a UTC time, or a date only (docs/service.md 2.5). Use `sortEvents`, never
   * `new Date`.
   */
  occurrenceDatetime: nullish(z.string()),
  /** Tells which event is older if the times do not (docs/service.md 2.6): the event with the lower number. */
  order: nullish(z.number()),
  /** The place as the courier writes it. Some couriers send an object, which is kept as it came (docs/service.md 2.21). */
  location: nullish(z.string()),
  /** The source from which the service got the event. */
  sourceCode: nullish(z.string()),
  /** The courier that reported the event. */
  courierCode: nullish(z.string()),
  statusCode: nullish(statusCodeSchema),
  statusCategory: nullish(statusCategorySchema),
  /**
   * The progress of the shipment at the time of the event. For the status of an order, use the milestone of the shipment
   * (docs/service.md 5.6).
   */
  statusMilestone: nullish(statusMilestoneSchema),
  /** @deprecated Use `occurrenceDatetime`. */
  datetime: z.unknown().optional(),
  /** @deprecated Use `occurrenceDatetime`. */
  utcOffset: z.unknown().optional(),
  /** @deprecated Use `occurrenceDatetime`. */
  hasNoTime: z.unknown().optional(),
});
/** An event in the history of a shipment. */
export interface TrackingEvent extends FieldsOf<typeof eventSchema> {}

export const webhookEventSchema = namedRecord<WebhookEvent>()({
  // A spread in the same file keeps the comments of the fields in the declarations; `extend` loses them.
  ...eventSchema.shape,
  /** Opaque; the same whenever the event is sent again (docs/service.md 2.4). To find duplicates, use `buildEventKey`. */
  eventId: nullish(eventSchema.shape.eventId),
});
/** An event of a push; unlike an event of results, it may lack its `eventId`. */
export interface WebhookEvent extends FieldsOf<typeof webhookEventSchema> {}
