// Specification: service.md 1, 2.3, 4; public contract

import { z } from 'zod';
import {
  eventSchema,
  statusCategorySchema,
  statusCodeSchema,
  statusMilestoneSchema,
  type TrackingEvent,
} from './event.ts';
import { trackingNumber } from './identifier.ts';
import { essential, type NamedSchema, namedRecord, observed, type RecordOf, record } from './record.ts';
import { courierHints, trackerSchema } from './tracker.ts';

const recipientFields = {
  /** Name. */
  name: observed(z.string()),
  /** Address, without the parts below. */
  address: observed(z.string()),
  /** Post code. */
  postCode: observed(z.string()),
  /** City. */
  city: observed(z.string()),
  /** State, province or region. */
  subdivision: observed(z.string()),
};
export interface RecipientSchema extends NamedSchema<typeof recipientFields, Recipient> {}
/** The schema of `Recipient`. */
export const recipientSchema: RecipientSchema = namedRecord(recipientFields);
/** Who a shipment goes to, as the courier has it. */
export interface Recipient extends RecordOf<typeof recipientFields> {}

const dateRangeSchema = record({
  /** Earliest date. */
  from: observed(z.string()),
  /** Latest date. */
  to: observed(z.string()),
});

const shipmentDeliveryFields = {
  /** When the delivery is expected. */
  estimatedDeliveryDate: observed(z.string()),
  /** When the courier expects it. */
  courierEstimatedDeliveryDate: observed(dateRangeSchema),
  /** The courier's name for the kind of delivery. */
  service: observed(z.string()),
  /** @deprecated Not to be relied on. */
  signedBy: observed(z.string()),
  /**
   * Add-on: the property is absent when the account lacks the option or there is no value. Its form is
   * not documented: a date, or a range like the courier's own estimate.
   */
  aiPredictiveDeliveryDate: z.union([z.string(), dateRangeSchema]).optional(),
};
export interface ShipmentDeliverySchema
  extends NamedSchema<typeof shipmentDeliveryFields, ShipmentDelivery> {}
/** The schema of `ShipmentDelivery`. */
export const shipmentDeliverySchema: ShipmentDeliverySchema = namedRecord(shipmentDeliveryFields);
/** What is known of the delivery of a shipment. */
export interface ShipmentDelivery extends RecordOf<typeof shipmentDeliveryFields> {}

const shipmentFields = {
  /** Allocated by the service. */
  shipmentId: observed(z.string()),
  /** What happened last, precisely. */
  statusCode: observed(statusCodeSchema),
  /** What kind of thing happened last. */
  statusCategory: observed(statusCategorySchema),
  /** How far it is. */
  statusMilestone: observed(statusMilestoneSchema),
  /** ISO 3166-1 alpha-2 code of where it comes from. */
  originCountryCode: observed(z.string()),
  /** ISO 3166-1 alpha-2 code of where it goes. */
  destinationCountryCode: observed(z.string()),
  /** Every number the shipment is known by. */
  trackingNumbers: observed(
    z.array(
      record({
        /** The number. */
        tn: observed(z.string()),
      }),
    ),
  ),
  /** Who it goes to. */
  recipient: observed(recipientSchema),
  /** What is known of its delivery. */
  delivery: observed(shipmentDeliverySchema),
};
export interface ShipmentSchema extends NamedSchema<typeof shipmentFields, Shipment> {}
/** The schema of `Shipment`. */
export const shipmentSchema: ShipmentSchema = namedRecord(shipmentFields);
/** A shipment as couriers report it; none of its fields is promised. */
export interface Shipment extends RecordOf<typeof shipmentFields> {}

const statisticsFields = {
  /** One for each milestone, like `occurrenceDatetime` of events. */
  timestamps: observed(
    record({
      /** `info_received`. */
      infoReceivedDatetime: observed(z.string()),
      /** `in_transit`. */
      inTransitDatetime: observed(z.string()),
      /** `out_for_delivery`. */
      outForDeliveryDatetime: observed(z.string()),
      /** `failed_attempt`. */
      failedAttemptDatetime: observed(z.string()),
      /** `available_for_pickup`. */
      availableForPickupDatetime: observed(z.string()),
      /** `exception`. */
      exceptionDatetime: observed(z.string()),
      /** `delivered`. */
      deliveredDatetime: observed(z.string()),
    }),
  ),
};
export interface StatisticsSchema extends NamedSchema<typeof statisticsFields, Statistics> {}
/** The schema of `Statistics`. */
export const statisticsSchema: StatisticsSchema = namedRecord(statisticsFields);
/** When each milestone was reached. */
export interface Statistics extends RecordOf<typeof statisticsFields> {}

/** A full event history; one that was not sent is empty. */
export interface EventHistorySchema extends z.ZodType<TrackingEvent[], TrackingEvent[] | null | undefined> {}
const eventHistory: EventHistorySchema = essential(z.array(eventSchema))
  .nullish()
  .transform((events) => events ?? []);

/** The parts that tracking results share: a shipment and its full event history. */
const results = {
  /** The shipment as it is now. */
  shipment: observed(shipmentSchema),
  /** The full history; its order is the service's, so sort before you rely on one. Empty when none was sent. */
  events: eventHistory,
  /** When each milestone was reached. */
  statistics: observed(statisticsSchema),
};

const trackingFields = {
  /** The tracker whose results these are. */
  tracker: observed(trackerSchema),
  ...results,
};
export interface TrackingSchema extends NamedSchema<typeof trackingFields, Tracking> {}
/** The schema of `Tracking`. */
export const trackingSchema: TrackingSchema = namedRecord(trackingFields);
/** Tracking results of a tracker. */
export interface Tracking extends RecordOf<typeof trackingFields> {}

export interface PerCallTrackingSchema extends NamedSchema<typeof results, PerCallTracking> {}
/** The schema of `PerCallTracking`. */
export const perCallTrackingSchema: PerCallTrackingSchema = namedRecord(results);
/** Tracking results of a per-call search, which creates no tracker. */
export interface PerCallTracking extends RecordOf<typeof results> {}

/** The schema of `TrackingSearchInput`. */
export const trackingSearchInputSchema = record({
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber,
  ...courierHints,
});
/** What a per-call search asks for. */
export interface TrackingSearchInput extends z.input<typeof trackingSearchInputSchema> {
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber: string;
}
