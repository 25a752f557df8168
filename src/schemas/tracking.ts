import * as z from 'zod';
import { isJsonObject } from '../common/parsing.ts';
import {
  eventSchema,
  statusCategorySchema,
  statusCodeSchema,
  statusMilestoneSchema,
  type TrackingEvent,
} from './event.ts';
import { type FieldsOf, listOf, namedRecord, nullish, record } from './record.ts';
import { trackerSchema } from './tracker.ts';

export const recipientSchema = namedRecord<Recipient>()({
  name: nullish(z.string()),
  address: nullish(z.string()),
  postCode: nullish(z.string()),
  city: nullish(z.string()),
  /** State, province or region. */
  subdivision: nullish(z.string()),
});
/** The recipient of a shipment, as the courier knows it. */
export interface Recipient extends FieldsOf<typeof recipientSchema> {}

const dateRangeSchema = record({ from: nullish(z.string()), to: nullish(z.string()) });

export const shipmentDeliverySchema = namedRecord<ShipmentDelivery>()({
  estimatedDeliveryDate: nullish(z.string()),
  courierEstimatedDeliveryDate: nullish(dateRangeSchema),
  /** The courier's name for the kind of delivery. */
  service: nullish(z.string()),
  /** @deprecated Do not rely on it. */
  signedBy: nullish(z.string()),
  /**
   * Absent if the account lacks this add-on or there is no value (docs/service.md 2.8). The times have one of the forms of rule 2.5.
   */
  aiPredictiveDeliveryDate: dateRangeSchema.optional(),
});
/** Facts about the delivery of a shipment. */
export interface ShipmentDelivery extends FieldsOf<typeof shipmentDeliverySchema> {}

/** The schema of `Shipment`. */
export const shipmentSchema = namedRecord<Shipment>()({
  shipmentId: nullish(z.string()),
  statusCode: nullish(statusCodeSchema),
  statusCategory: nullish(statusCategorySchema),
  /**
   * The service's own verdict on the shipment. Show this milestone, from the webhook with the newest `generatedAt` or from the
   * latest results. The newest event may be a late scan, which does not undo a delivery (docs/service.md 5.6).
   */
  statusMilestone: nullish(statusMilestoneSchema),
  /** ISO 3166-1 alpha-2. */
  originCountryCode: nullish(z.string()),
  /** ISO 3166-1 alpha-2. */
  destinationCountryCode: nullish(z.string()),
  /** All tracking numbers of the shipment. */
  trackingNumbers: nullish(listOf(record({ tn: nullish(z.string()) }))),
  recipient: nullish(recipientSchema),
  delivery: nullish(shipmentDeliverySchema),
});
/** A shipment as couriers report it; none of its fields is promised (docs/service.md 2.13). */
export interface Shipment extends FieldsOf<typeof shipmentSchema> {}

export const statisticsSchema = namedRecord<Statistics>()({
  /** A time for each milestone, in the format of `occurrenceDatetime` of events (docs/service.md 2.14). */
  timestamps: nullish(
    record({
      infoReceivedDatetime: nullish(z.string()),
      inTransitDatetime: nullish(z.string()),
      outForDeliveryDatetime: nullish(z.string()),
      failedAttemptDatetime: nullish(z.string()),
      availableForPickupDatetime: nullish(z.string()),
      exceptionDatetime: nullish(z.string()),
      deliveredDatetime: nullish(z.string()),
    }),
  ),
});
/** The times at which the milestones were reached. */
export interface Statistics extends FieldsOf<typeof statisticsSchema> {}

const eventHistory: z.ZodType<TrackingEvent[]> = listOf(eventSchema)
  .nullish()
  .transform((events) => events ?? []);

const results = {
  shipment: nullish(shipmentSchema),
  /**
   * The full history; empty if the service sent no events. The order is the service's and not reliable (docs/service.md 2.3), so
   * sort the events with `sortEvents`.
   */
  events: eventHistory,
  statistics: nullish(statisticsSchema),
};

/** The schema of `Tracking`. */
export const trackingSchema = namedRecord<Tracking>()({ tracker: nullish(trackerSchema), ...results });
/** Tracking results of a tracker. */
export interface Tracking extends FieldsOf<typeof trackingSchema> {}

/** The schema of `PerCallTracking`. */
export const perCallTrackingSchema = namedRecord<PerCallTracking>()(results);
/** Tracking results of a per-call search, which creates no tracker (docs/service.md 2.12). */
export interface PerCallTracking extends FieldsOf<typeof perCallTrackingSchema> {}

function isResult(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const events = value['events'] ?? [];
  return Array.isArray(events) && events.every(isJsonObject);
}

export const trackingListSchema = listOf(trackingSchema, isResult);
export const perCallTrackingListSchema = listOf(perCallTrackingSchema, isResult);
