// Specification: service.md 2.1, 2.2; public contract

import { z } from 'zod';
import { expected } from '../common/validation.ts';
import { courierCodes, courierRestriction } from './courier.ts';
import { trackingNumber } from './identifier.ts';
import {
  countryCode,
  essential,
  type NamedSchema,
  namedRecord,
  observed,
  optionalInput,
  type RecordOf,
  type RecordSchema,
  record,
  text,
} from './record.ts';

const DAY_MS = 86_400_000;
const MAX_SHIPPING_AGE_DAYS = 180;
/** The zone furthest behind UTC is 12 hours behind: only after that is a local date surely over everywhere. */
const WIDEST_ZONE_MS = 12 * 3_600_000;
/** ISO 8601, extended (`2026-03-01T10:00:00Z`) or basic (`20260301T100000Z`), by month, by week or by day of the year. */
const ISO_DATES = [isoDate('-', ':'), isoDate('', '')];
/** A second lasts until just before the next one, whatever its fraction says. */
const REST_OF_SECOND_MS = 999;

function isoDate(dash: string, colon: string): RegExp {
  const day = `(?:(?<month>\\d{2})${dash}(?<day>\\d{2})|W(?<week>\\d{2})${dash}(?<weekday>[1-7])|(?<dayOfYear>\\d{3}))`;
  const time = `(?<hours>\\d{2})(?:${colon}(?<minutes>\\d{2})(?:${colon}(?<seconds>\\d{2})(?:[.,]\\d+)?)?)?`;
  const zone = '(?<zone>Z|[+-](?:[01]\\d|2[0-3])(?::?[0-5]\\d)?)';
  return new RegExp(`^(?<year>\\d{4})${dash}${day}(?:T${time}${zone}?)?$`, 'i');
}

/** The start of a day in UTC; undefined for one that the calendar does not have. */
function startOfDay({ year, month, day, week, weekday, dayOfYear }: IsoParts): number | undefined {
  if (week !== undefined) {
    // Week 1 is the week of January 4th. A week is of the year of its Thursday: there is no week 0, and seldom a week 53.
    const fourth = Date.UTC(Number(year), 0, 4);
    const monday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * DAY_MS;
    const thursday = monday + (Number(week) * 7 - 4) * DAY_MS;
    if (new Date(thursday).getUTCFullYear() !== Number(year)) return undefined;
    return thursday + (Number(weekday) - 4) * DAY_MS;
  }
  if (dayOfYear !== undefined) {
    const start = Date.UTC(Number(year), 0, Number(dayOfYear));
    return new Date(start).getUTCFullYear() === Number(year) ? start : undefined;
  }
  const start = Date.UTC(Number(year), Number(month) - 1, Number(day));
  // A day that the month does not have is one of another month.
  return new Date(start).getUTCMonth() === Number(month) - 1 ? start : undefined;
}

type IsoParts = Readonly<Record<string, string | undefined>>;

/** The last instant an ISO 8601 date or date-time can mean in any time zone; `undefined` when it is not one. */
export function latestInstant(value: string): number | undefined {
  const parts: IsoParts | undefined = ISO_DATES.map((iso) => iso.exec(value)?.groups).find(Boolean);
  if (parts === undefined) return undefined;
  const start = startOfDay(parts);
  const { hours = '23', zone } = parts;
  // The end of a day, of which nothing is left.
  const isMidnight = hours === '24';
  const { minutes = isMidnight ? '00' : '59', seconds = isMidnight ? '00' : '59' } = parts;
  if (start === undefined || Number(hours) > 24 || Number(minutes) > 59 || Number(seconds) > 60)
    return undefined;
  if (isMidnight && Number(minutes) + Number(seconds) > 0) return undefined;
  const local =
    start + ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + REST_OF_SECOND_MS;
  if (zone === undefined) return local + WIDEST_ZONE_MS;
  const sign = zone.startsWith('-') ? -1 : 1;
  // A Z has none, and is an offset of 0.
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0');
  return local - sign * (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))) * 60_000;
}

/** Whether a shipping date is older than the service takes, wherever its clock stands in it. */
export function isSurelyOutdated(value: string): boolean {
  const latest = latestInstant(value);
  return latest !== undefined && Date.now() - latest > MAX_SHIPPING_AGE_DAYS * DAY_MS;
}

/** An ISO 8601 date that is not surely older than 180 days (service.md 2.1, code `shipping_date_outdated`). */
const shippingDate = z
  .string(expected('to be a string'))
  .refine((value) => latestInstant(value) !== undefined, expected('to be an ISO 8601 date'))
  .refine((value) => !isSurelyOutdated(value), {
    ...expected(`to be at most ${MAX_SHIPPING_AGE_DAYS} days old`, () => 'an older date'),
    params: { code: 'shipping_date_outdated' },
  });

/** An e-mail address of at most 254 characters, checked by shape only; its local part may be quoted (RFC 5321, 4.1.2). */
export const email = text(0, 254).regex(
  /^(?:[^\s@"]+|"(?:[^"\\\r\n]|\\[^\r\n])+")@[^\s@]+$/,
  expected('to be an e-mail address'),
);

/** What helps to find the courier and the shipment; the same wherever a number is given. */
export const courierHints = {
  /** Up to three courier codes; improves the detection of the courier. */
  courierCode: optionalInput(courierCodes),
  /** ISO 3166-1 alpha-2 or alpha-3; alpha-2 is returned. */
  originCountryCode: optionalInput(countryCode),
  /** ISO 3166-1 alpha-2 or alpha-3; some couriers require it. */
  destinationCountryCode: optionalInput(countryCode),
  /** 1 to 32 characters; some couriers require it. */
  destinationPostCode: optionalInput(text(1, 32)),
  /** ISO 8601 date, at most 180 days old. */
  shippingDate: optionalInput(shippingDate),
};

const anyText = z.string(expected('to be a string'));

const trackerInputFields = {
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`; the service returns it in upper case. */
  trackingNumber,
  ...courierHints,
  /** Your own identifier, at most 100 characters, unique among your active trackers. */
  clientTrackerId: optionalInput(text(0, 100)),
  /** Free text, at most 100 characters, returned in responses and webhooks. */
  shipmentReference: optionalInput(text(0, 100)),
  /** The courier's name; takes part in the matching of payloads. */
  courierName: optionalInput(anyText),
  /** Where the shipment can be tracked; takes part in the matching of payloads. */
  trackingUrl: optionalInput(anyText),
  /** Your order's number. */
  orderNumber: optionalInput(anyText),
  /** A title of your own. */
  title: optionalInput(anyText),
  /** Who is notified; some couriers report more when they know the name. */
  recipient: optionalInput(
    record({
      /** E-mail address, at most 254 characters. */
      email: optionalInput(email),
      /** At most 100 characters. */
      name: optionalInput(text(0, 100)),
    }),
  ),
  /** How the service tracks. */
  settings: optionalInput(
    record({
      /** Track only with the given courier codes, or a boolean; sent as given. */
      restrictTrackingToCourierCode: optionalInput(courierRestriction),
    }),
  ),
};
export interface TrackerInputSchema extends RecordSchema<typeof trackerInputFields> {}
/** The schema of `TrackerInput`. */
export const trackerInputSchema: TrackerInputSchema = record(trackerInputFields);
/**
 * What a tracker is created from; only `trackingNumber` is required, and null counts as left out.
 * Unknown fields do not compile, and are sent as given when they get past the compiler; one whose name is close to that of a
 * known field is a slip, and refused.
 */
export interface TrackerInput extends z.input<TrackerInputSchema> {
  // Repeated: where a literal does not fit, TypeScript shows an interface that adds nothing by its structure.
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`; the service returns it in upper case. */
  trackingNumber: string;
}
/** A creation request as it is sent: without nulls. */
export type TrackerRequest = z.output<TrackerInputSchema>;

/** The schema of `TrackerUpdate`. */
export const trackerUpdateSchema = record({
  /** `false` archives the tracker and frees its `clientTrackerId`. */
  isSubscribed: optionalInput(z.boolean(expected('to be a boolean'))),
  ...courierHints,
}).refine((patch) => Object.values(patch).some((value) => value !== undefined), {
  ...expected('to have at least one field', () => 'none', 'patch'),
});
/** What `trackers.update` may change; at least one field that is not null. */
export interface TrackerUpdate extends z.input<typeof trackerUpdateSchema> {
  /** `false` archives the tracker and frees its `clientTrackerId`. */
  isSubscribed?: boolean | null | undefined;
}
/** A patch as it is sent: without nulls. */
export type TrackerUpdateRequest = z.output<typeof trackerUpdateSchema>;

const trackerFields = {
  /** Allocated by the service: store it. */
  trackerId: essential(z.string()),
  /** In upper case, whatever was sent. */
  trackingNumber: z.string(),
  /** `false`: the service has stopped tracking the shipment; stop polling. */
  isTracked: z.boolean(),
  /** Your own identifier, if you sent one. */
  clientTrackerId: observed(z.string()),
  /** As you sent it. */
  shipmentReference: observed(z.string()),
  /** The couriers that are asked. */
  courierCode: observed(z.union([z.string(), z.array(z.string())])),
  /** False once the tracker is archived. */
  isSubscribed: z.boolean(),
  /** ISO 8601 date-time. */
  createdAt: z.string(),
};
export interface TrackerSchema extends NamedSchema<typeof trackerFields, Tracker> {}
/** The schema of `Tracker`. */
export const trackerSchema: TrackerSchema = namedRecord(trackerFields);
/** A tracker as the API returns it. */
export interface Tracker extends RecordOf<typeof trackerFields> {}

/** The page and page size that `trackers.list` asks for by itself. */
export const DEFAULT_PAGE = 1;
export const DEFAULT_PAGE_SIZE = 100;

/** The schema of `TrackerListQuery`. */
export const trackerListQuerySchema = z.object({
  /** Page number, from 1. Default 1. */
  page: z
    .int(expected('to be a whole number'))
    .min(1, expected('to be at least 1', String))
    .nullish()
    .transform((page) => page ?? DEFAULT_PAGE),
  /** Trackers a page, 1 to 500. Default 100. */
  limit: z
    .int(expected('to be a whole number'))
    .min(1, expected('to be 1 to 500', String))
    .max(500, expected('to be 1 to 500', String))
    .nullish()
    .transform((limit) => limit ?? DEFAULT_PAGE_SIZE),
  /** `1` oldest first, `-1` newest first; the service's own order when left out. */
  sort: optionalInput(z.literal([1, -1], expected('to be 1 or -1'))),
});
/** Query of `trackers.list`. */
export interface TrackerListQuery extends z.input<typeof trackerListQuerySchema> {}

/** One page of trackers. */
export interface TrackerPage {
  /** The trackers of the page. */
  readonly trackers: Tracker[];
  /** The page that was asked for, from 1. */
  readonly page: number;
  /** How many trackers were asked for. */
  readonly limit: number;
  /** True when the service gave as many trackers as were asked for, so there may be another page. */
  readonly hasMore: boolean;
}
