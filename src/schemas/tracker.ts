import * as z from 'zod';
import { expected, quoteValue } from '../common/messages.ts';
import { hasDotSegment } from '../common/urls.ts';
import { courierCodes, courierRestriction } from './courier.ts';
import {
  countryCode,
  type FieldsOf,
  hasValue,
  namedRecord,
  nullish,
  onlyCharacters,
  optionalInput,
  record,
  text,
  textOrTexts,
} from './record.ts';

/** A tracker id or client tracker id, which becomes one segment of a path. */
export const trackerIdentifier = z
  .string(expected('to be a string', quoteValue))
  .refine((id) => id.trim() !== '', expected('to be a non-empty id', quoteValue))
  // A gateway that decodes the path before it resolves dot segments would reach another endpoint.
  .refine((id) => !hasDotSegment(id), expected('to be an id without a path segment `.` or `..`', quoteValue))
  // A URL cannot carry half of a surrogate pair.
  .refine((id) => !/\p{Surrogate}/u.test(id), expected('to be well-formed Unicode', quoteValue));

const trackingNumberText = text(5, 50, quoteValue).check(
  onlyCharacters('A-Za-z0-9\\-_/.', 'A-Z, a-z, 0-9, "-", "_", "/" and "."', quoteValue),
);

export const trackingNumber = trackingNumberText.refine(
  // A run such as `12345` or `1234567890` (docs/service.md 3.1); a longer run may be a real tracking number.
  (value) => !'01234567890'.includes(value),
  expected('to be a real tracking number and not an ascending run of digits', quoteValue),
);

/** A tracking number in a path may contain `/`, but no segment `.` or `..`. */
export const trackingNumberIdentifier = trackingNumberText.refine(
  (value) => !hasDotSegment(value),
  expected('to be a tracking number without a path segment `.` or `..`', quoteValue),
);

export const searchBySchema = z.enum(['trackerId', 'clientTrackerId']);
/** The kind of id that addresses a tracker: the service's (default) or your own (docs/service.md 3.12). */
export type SearchBy = z.output<typeof searchBySchema>;

export const DAY_MS = 86_400_000;
/** The service refuses a `shippingDate` older than this (docs/service.md 3.6). */
export const MAX_SHIPPING_AGE_DAYS = 180;
const LAST_ZONE = '-12:00';

const isoDate = z.iso.date();
const isoDateTime = z.iso.datetime({ offset: true, local: true });

/** The service's time zone is unknown, so a date is outdated (docs/service.md 3.6) only if it is too old in every zone. */
function isSurelyOutdated(value: string): boolean {
  const dateTime = value.includes('T') ? value : `${value}T23:59:59.999`;
  const hasZone = /(?:Z|[+-]\d{2}:\d{2})$/.test(dateTime);
  const latestMs = Date.parse(hasZone ? dateTime : dateTime + LAST_ZONE);
  return Date.now() - latestMs > MAX_SHIPPING_AGE_DAYS * DAY_MS;
}

const shippingDate = z
  .string(expected('to be a string', quoteValue))
  .refine((value) => isoDate.safeParse(value).success || isoDateTime.safeParse(value).success, {
    ...expected('to be an ISO 8601 date such as 2026-11-15', quoteValue),
    abort: true,
  })
  .refine((value) => !isSurelyOutdated(value), {
    ...expected(`to be at most ${MAX_SHIPPING_AGE_DAYS} days old`, quoteValue),
    params: { code: 'shipping_date_outdated' },
  });

/** Only the shape is checked; the local part may be quoted (RFC 5321, 4.1.2). */
export const email = text(0, 254).regex(
  /^(?:[^\s@"]+|"(?:[^"\\\r\n]|\\[^\r\n])+")@[^\s@]+$/,
  expected('to be an e-mail address'),
);

const postCode = text(1, 32).check(
  onlyCharacters('A-Za-z0-9 _\\-./', 'A-Z, a-z, 0-9, spaces, "_", "-", "." and "/"'),
);
const courierName = text(0, 200);
const trackingUrl = text(0, 1000);
const recipientName = text(0, 100);

const courierHints = {
  /** Up to three courier codes (docs/service.md 3.2); they help the service to detect the courier. */
  courierCode: optionalInput(courierCodes),
  /** ISO 3166-1 alpha-2 or alpha-3, sent in upper case; the service returns alpha-2 (docs/service.md 3.4). */
  originCountryCode: optionalInput(countryCode),
  /** ISO 3166-1 alpha-2 or alpha-3, sent in upper case (docs/service.md 3.4); some couriers require it (3.15). */
  destinationCountryCode: optionalInput(countryCode),
  /** 1 to 32 characters from `A-Z a-z 0-9 _ - . /` and space (docs/service.md 3.5); some couriers require it (3.15). */
  destinationPostCode: optionalInput(postCode),
  /** ISO 8601 date, at most 180 days old (docs/service.md 3.6). */
  shippingDate: optionalInput(shippingDate),
};

/** The schema of `TrackerInput`. */
export const trackerInputSchema = record({
  trackingNumber,
  ...courierHints,
  /** Your own identifier, at most 100 characters, unique among your active trackers (docs/service.md 3.13). */
  clientTrackerId: optionalInput(text(0, 100, quoteValue)),
  /** Free text, at most 100 characters. */
  shipmentReference: optionalInput(text(0, 100)),
  /** At most 200 characters (docs/service.md 3.14); compared when the service looks for the same payload (4.2). */
  courierName: optionalInput(courierName),
  /** At most 1,000 characters (docs/service.md 3.14); compared when the service looks for the same payload (4.2). */
  trackingUrl: optionalInput(trackingUrl),
  /** At most 50 characters (docs/service.md 3.14). */
  orderNumber: optionalInput(text(0, 50)),
  /** At most 255 characters (docs/service.md 3.14). */
  title: optionalInput(text(0, 255)),
  /** The person who is notified; some couriers report more if they know the name (docs/service.md 3.16). */
  recipient: optionalInput(
    record({
      /** E-mail address, at most 254 characters (docs/service.md 3.7). */
      email: optionalInput(email),
      /** At most 100 characters (docs/service.md 3.7). */
      name: optionalInput(recipientName),
    }),
  ),
  settings: optionalInput(
    record({
      /** The only courier codes to track with, or a boolean; sent as given (docs/service.md 3.8). */
      restrictTrackingToCourierCode: optionalInput(courierRestriction),
    }),
  ),
});
/**
 * A creation request; only `trackingNumber` is required, and null counts as left out. Unknown fields do not compile, but are
 * sent as given at run time, because the service may know them before this package does.
 */
export interface TrackerInput extends z.input<typeof trackerInputSchema> {
  // The field is repeated, because TypeScript's errors name an interface only when it adds a field.
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .` (docs/service.md 3.1); the service returns it in upper case. */
  trackingNumber: string;
}
export type TrackerRequest = z.output<typeof trackerInputSchema>;

/** The schema of `TrackingSearchInput`. */
export const trackingSearchInputSchema = record({
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber,
  ...courierHints,
});
/** The input of a per-call search (docs/service.md 3.17). */
export interface TrackingSearchInput extends z.input<typeof trackingSearchInputSchema> {
  /** 5 to 50 characters from `A-Z a-z 0-9 - _ / .`. */
  trackingNumber: string;
}

/** The schema of `TrackerUpdate`. */
export const trackerUpdateSchema = record({
  /** `false` archives the tracker and frees its `clientTrackerId` (docs/service.md 5.2). */
  isSubscribed: optionalInput(z.boolean()),
  ...courierHints,
  /** At most 200 characters (docs/service.md 3.14). */
  courierName: optionalInput(courierName),
  /** At most 1,000 characters (docs/service.md 3.14). */
  trackingUrl: optionalInput(trackingUrl),
  recipient: optionalInput(
    record({
      /** At most 100 characters (docs/service.md 3.7). */
      name: optionalInput(recipientName),
      /** An update cannot change it (docs/service.md 3.11). */
      email: optionalInput(z.never(expected('to be left out (an update cannot change it)'))),
    }),
  ),
}).refine(hasValue, { ...expected('to have at least one field', () => 'none', 'patch') });
/** The changes of `trackers.update`; at least one field is not null (docs/service.md 3.11). */
export interface TrackerUpdate extends z.input<typeof trackerUpdateSchema> {
  /** `false` archives the tracker and frees its `clientTrackerId` (docs/service.md 5.2). */
  isSubscribed?: boolean | null | undefined;
}
export type TrackerUpdateRequest = z.output<typeof trackerUpdateSchema>;

/** The schema of `Tracker`. */
export const trackerSchema = namedRecord<Tracker>()({
  /** Allocated by the service: store it. */
  trackerId: z.string(),
  /** In upper case, even if sent in lower case (docs/service.md 4.7). */
  trackingNumber: z.string(),
  /** `false`: the service has stopped tracking the shipment; stop polling (docs/service.md 5.1). */
  isTracked: z.boolean(),
  /** Your own identifier, if you sent one. */
  clientTrackerId: nullish(z.string()),
  shipmentReference: nullish(z.string()),
  /** The codes of the couriers that the service asks for results. */
  courierCode: nullish(textOrTexts),
  /** The recipient's name as you sent it (docs/service.md 2.18). The name that the courier reports is in `shipment.recipient`. */
  recipient: nullish(record({ name: nullish(z.string()) })),
  /** False once the tracker is archived (docs/service.md 5.2). */
  isSubscribed: nullish(z.boolean()),
  /** ISO 8601 date-time. */
  createdAt: nullish(z.string()),
});
/** A tracker as the API returns it (docs/service.md 2.1). */
export interface Tracker extends FieldsOf<typeof trackerSchema> {}

const {
  isTracked: _isTracked,
  courierCode: _courierCode,
  recipient: _recipient,
  ...pushedTrackerFields
} = trackerSchema.shape;
export const webhookTrackerSchema = namedRecord<WebhookTracker>()({
  ...pushedTrackerFields,
  /** Allocated by the service; it may be missing if there is a `clientTrackerId`. */
  trackerId: nullish(trackerSchema.shape.trackerId),
  trackingNumber: nullish(trackerSchema.shape.trackingNumber),
});
/**
 * The tracker of a push. Match it to your record by `trackerId` or `clientTrackerId`: at least one of these ids is present
 * (docs/service.md 8.10). In a push of the flat shape (docs/service.md 8.2), the ids may be the only fields. No push
 * has `isTracked`.
 */
export interface WebhookTracker extends FieldsOf<typeof webhookTrackerSchema> {}

export const DEFAULT_PAGE_SIZE = 100;
export const MAX_PAGE_SIZE = 500;
const PAGE_RULE = expected('to be a whole number of at least 1', quoteValue);
const PAGE_SIZE_RULE = expected(`to be a whole number from 1 to ${MAX_PAGE_SIZE}`, quoteValue);

/** The schema of `TrackerListQuery`. */
export const trackerListQuerySchema = z.object({
  /** Page number, from 1. Default 1. */
  page: optionalInput(z.int(PAGE_RULE).min(1)),
  /** Trackers per page, 1 to 500. Default 100. */
  limit: optionalInput(z.int(PAGE_SIZE_RULE).min(1).max(MAX_PAGE_SIZE)),
  /** `1`: oldest first; `-1`: newest first. Default: oldest first, as observed (docs/service.md 2.17). */
  sort: optionalInput(z.literal([1, -1])),
});
/** Query of `trackers.list` (docs/service.md 3.10). */
export interface TrackerListQuery extends z.input<typeof trackerListQuerySchema> {}

/** One page of trackers. */
export interface TrackerPage {
  /** The trackers of the page, in the order of `sort`. */
  readonly trackers: Tracker[];
  /** The number of this page, from 1. */
  readonly page: number;
  /** The page size of the request. */
  readonly limit: number;
  /** True if the page is full, so that there may be another page. */
  readonly hasMore: boolean;
}
