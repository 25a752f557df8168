import { z } from 'zod';
import { eventSchema } from './event.ts';
import { countryCode, courierCodes, shippingDate, text, trackingNumber } from './input-rules.ts';
import { observed, record } from './record.ts';
import { shipmentSchema, statisticsSchema } from './shipment.ts';
import { trackerSchema } from './tracker.ts';

/** The parts that tracking results share: a shipment and its full event history (service.md 2.3). */
const results = {
  shipment: observed(shipmentSchema),
  /** The full history; its order is the service's, so sort before you rely on one. Empty when none was sent. */
  events: z
    .array(eventSchema)
    .nullish()
    .transform((events) => events ?? []),
  statistics: observed(statisticsSchema),
};

/** Tracking results of a tracker. */
export const trackingSchema = record({ tracker: observed(trackerSchema), ...results });
/** Tracking results of a tracker. */
export type Tracking = z.output<typeof trackingSchema>;

/** Tracking results of a per-call search, which creates no tracker. */
export const perCallTrackingSchema = record(results);
/** Tracking results of a per-call search, which creates no tracker. */
export type PerCallTracking = z.output<typeof perCallTrackingSchema>;

/** What a per-call search asks for (public contract). */
export const trackingSearchInputSchema = record({
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber,
  /** Up to three courier codes. */
  courierCode: courierCodes.optional(),
  originCountryCode: countryCode.optional(),
  destinationCountryCode: countryCode.optional(),
  /** 1 to 32 characters. */
  destinationPostCode: text(1, 32).optional(),
  /** ISO 8601 date, at most 180 days old. */
  shippingDate: shippingDate.optional(),
});
/** What a per-call search asks for. */
export type TrackingSearchInput = z.input<typeof trackingSearchInputSchema>;
