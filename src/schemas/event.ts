import * as z from 'zod';
import { type NamedSchema, namedRecord, nullish, openEnum, type RecordOf } from './record.ts';

/** The values of `statusMilestone` known today (docs/service.md 5.4), in the order in which shipments usually reach them. */
export const STATUS_MILESTONES = [
  'pending',
  'info_received',
  'in_transit',
  'out_for_delivery',
  'failed_attempt',
  'available_for_pickup',
  'delivered',
  'exception',
] as const;

const STATUS_CATEGORIES = ['data', 'transit', 'destination', 'customs', 'delivery', 'exception'] as const;

const STATUS_CODES = [
  'data_order_created',
  'data_order_cancelled',
  'data_delivery_proposed',
  'data_delivery_decided',
  'transit_handover',
  'transit_origin_country_departure',
  'destination_arrival',
  'customs_received',
  'customs_exception',
  'customs_rejected',
  'customs_cleared',
  'delivery_available_for_pickup',
  'delivery_out_for_delivery',
  'delivery_attempted',
  'delivery_exception',
  'delivery_refused',
  'delivery_delivered',
  'exception_return',
  'exception_lost',
  'exception_discarded',
] as const;

export const statusMilestoneSchema = openEnum(STATUS_MILESTONES);
/** The progress of a shipment; a value added later is a plain string. */
export type StatusMilestone = z.output<typeof statusMilestoneSchema>;
export const statusCategorySchema = openEnum(STATUS_CATEGORIES);
/** The family of a status; a value added later is a plain string. */
export type StatusCategory = z.output<typeof statusCategorySchema>;
export const statusCodeSchema = openEnum(STATUS_CODES);
/** The precise status; a value added later is a plain string. */
export type StatusCode = z.output<typeof statusCodeSchema>;

const eventFields = {
  /** Opaque; the same whenever the event is sent again (docs/service.md 2.4), so use it to find duplicates. */
  eventId: z.string(),
  trackingNumber: nullish(z.string()),
  /** The number under which the courier reported the event. */
  eventTrackingNumber: nullish(z.string()),
  /** The status in the courier's own words. */
  status: nullish(z.string()),
  /** Local time, with or without offset, UTC or a date, as sent (docs/service.md 2.5); use `sortEvents`, never `new Date`. */
  occurrenceDatetime: nullish(z.string()),
  /** A lower number is older; it breaks ties between events without a time (docs/service.md 2.6). */
  order: nullish(z.number()),
  location: nullish(z.string()),
  /** The source from which the service got the event. */
  sourceCode: nullish(z.string()),
  /** The courier that reported the event. */
  courierCode: nullish(z.string()),
  statusCode: nullish(statusCodeSchema),
  statusCategory: nullish(statusCategorySchema),
  /** The progress of the shipment at that time. */
  statusMilestone: nullish(statusMilestoneSchema),
  /** @deprecated Use `occurrenceDatetime`. */
  datetime: z.unknown().optional(),
  /** @deprecated Use `occurrenceDatetime`. */
  utcOffset: z.unknown().optional(),
  /** @deprecated Use `occurrenceDatetime`. */
  hasNoTime: z.unknown().optional(),
};
/** The schema of `TrackingEvent`. */
export const eventSchema: NamedSchema<typeof eventFields, TrackingEvent> = namedRecord(eventFields);
/** An event in the history of a shipment. */
export interface TrackingEvent extends RecordOf<typeof eventFields> {}
