import * as z from 'zod';
import { expected } from '../common/validation.ts';
import { courierCodes, courierRestriction } from './courier.ts';
import { trackingNumber } from './identifier.ts';
import {
  countryCode,
  type NamedSchema,
  namedRecord,
  nullish,
  optionalInput,
  type RecordOf,
  type RecordSchema,
  record,
  text,
  textOrTexts,
} from './record.ts';

/** A day in milliseconds. */
export const DAY_MS = 86_400_000;
/** The oldest `shippingDate` that the service accepts, in days. */
export const MAX_SHIPPING_AGE_DAYS = 180;
/** The offset of the time zone in which a local time ends last. */
const LAST_ZONE = '-12:00';

const isoDate = z.iso.date();
const isoDateTime = z.iso.datetime({ offset: true, local: true });

/** Tells whether a date or date-time is more than 180 days old in every time zone that it can mean. */
function isSurelyOutdated(value: string): boolean {
  const dateTime = value.includes('T') ? value : `${value}T23:59:59.999`;
  const hasZone = /(?:Z|[+-]\d{2}:\d{2})$/.test(dateTime);
  const latestMs = Date.parse(hasZone ? dateTime : dateTime + LAST_ZONE);
  return Date.now() - latestMs > MAX_SHIPPING_AGE_DAYS * DAY_MS;
}

/** An ISO 8601 date or date-time that is not surely older than 180 days. */
const shippingDate = z
  .string(expected('to be a string'))
  .refine((value) => isoDate.safeParse(value).success || isoDateTime.safeParse(value).success, {
    ...expected('to be an ISO 8601 date'),
    abort: true,
  })
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
 * Unknown fields do not compile, but are sent as given at run time: the service may know them before this package does.
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
  trackerId: z.string(),
  /** In upper case, whatever was sent. */
  trackingNumber: z.string(),
  /** `false`: the service has stopped tracking the shipment; stop polling. */
  isTracked: z.boolean(),
  /** Your own identifier, if you sent one. */
  clientTrackerId: nullish(z.string()),
  /** As you sent it. */
  shipmentReference: nullish(z.string()),
  /** The couriers that are asked. */
  courierCode: nullish(textOrTexts),
  /** False once the tracker is archived. */
  isSubscribed: nullish(z.boolean()),
  /** ISO 8601 date-time. */
  createdAt: nullish(z.string()),
};
/** The schema of `Tracker`. */
export const trackerSchema: NamedSchema<typeof trackerFields, Tracker> = namedRecord(trackerFields);
/** A tracker as the API returns it. */
export interface Tracker extends RecordOf<typeof trackerFields> {}

/** The page and page size that `trackers.list` asks for by itself. */
export const DEFAULT_PAGE = 1;
export const DEFAULT_PAGE_SIZE = 100;
export const MAX_PAGE_SIZE = 500;
const PAGE_SIZE_RULE = expected(`to be 1 to ${MAX_PAGE_SIZE}`, String);

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
    .min(1, PAGE_SIZE_RULE)
    .max(MAX_PAGE_SIZE, PAGE_SIZE_RULE)
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
