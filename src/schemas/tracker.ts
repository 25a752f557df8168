import { z } from 'zod';
import { expected } from '../validation.ts';
import {
  countryCode,
  courierCodes,
  courierRestriction,
  email,
  shippingDate,
  text,
  trackingNumber,
} from './input-rules.ts';
import { observed, record } from './record.ts';

/**
 * What a tracker is created from (service.md 2.1). Only `trackingNumber` is required.
 * Unknown fields do not compile, and are sent as given when they get past the compiler.
 */
export const trackerInputSchema = record({
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`; the service answers with it in upper case. */
  trackingNumber,
  /** Up to three courier codes; improves the detection of the courier. */
  courierCode: courierCodes.optional(),
  /** Your own identifier, at most 100 characters, unique among your active trackers. */
  clientTrackerId: text(0, 100).optional(),
  /** Free text, at most 100 characters, returned in answers and webhooks. */
  shipmentReference: text(0, 100).optional(),
  /** ISO 3166-1 alpha-2 or alpha-3; alpha-2 is returned. */
  originCountryCode: countryCode.optional(),
  /** ISO 3166-1 alpha-2 or alpha-3; some couriers require it. */
  destinationCountryCode: countryCode.optional(),
  /** 1 to 32 characters; some couriers require it. */
  destinationPostCode: text(1, 32).optional(),
  /** ISO 8601 date, at most 180 days old. */
  shippingDate: shippingDate.optional(),
  courierName: z.string(expected('to be a string')).optional(),
  trackingUrl: z.string(expected('to be a string')).optional(),
  orderNumber: z.string(expected('to be a string')).optional(),
  title: z.string(expected('to be a string')).optional(),
  recipient: record({
    /** E-mail address, at most 254 characters. */
    email: email.optional(),
    /** At most 100 characters. */
    name: text(0, 100).optional(),
  }).optional(),
  settings: record({
    /** Track only with the given courier codes; the public contract has a boolean here. Sent as given. */
    restrictTrackingToCourierCode: courierRestriction.optional(),
  }).optional(),
});
/** What a tracker is created from. */
export type TrackerInput = z.input<typeof trackerInputSchema>;

/** What `trackers.update` may change (public contract); at least one field. */
export const trackerUpdateSchema = record({
  /** `false` archives the tracker and frees its `clientTrackerId`. */
  isSubscribed: z.boolean(expected('to be a boolean')).optional(),
  courierCode: courierCodes.optional(),
  originCountryCode: countryCode.optional(),
  destinationCountryCode: countryCode.optional(),
  destinationPostCode: text(1, 32).optional(),
  shippingDate: shippingDate.optional(),
}).refine((patch) => Object.values(patch).some((value) => value !== undefined), {
  ...expected('to have at least one field', () => 'none', 'patch'),
});
/** What `trackers.update` may change. */
export type TrackerUpdate = z.input<typeof trackerUpdateSchema>;

/** A tracker as the API answers with it (service.md 2.2). */
export const trackerSchema = record({
  /** Allocated by the service: store it. */
  trackerId: z.string(),
  /** In upper case, whatever was sent. */
  trackingNumber: z.string(),
  /** `false`: the service has stopped tracking the shipment; stop polling. Compare with `=== false`: it may be missing. */
  isTracked: observed(z.boolean()),
  clientTrackerId: observed(z.string()),
  shipmentReference: observed(z.string()),
  courierCode: observed(z.union([z.string(), z.array(z.string())])),
  isSubscribed: observed(z.boolean()),
  /** ISO 8601 date-time. */
  createdAt: observed(z.string()),
});
/** A tracker as the API answers with it. */
export type Tracker = z.output<typeof trackerSchema>;

/** The page and page size that `trackers.list` asks for by itself. */
export const DEFAULT_PAGE = 1;
export const DEFAULT_PAGE_SIZE = 100;

/** Query of `trackers.list` (public contract). */
export const trackerListQuerySchema = z.object({
  /** Page number, from 1. Default 1. */
  page: z
    .int(expected('to be a whole number'))
    .min(1, expected('to be at least 1', String))
    .default(DEFAULT_PAGE),
  /** Trackers a page, 1 to 500. Default 100. */
  limit: z
    .int(expected('to be a whole number'))
    .min(1, expected('to be 1 to 500', String))
    .max(500, expected('to be 1 to 500', String))
    .default(DEFAULT_PAGE_SIZE),
  /** `1` oldest first, `-1` newest first; the service's own order when left out. */
  sort: z.literal([1, -1], expected('to be 1 or -1')).optional(),
});
/** Query of `trackers.list`. */
export type TrackerListQuery = z.input<typeof trackerListQuerySchema>;

/** One page of trackers. */
export interface TrackerPage {
  readonly trackers: Tracker[];
  /** The page that was asked for, from 1. */
  readonly page: number;
  /** How many trackers were asked for. */
  readonly limit: number;
  /** True when the page is full, so there may be another one. */
  readonly hasMore: boolean;
}
