// Specification: service.md 4, 8; public contract

import { z } from 'zod';
import { expected, kindOf } from '../common/validation.ts';
import { apiErrorItemSchema } from './api-error.ts';
import { observed, openEnum, type RecordSchema, record } from './record.ts';
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

const bulkItemFields = {
  /** What became of it. */
  itemStatus: observed(openEnum(['created', 'existing', 'error'])),
  /** The item as the service read it. */
  inputData: z.unknown().optional(),
  /** The tracker, new or existing. */
  tracker: observed(trackerSchema),
  /** Why there is none. */
  errors: observed(z.array(apiErrorItemSchema)),
};
/** The type of `bulkItemSchema`. */
export interface BulkItemSchema extends RecordSchema<typeof bulkItemFields> {}
/** The schema of `BulkItem`. */
export const bulkItemSchema: BulkItemSchema = record(bulkItemFields);
/** What became of one item of a bulk request. */
export type BulkItem = z.output<typeof bulkItemSchema>;

/** The schema of `BulkResult`. */
export const bulkResultSchema = record({
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
  data: observed(z.array(bulkItemSchema)),
  /** Why the whole request failed, when it did. */
  error: observed(apiErrorItemSchema),
});
/** The envelope of the bulk endpoint, also when some or all items failed. */
export type BulkResult = z.output<typeof bulkResultSchema>;
