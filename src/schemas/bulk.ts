// Specification: service.md 4, 8; public contract

import { z } from 'zod';
import { expected, kindOf } from '../common/validation.ts';
import { apiErrorItemSchema } from './api-error.ts';
import {
  essential,
  type NamedSchema,
  namedRecord,
  observed,
  openEnum,
  type RecordOf,
  record,
} from './record.ts';
import { trackerInputSchema, trackerSchema } from './tracker.ts';

/** The most trackers one bulk request may create. */
export const MAX_BULK_ITEMS = 100;

function gotItems(input: unknown): string {
  return Array.isArray(input) ? String(input.length) : kindOf(input);
}

/** Body of a bulk creation: 1 to 100 creation requests. */
export const bulkInputSchema = z
  .array(trackerInputSchema, expected('to be an array', kindOf, 'items'))
  .min(1, expected(`to have 1 to ${MAX_BULK_ITEMS} items`, gotItems, 'items'))
  .max(MAX_BULK_ITEMS, expected(`to have 1 to ${MAX_BULK_ITEMS} items`, gotItems, 'items'));

const bulkInputDataFields = {
  /** The number, as it was sent or in upper case. */
  trackingNumber: observed(z.string()),
  /** Your own identifier. */
  clientTrackerId: observed(z.string()),
  /** Free text. */
  shipmentReference: observed(z.string()),
  /** One courier code or several. */
  courierCode: observed(z.union([z.string(), z.array(z.string())])),
  /** ISO 3166-1 code. */
  originCountryCode: observed(z.string()),
  /** ISO 3166-1 code. */
  destinationCountryCode: observed(z.string()),
  /** Post code. */
  destinationPostCode: observed(z.string()),
  /** ISO 8601 date. */
  shippingDate: observed(z.string()),
};
export interface BulkInputDataSchema extends NamedSchema<typeof bulkInputDataFields, BulkInputData> {}
const bulkInputDataSchema: BulkInputDataSchema = namedRecord(bulkInputDataFields);
/** An input of a bulk request as the service read it. */
export interface BulkInputData extends RecordOf<typeof bulkInputDataFields> {}

const bulkItemFields = {
  /** What became of it. */
  itemStatus: observed(openEnum(['created', 'existing', 'error'])),
  /** The item as the service read it. */
  inputData: observed(bulkInputDataSchema),
  /** The tracker, new or existing. */
  tracker: observed(trackerSchema),
  /** Why there is none. */
  errors: observed(z.array(apiErrorItemSchema)),
};
export interface BulkItemSchema extends NamedSchema<typeof bulkItemFields, BulkItem> {}
/** The schema of `BulkItem`. */
export const bulkItemSchema: BulkItemSchema = namedRecord(bulkItemFields);
/** What became of one item of a bulk request. */
export interface BulkItem extends RecordOf<typeof bulkItemFields> {}

const bulkResultFields = {
  /** `success`, `partial` (some items failed) or `error` (none was created). */
  status: openEnum(['success', 'partial', 'error']),
  /** How many items came out how. */
  summary: observed(
    record({
      /** All items. */
      totalInputs: observed(z.number()),
      /** New trackers. */
      totalCreated: observed(z.number()),
      /** Trackers that matched the same payload. */
      totalExisting: observed(z.number()),
      /** Items that failed. */
      totalErrors: observed(z.number()),
    }),
  ),
  /** The items, matched to the inputs by their `inputData`. */
  data: observed(essential(z.array(bulkItemSchema))),
  /** Why the whole request failed, when it did. */
  error: observed(apiErrorItemSchema),
};
export interface BulkResultSchema extends NamedSchema<typeof bulkResultFields, BulkResult> {}
/** The schema of `BulkResult`. */
export const bulkResultSchema: BulkResultSchema = namedRecord(bulkResultFields);
/** The envelope of the bulk endpoint, also when some or all items failed. */
export interface BulkResult extends RecordOf<typeof bulkResultFields> {}
