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
  /** Name. */
  name: nullish(z.string()),
  /** Address, without the parts below. */
  address: nullish(z.string()),
  /** Post code. */
  postCode: nullish(z.string()),
  /** City. */
  city: nullish(z.string()),
  /** State, province or region. */
  subdivision: nullish(z.string()),
};
/** The schema of `Recipient`. */
export const recipientSchema: NamedSchema<typeof recipientFields, Recipient> = namedRecord(recipientFields);
/** The recipient of a shipment, as the courier knows it. */
export interface Recipient extends RecordOf<typeof recipientFields> {}

const dateRangeSchema = record({
  /** Earliest date. */
  from: nullish(z.string()),
  /** Latest date. */
  to: nullish(z.string()),
});

const shipmentDeliveryFields = {
  /** When the delivery is expected. */
  estimatedDeliveryDate: nullish(z.string()),
  /** When the courier expects it. */
  courierEstimatedDeliveryDate: nullish(dateRangeSchema),
  /** The courier's name for the kind of delivery. */
  service: nullish(z.string()),
  /** @deprecated Not to be relied on. */
  signedBy: nullish(z.string()),
  /**
   * Add-on: the property is absent when the account lacks the option or there is no value. Its form is
   * not documented: a date, or a range like the courier's own estimate.
   */
  aiPredictiveDeliveryDate: z.union([z.string(), dateRangeSchema]).optional(),
};
/** The schema of `ShipmentDelivery`. */
export const shipmentDeliverySchema: NamedSchema<typeof shipmentDeliveryFields, ShipmentDelivery> =
  namedRecord(shipmentDeliveryFields);
/** Facts about the delivery of a shipment. */
export interface ShipmentDelivery extends RecordOf<typeof shipmentDeliveryFields> {}

const shipmentFields = {
  /** Allocated by the service. */
  shipmentId: nullish(z.string()),
  /** The precise status. */
  statusCode: nullish(statusCodeSchema),
  /** The family of the status. */
  statusCategory: nullish(statusCategorySchema),
  /** The progress of the shipment. */
  statusMilestone: nullish(statusMilestoneSchema),
  /** ISO 3166-1 alpha-2 code of the country of origin. */
  originCountryCode: nullish(z.string()),
  /** ISO 3166-1 alpha-2 code of the country of destination. */
  destinationCountryCode: nullish(z.string()),
  /** Every number the shipment is known by. */
  trackingNumbers: nullish(
    listOf(
      record({
        /** The number. */
        tn: nullish(z.string()),
      }),
    ),
  ),
  /** The recipient. */
  recipient: nullish(recipientSchema),
  /** Facts about the delivery. */
  delivery: nullish(shipmentDeliverySchema),
};
/** The schema of `Shipment`. */
export const shipmentSchema: NamedSchema<typeof shipmentFields, Shipment> = namedRecord(shipmentFields);
/** A shipment as couriers report it; none of its fields is promised. */
export interface Shipment extends RecordOf<typeof shipmentFields> {}

const statisticsFields = {
  /** One for each milestone, like `occurrenceDatetime` of events. */
  timestamps: nullish(
    record({
      /** `info_received`. */
      infoReceivedDatetime: nullish(z.string()),
      /** `in_transit`. */
      inTransitDatetime: nullish(z.string()),
      /** `out_for_delivery`. */
      outForDeliveryDatetime: nullish(z.string()),
      /** `failed_attempt`. */
      failedAttemptDatetime: nullish(z.string()),
      /** `available_for_pickup`. */
      availableForPickupDatetime: nullish(z.string()),
      /** `exception`. */
      exceptionDatetime: nullish(z.string()),
      /** `delivered`. */
      deliveredDatetime: nullish(z.string()),
    }),
  ),
};
/** The schema of `Statistics`. */
export const statisticsSchema: NamedSchema<typeof statisticsFields, Statistics> =
  namedRecord(statisticsFields);
/** When each milestone was reached. */
export interface Statistics extends RecordOf<typeof statisticsFields> {}

/** A full event history; a missing one is empty. */
const eventHistory: z.ZodType<TrackingEvent[]> = listOf(eventSchema)
  .nullish()
  .transform((events) => events ?? []);

/** The fields that all tracking results have. */
const results = {
  /** The shipment as it is now. */
  shipment: nullish(shipmentSchema),
  /** The full history in the service's order, so sort it with `sortEvents`. Empty when the service sent none. */
  events: eventHistory,
  /** When each milestone was reached. */
  statistics: nullish(statisticsSchema),
};

const trackingFields = {
  /** The tracker whose results these are. */
  tracker: nullish(trackerSchema),
  ...results,
};
/** The schema of `Tracking`. */
export const trackingSchema: NamedSchema<typeof trackingFields, Tracking> = namedRecord(trackingFields);
/** Tracking results of a tracker. */
export interface Tracking extends RecordOf<typeof trackingFields> {}

/** The schema of `PerCallTracking`. */
export const perCallTrackingSchema: NamedSchema<typeof results, PerCallTracking> = namedRecord(results);
/** Tracking results of a per-call search, which creates no tracker. */
export interface PerCallTracking extends RecordOf<typeof results> {}

/** Tells whether a value is an object, and its events, if any, are objects too. */
function isResult(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const events = value['events'] ?? [];
  return Array.isArray(events) && events.every(isJsonObject);
}

/** Responses that hold several results. */
export const trackingListSchema = listOf(trackingSchema, isResult);
export const perCallTrackingListSchema = listOf(perCallTrackingSchema, isResult);

/** The schema of `TrackingSearchInput`. */
export const trackingSearchInputSchema = record({
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber,
  ...courierHints,
});
/** The input of a per-call search. */
export interface TrackingSearchInput extends z.input<typeof trackingSearchInputSchema> {
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber: string;
}
