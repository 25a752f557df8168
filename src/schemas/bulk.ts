import * as z from 'zod';
import { expected, kindOf } from '../common/messages.ts';
import { apiErrorItemSchema } from './api-error.ts';
import {
  booleanOrTexts,
  type FieldsOf,
  listOf,
  namedRecord,
  nullish,
  openEnum,
  record,
  textOrTexts,
} from './record.ts';
import { trackerInputSchema, trackerSchema } from './tracker.ts';

/** Maximum number of items in a bulk request (docs/service.md 3.9). */
export const MAX_BULK_ITEMS = 100;
export const BULK_STATUSES = ['success', 'partial', 'error'] as const;
export const ITEM_STATUSES = ['created', 'existing', 'error'] as const;

const rightSize = expected(
  `to have 1 to ${MAX_BULK_ITEMS} items (\`trackers.createMany\` takes any number)`,
  kindOf,
  'items',
);

/** The body of a bulk request. The number of items is checked before the items. */
export const bulkInputSchema = z
  .array(z.unknown(), expected('to be an array', kindOf, 'items'))
  .min(1, rightSize)
  .max(MAX_BULK_ITEMS, rightSize)
  .pipe(z.array(trackerInputSchema));

const anyText = nullish(z.string());

const bulkInputDataSchema = namedRecord<BulkInputData>()({
  trackingNumber: anyText,
  clientTrackerId: anyText,
  shipmentReference: anyText,
  courierCode: nullish(textOrTexts),
  courierName: anyText,
  originCountryCode: anyText,
  destinationCountryCode: anyText,
  destinationPostCode: anyText,
  shippingDate: anyText,
  trackingUrl: anyText,
  orderNumber: anyText,
  title: anyText,
  recipient: nullish(record({ email: anyText, name: anyText })),
  settings: nullish(record({ restrictTrackingToCourierCode: nullish(booleanOrTexts) })),
});
/** An input of a bulk request as the service understood it. */
export interface BulkInputData extends FieldsOf<typeof bulkInputDataSchema> {}

export const bulkItemSchema = namedRecord<BulkItem>()({
  itemStatus: nullish(openEnum(ITEM_STATUSES)),
  inputData: nullish(bulkInputDataSchema),
  tracker: nullish(trackerSchema),
  /** The reasons why there is no tracker. */
  errors: nullish(listOf(apiErrorItemSchema)),
});
/** The outcome of one item of a bulk request (docs/service.md 7.8). */
export interface BulkItem extends FieldsOf<typeof bulkItemSchema> {}

/** The schema of `BulkResult`. */
export const bulkResultSchema = namedRecord<BulkResult>()({
  /** `success`, `partial` (some items failed) or `error` (none was created). */
  status: openEnum(BULK_STATUSES),
  summary: nullish(
    record({
      totalInputs: nullish(z.number()),
      totalCreated: nullish(z.number()),
      /** Inputs that matched an existing tracker with the same payload (docs/service.md 4.2). */
      totalExisting: nullish(z.number()),
      totalErrors: nullish(z.number()),
    }),
  ),
  /** The outcomes of the items; `inputData` shows which input an item belongs to. */
  data: nullish(listOf(bulkItemSchema)),
  /** The reason why the whole request failed, if it did. */
  error: nullish(apiErrorItemSchema),
});
/** The envelope of the bulk endpoint, also if some or all items failed (docs/service.md 7.2). */
export interface BulkResult extends FieldsOf<typeof bulkResultSchema> {}
