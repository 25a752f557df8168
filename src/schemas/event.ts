import * as z from 'zod';
import { type NamedSchema, namedRecord, nullish, openEnum, type RecordOf } from './record.ts';

/** The values of `statusMilestone` known today, in the order in which a shipment usually reaches them. */
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

/** The values of `statusCategory` known today. */
const STATUS_CATEGORIES = ['data', 'transit', 'destination', 'customs', 'delivery', 'exception'] as const;

/** The values of `statusCode` known today. */
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
  /** Opaque identifier; use it to find duplicates. */
  eventId: z.string(),
  trackingNumber: nullish(z.string()),
  /** The number under which the courier reported the event. */
  eventTrackingNumber: nullish(z.string()),
  /** The status in the courier's own words. */
  status: nullish(z.string()),
  /**
   * Time of the event: local time, local time with offset, UTC, or a date only. It is kept as the string that was sent;
   * order events with `sortEvents`, never with `new Date`.
   */
  occurrenceDatetime: nullish(z.string()),
  /** A lower number is older; it breaks ties between events without a time. */
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
