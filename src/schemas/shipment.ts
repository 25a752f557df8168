import { z } from 'zod';
import { statusCategorySchema, statusCodeSchema, statusMilestoneSchema } from './event.ts';
import { observed, type RecordSchema, record } from './record.ts';

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
/** The type of `recipientSchema`. */
export interface RecipientSchema extends RecordSchema<typeof recipientFields> {}
/**
 * The schema of `Recipient`.
 *
 * @specification public contract
 */
export const recipientSchema: RecipientSchema = record(recipientFields);
/**
 * Who a shipment goes to, as the courier tells it.
 *
 * @specification public contract
 */
export type Recipient = z.output<typeof recipientSchema>;

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
  /** @deprecated Not to be relied on (service.md 2.3). */
  signedBy: z.unknown().optional(),
  /**
   * Add-on: the property is absent when the account lacks the option or there is no value (service.md 2.3). Its form is
   * not documented: a date, or a range like the courier's own estimate.
   */
  aiPredictiveDeliveryDate: z.union([z.string(), dateRangeSchema]).optional(),
};
/** The type of `shipmentDeliverySchema`. */
export interface ShipmentDeliverySchema extends RecordSchema<typeof shipmentDeliveryFields> {}
/**
 * The schema of `ShipmentDelivery`.
 *
 * @specification service.md 2.3; public contract
 */
export const shipmentDeliverySchema: ShipmentDeliverySchema = record(shipmentDeliveryFields);
/**
 * What is known of the delivery of a shipment.
 *
 * @specification service.md 2.3; public contract
 */
export type ShipmentDelivery = z.output<typeof shipmentDeliverySchema>;

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
/** The type of `shipmentSchema`. */
export interface ShipmentSchema extends RecordSchema<typeof shipmentFields> {}
/**
 * The schema of `Shipment`.
 *
 * @specification service.md 2.3; public contract
 */
export const shipmentSchema: ShipmentSchema = record(shipmentFields);
/**
 * A shipment as couriers tell of it; none of its fields is promised.
 *
 * @specification service.md 2.3; public contract
 */
export type Shipment = z.output<typeof shipmentSchema>;

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
/** The type of `statisticsSchema`. */
export interface StatisticsSchema extends RecordSchema<typeof statisticsFields> {}
/**
 * The schema of `Statistics`.
 *
 * @specification public contract
 */
export const statisticsSchema: StatisticsSchema = record(statisticsFields);
/**
 * When each milestone was reached.
 *
 * @specification public contract
 */
export type Statistics = z.output<typeof statisticsSchema>;
