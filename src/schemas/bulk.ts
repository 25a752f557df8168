import * as z from 'zod';
import { expected, kindOf } from '../common/validation.ts';
import { apiErrorItemSchema } from './api-error.ts';
import {
  booleanOrTexts,
  listOf,
  type NamedSchema,
  namedRecord,
  nullish,
  openEnum,
  type RecordOf,
  record,
  textOrTexts,
} from './record.ts';
import { trackerInputSchema, trackerSchema } from './tracker.ts';

/** Most items of a bulk request (docs/service.md 3.9). */
export const MAX_BULK_ITEMS = 100;
/** Outcomes of a bulk request. */
export const BULK_STATUSES = ['success', 'partial', 'error'] as const;
/** Outcomes of one item of a bulk request. */
export const ITEM_STATUSES = ['created', 'existing', 'error'] as const;

const rightSize = expected(`to have 1 to ${MAX_BULK_ITEMS} items`, kindOf, 'items');

/** The body of a bulk request. The number of items is checked before the items. */
export const bulkInputSchema = z
  .array(z.unknown(), expected('to be an array', kindOf, 'items'))
  .min(1, rightSize)
  .max(MAX_BULK_ITEMS, rightSize)
  .pipe(z.array(trackerInputSchema));

const anyText = nullish(z.string());

const bulkInputDataFields = {
  /** The number, as it was sent or in upper case. */
  trackingNumber: anyText,
  /** Your own identifier. */
  clientTrackerId: anyText,
  /** Free text. */
  shipmentReference: anyText,
  /** One courier code or several. */
  courierCode: nullish(textOrTexts),
  /** The courier's name. */
  courierName: anyText,
  /** ISO 3166-1 code. */
  originCountryCode: anyText,
  /** ISO 3166-1 code. */
  destinationCountryCode: anyText,
  /** Post code. */
  destinationPostCode: anyText,
  /** ISO 8601 date. */
  shippingDate: anyText,
  /** Where the shipment can be tracked. */
  trackingUrl: anyText,
  /** Your order's number. */
  orderNumber: anyText,
  /** A title of your own. */
  title: anyText,
  /** Who is notified. */
  recipient: nullish(record({ email: anyText, name: anyText })),
  /** How the service tracks. */
  settings: nullish(
    record({
      /** A boolean, one courier code or several. */
      restrictTrackingToCourierCode: nullish(booleanOrTexts),
    }),
  ),
};
const bulkInputDataSchema: NamedSchema<typeof bulkInputDataFields, BulkInputData> =
  namedRecord(bulkInputDataFields);
/** An input of a bulk request as the service understood it. */
export interface BulkInputData extends RecordOf<typeof bulkInputDataFields> {}

const bulkItemFields = {
  /** The outcome. */
  itemStatus: nullish(openEnum(ITEM_STATUSES)),
  /** The input as the service understood it. */
  inputData: nullish(bulkInputDataSchema),
  /** The tracker, new or existing. */
  tracker: nullish(trackerSchema),
  /** The reasons why there is no tracker. */
  errors: nullish(listOf(apiErrorItemSchema)),
};
/** The schema of `BulkItem`. */
export const bulkItemSchema: NamedSchema<typeof bulkItemFields, BulkItem> = namedRecord(bulkItemFields);
/** The outcome of one item of a bulk request. */
export interface BulkItem extends RecordOf<typeof bulkItemFields> {}

const bulkResultFields = {
  /** `success`, `partial` (some items failed) or `error` (none was created). */
  status: openEnum(BULK_STATUSES),
  /** The number of items with each outcome. */
  summary: nullish(
    record({
      /** All items. */
      totalInputs: nullish(z.number()),
      /** New trackers. */
      totalCreated: nullish(z.number()),
      /** Trackers that matched the same payload. */
      totalExisting: nullish(z.number()),
      /** Items that failed. */
      totalErrors: nullish(z.number()),
    }),
  ),
  /** The items, matched to the inputs by their `inputData`. */
  data: nullish(listOf(bulkItemSchema)),
  /** The reason why the whole request failed, when it did. */
  error: nullish(apiErrorItemSchema),
};
/** The schema of `BulkResult`. */
export const bulkResultSchema: NamedSchema<typeof bulkResultFields, BulkResult> =
  namedRecord(bulkResultFields);
/** The envelope of the bulk endpoint, also when some or all items failed. */
export interface BulkResult extends RecordOf<typeof bulkResultFields> {}
