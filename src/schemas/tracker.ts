// Specification: service.md 2.1, 2.2; public contract

import { z } from 'zod';
import { expected } from '../common/validation.ts';
import { courierCodes, courierRestriction } from './courier.ts';
import { trackingNumber } from './identifier.ts';
import { countryCode, observed, type RecordSchema, record, text } from './record.ts';

const DAY_MS = 86_400_000;
const MAX_SHIPPING_AGE_DAYS = 180;
/** The zone furthest behind UTC is 12 hours behind: only after that is a local date surely over everywhere. */
const WIDEST_ZONE_MS = 12 * 3_600_000;
const ISO_DATE =
  /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2})(?::(\d{2})(?::(\d{2})(?:[.,]\d+)?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/;
/** A second lasts until just before the next one, whatever its fraction says. */
const REST_OF_SECOND_MS = 999;

/** The last instant an ISO 8601 date or date-time can mean in any time zone; `undefined` when it is not one. */
export function latestInstant(value: string): number | undefined {
  const match = ISO_DATE.exec(value);
  if (match === null) return undefined;
  const [, year, month, day, hours = '23', minutes = '59', seconds = '59', zone] = match;
  const start = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const parsed = new Date(start);
  const isRealDay = parsed.getUTCMonth() === Number(month) - 1 && parsed.getUTCDate() === Number(day);
  if (!isRealDay || Number(hours) > 24 || Number(minutes) > 59 || Number(seconds) > 60) return undefined;
  const local =
    start + ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + REST_OF_SECOND_MS;
  if (zone === 'Z') return local;
  if (zone === undefined) return local + WIDEST_ZONE_MS;
  const sign = zone.startsWith('-') ? -1 : 1;
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0');
  return local - sign * (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))) * 60_000;
}

function isSurelyOutdated(value: string): boolean {
  const latest = latestInstant(value);
  return latest !== undefined && Date.now() - latest > MAX_SHIPPING_AGE_DAYS * DAY_MS;
}

/** An ISO 8601 date that is not surely older than 180 days (service.md 2.1, code `shipping_date_outdated`). */
const shippingDate = z
  .string(expected('to be a string'))
  .refine((value) => latestInstant(value) !== undefined, {
    ...expected('to be an ISO 8601 date'),
    abort: true,
  })
  .refine((value) => !isSurelyOutdated(value), {
    ...expected(`to be at most ${MAX_SHIPPING_AGE_DAYS} days old`, () => 'an older date'),
    params: { code: 'shipping_date_outdated' },
  });

/** An e-mail address of at most 254 characters, checked by shape only. */
export const email = text(0, 254).regex(/^[^\s@]+@[^\s@]+$/, expected('to be an e-mail address'));

/** What helps to find the courier and the shipment; the same wherever a number is given. */
export const courierHints = {
  /** Up to three courier codes; improves the detection of the courier. */
  courierCode: courierCodes.optional(),
  /** ISO 3166-1 alpha-2 or alpha-3; alpha-2 is returned. */
  originCountryCode: countryCode.optional(),
  /** ISO 3166-1 alpha-2 or alpha-3; some couriers require it. */
  destinationCountryCode: countryCode.optional(),
  /** 1 to 32 characters; some couriers require it. */
  destinationPostCode: text(1, 32).optional(),
  /** ISO 8601 date, at most 180 days old. */
  shippingDate: shippingDate.optional(),
};

const trackerInputFields = {
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`; the service returns it in upper case. */
  trackingNumber,
  ...courierHints,
  /** Your own identifier, at most 100 characters, unique among your active trackers. */
  clientTrackerId: text(0, 100).optional(),
  /** Free text, at most 100 characters, returned in responses and webhooks. */
  shipmentReference: text(0, 100).optional(),
  /** The courier's name; takes part in the matching of payloads. */
  courierName: z.string(expected('to be a string')).optional(),
  /** Where the shipment can be tracked; takes part in the matching of payloads. */
  trackingUrl: z.string(expected('to be a string')).optional(),
  /** Your order's number. */
  orderNumber: z.string(expected('to be a string')).optional(),
  /** A title of your own. */
  title: z.string(expected('to be a string')).optional(),
  /** Who is notified; some couriers report more when they know the name. */
  recipient: record({
    /** E-mail address, at most 254 characters. */
    email: email.optional(),
    /** At most 100 characters. */
    name: text(0, 100).optional(),
  }).optional(),
  /** How the service tracks. */
  settings: record({
    /** Track only with the given courier codes; the public contract has a boolean here. Sent as given. */
    restrictTrackingToCourierCode: courierRestriction.optional(),
  }).optional(),
};
/** The type of `trackerInputSchema`. */
export interface TrackerInputSchema extends RecordSchema<typeof trackerInputFields> {}
/** The schema of `TrackerInput`. */
export const trackerInputSchema: TrackerInputSchema = record(trackerInputFields);
/**
 * What a tracker is created from; only `trackingNumber` is required.
 * Unknown fields do not compile, and are sent as given when they get past the compiler.
 */
export type TrackerInput = z.input<typeof trackerInputSchema>;

/** The schema of `TrackerUpdate`. */
export const trackerUpdateSchema = record({
  /** `false` archives the tracker and frees its `clientTrackerId`. */
  isSubscribed: z.boolean(expected('to be a boolean')).optional(),
  ...courierHints,
}).refine((patch) => Object.values(patch).some((value) => value !== undefined), {
  ...expected('to have at least one field', () => 'none', 'patch'),
});
/** What `trackers.update` may change; at least one field. */
export type TrackerUpdate = z.input<typeof trackerUpdateSchema>;

const trackerFields = {
  /** Allocated by the service: store it. */
  trackerId: z.string(),
  /** In upper case, whatever was sent. */
  trackingNumber: z.string(),
  /** `false`: the service has stopped tracking the shipment; stop polling. Compare with `=== false`: it may be missing. */
  isTracked: observed(z.boolean()),
  /** Your own identifier, if you sent one. */
  clientTrackerId: observed(z.string()),
  /** As you sent it. */
  shipmentReference: observed(z.string()),
  /** The couriers that are asked. */
  courierCode: observed(z.union([z.string(), z.array(z.string())])),
  /** False once the tracker is archived. */
  isSubscribed: observed(z.boolean()),
  /** ISO 8601 date-time. */
  createdAt: observed(z.string()),
};
/** The type of `trackerSchema`. */
export interface TrackerSchema extends RecordSchema<typeof trackerFields> {}
/** The schema of `Tracker`. */
export const trackerSchema: TrackerSchema = record(trackerFields);
/** A tracker as the API returns it. */
export type Tracker = z.output<typeof trackerSchema>;

/** The page and page size that `trackers.list` asks for by itself. */
export const DEFAULT_PAGE = 1;
export const DEFAULT_PAGE_SIZE = 100;

/** The schema of `TrackerListQuery`. */
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
  /** The trackers of the page. */
  readonly trackers: Tracker[];
  /** The page that was asked for, from 1. */
  readonly page: number;
  /** How many trackers were asked for. */
  readonly limit: number;
  /** True when the page is full, so there may be another one. */
  readonly hasMore: boolean;
}
