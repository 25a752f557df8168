import { z } from 'zod';
import { statusCategorySchema, statusCodeSchema, statusMilestoneSchema } from './event.ts';
import { observed, record } from './record.ts';

export const recipientSchema = record({
  name: observed(z.string()),
  address: observed(z.string()),
  postCode: observed(z.string()),
  city: observed(z.string()),
  subdivision: observed(z.string()),
});
/** Who a shipment goes to, as the courier tells it. */
export type Recipient = z.output<typeof recipientSchema>;

const dateRangeSchema = record({ from: observed(z.string()), to: observed(z.string()) });

export const shipmentDeliverySchema = record({
  estimatedDeliveryDate: observed(z.string()),
  courierEstimatedDeliveryDate: observed(dateRangeSchema),
  service: observed(z.string()),
  /** @deprecated Not to be relied on (service.md 2.3). */
  signedBy: z.unknown().optional(),
  /**
   * Add-on: the property is absent when the account lacks the option or there is no value (service.md 2.3). Its form is
   * not documented: a date, or a range like the courier's own estimate.
   */
  aiPredictiveDeliveryDate: z.union([z.string(), dateRangeSchema]).optional(),
});
/** What is known of the delivery of a shipment. */
export type ShipmentDelivery = z.output<typeof shipmentDeliverySchema>;

/** A shipment (public contract; service.md 2.3 promises no field of it). */
export const shipmentSchema = record({
  shipmentId: observed(z.string()),
  statusCode: observed(statusCodeSchema),
  statusCategory: observed(statusCategorySchema),
  statusMilestone: observed(statusMilestoneSchema),
  originCountryCode: observed(z.string()),
  destinationCountryCode: observed(z.string()),
  /** Every number the shipment is known by. */
  trackingNumbers: observed(z.array(record({ tn: observed(z.string()) }))),
  recipient: observed(recipientSchema),
  delivery: observed(shipmentDeliverySchema),
});
/** A shipment. */
export type Shipment = z.output<typeof shipmentSchema>;

/** When each milestone was reached, each a logistic date-time kept as a string. */
export const statisticsSchema = record({
  timestamps: observed(
    record({
      infoReceivedDatetime: observed(z.string()),
      inTransitDatetime: observed(z.string()),
      outForDeliveryDatetime: observed(z.string()),
      failedAttemptDatetime: observed(z.string()),
      availableForPickupDatetime: observed(z.string()),
      exceptionDatetime: observed(z.string()),
      deliveredDatetime: observed(z.string()),
    }),
  ),
});
/** When each milestone was reached. */
export type Statistics = z.output<typeof statisticsSchema>;
