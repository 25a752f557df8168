import * as z from 'zod';
import { isJsonObject } from '../common/validation.ts';
import {
  eventSchema,
  statusCategorySchema,
  statusCodeSchema,
  statusMilestoneSchema,
  type TrackingEvent,
} from './event.ts';
import { listOf, type NamedSchema, namedRecord, nullish, type RecordOf, record } from './record.ts';
import { courierHints, trackerSchema, trackingNumber } from './tracker.ts';

const recipientFields = {
  name: nullish(z.string()),
  address: nullish(z.string()),
  postCode: nullish(z.string()),
  city: nullish(z.string()),
  /** State, province or region. */
  subdivision: nullish(z.string()),
};
export const recipientSchema: NamedSchema<typeof recipientFields, Recipient> = namedRecord(recipientFields);
/** The recipient of a shipment, as the courier knows it. */
export interface Recipient extends RecordOf<typeof recipientFields> {}

const dateRangeSchema = record({ from: nullish(z.string()), to: nullish(z.string()) });

const shipmentDeliveryFields = {
  estimatedDeliveryDate: nullish(z.string()),
  courierEstimatedDeliveryDate: nullish(dateRangeSchema),
  /** The courier's name for the kind of delivery. */
  service: nullish(z.string()),
  /** @deprecated Do not rely on it. */
  signedBy: nullish(z.string()),
  /** A date or a range; absent if the account lacks this add-on or there is no value (docs/service.md 2.8). */
  aiPredictiveDeliveryDate: z.union([z.string(), dateRangeSchema]).optional(),
};
export const shipmentDeliverySchema: NamedSchema<typeof shipmentDeliveryFields, ShipmentDelivery> =
  namedRecord(shipmentDeliveryFields);
/** Facts about the delivery of a shipment. */
export interface ShipmentDelivery extends RecordOf<typeof shipmentDeliveryFields> {}

const shipmentFields = {
  shipmentId: nullish(z.string()),
  statusCode: nullish(statusCodeSchema),
  statusCategory: nullish(statusCategorySchema),
  statusMilestone: nullish(statusMilestoneSchema),
  /** ISO 3166-1 alpha-2. */
  originCountryCode: nullish(z.string()),
  /** ISO 3166-1 alpha-2. */
  destinationCountryCode: nullish(z.string()),
  /** All tracking numbers of the shipment. */
  trackingNumbers: nullish(listOf(record({ tn: nullish(z.string()) }))),
  recipient: nullish(recipientSchema),
  delivery: nullish(shipmentDeliverySchema),
};
/** The schema of `Shipment`. */
export const shipmentSchema: NamedSchema<typeof shipmentFields, Shipment> = namedRecord(shipmentFields);
/** A shipment as couriers report it; none of its fields is promised (docs/service.md 2.13). */
export interface Shipment extends RecordOf<typeof shipmentFields> {}

const statisticsFields = {
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
};
export const statisticsSchema: NamedSchema<typeof statisticsFields, Statistics> =
  namedRecord(statisticsFields);
/** The times at which the milestones were reached. */
export interface Statistics extends RecordOf<typeof statisticsFields> {}

const eventHistory: z.ZodType<TrackingEvent[]> = listOf(eventSchema)
  .nullish()
  .transform((events) => events ?? []);

const results = {
  shipment: nullish(shipmentSchema),
  /** The full history in the service's order (docs/service.md 2.3), so sort it with `sortEvents`; empty if none was sent. */
  events: eventHistory,
  statistics: nullish(statisticsSchema),
};

const trackingFields = {
  tracker: nullish(trackerSchema),
  ...results,
};
/** The schema of `Tracking`. */
export const trackingSchema: NamedSchema<typeof trackingFields, Tracking> = namedRecord(trackingFields);
/** Tracking results of a tracker. */
export interface Tracking extends RecordOf<typeof trackingFields> {}

/** The schema of `PerCallTracking`. */
export const perCallTrackingSchema: NamedSchema<typeof results, PerCallTracking> = namedRecord(results);
/** Tracking results of a per-call search, which creates no tracker (docs/service.md 2.12). */
export interface PerCallTracking extends RecordOf<typeof results> {}

function isResult(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const events = value['events'] ?? [];
  return Array.isArray(events) && events.every(isJsonObject);
}

export const trackingListSchema = listOf(trackingSchema, isResult);
export const perCallTrackingListSchema = listOf(perCallTrackingSchema, isResult);

/** The schema of `TrackingSearchInput`. */
export const trackingSearchInputSchema = record({
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber,
  ...courierHints,
});
/** The input of a per-call search (docs/service.md 3.17). */
export interface TrackingSearchInput extends z.input<typeof trackingSearchInputSchema> {
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber: string;
}
