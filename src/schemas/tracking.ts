import { z } from 'zod';
import { eventSchema, type TrackingEvent } from './event.ts';
import { countryCode, courierCodes, shippingDate, text, trackingNumber } from './input-rules.ts';
import { observed, type RecordSchema, record } from './record.ts';
import { shipmentSchema, statisticsSchema } from './shipment.ts';
import { trackerSchema } from './tracker.ts';

/** A full event history; one that was not sent is empty. */
export interface EventHistorySchema extends z.ZodType<TrackingEvent[], TrackingEvent[] | null | undefined> {}
const eventHistory: EventHistorySchema = z
  .array(eventSchema)
  .nullish()
  .transform((events) => events ?? []);

/** The parts that tracking results share: a shipment and its full event history (service.md 2.3). */
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
/** The type of `trackingSchema`. */
export interface TrackingSchema extends RecordSchema<typeof trackingFields> {}
/**
 * The schema of `Tracking`.
 *
 * @specification service.md 2.3; public contract
 */
export const trackingSchema: TrackingSchema = record(trackingFields);
/**
 * Tracking results of a tracker.
 *
 * @specification service.md 2.3; public contract
 */
export type Tracking = z.output<typeof trackingSchema>;

/**
 * The schema of `PerCallTracking`.
 *
 * @specification service.md 1, 2.3; public contract
 */
export const perCallTrackingSchema = record(results);
/**
 * Tracking results of a per-call search, which creates no tracker.
 *
 * @specification service.md 1, 2.3; public contract
 */
export type PerCallTracking = z.output<typeof perCallTrackingSchema>;

/**
 * The schema of `TrackingSearchInput`.
 *
 * @specification service.md 4; public contract
 */
export const trackingSearchInputSchema = record({
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber,
  /** Up to three courier codes. */
  courierCode: courierCodes.optional(),
  /** ISO 3166-1 alpha-2 or alpha-3. */
  originCountryCode: countryCode.optional(),
  /** ISO 3166-1 alpha-2 or alpha-3. */
  destinationCountryCode: countryCode.optional(),
  /** 1 to 32 characters. */
  destinationPostCode: text(1, 32).optional(),
  /** ISO 8601 date, at most 180 days old. */
  shippingDate: shippingDate.optional(),
});
/**
 * What a per-call search asks for.
 *
 * @specification service.md 4; public contract
 */
export type TrackingSearchInput = z.input<typeof trackingSearchInputSchema>;
