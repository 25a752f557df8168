import { z } from 'zod';
import { expected, kindOf } from '../validation.ts';
import { apiErrorItemSchema } from './api-error.ts';
import { observed, openEnum, record } from './record.ts';
import { trackerInputSchema, trackerSchema } from './tracker.ts';

/** The most trackers one bulk request may create (service.md 8). */
export const MAX_BULK_ITEMS = 100;

function gotItems(input: unknown): string {
  return Array.isArray(input) ? String(input.length) : kindOf(input);
}

/** Body of a bulk creation: 1 to 100 creation requests. */
export const bulkInputSchema = z
  .array(trackerInputSchema, expected('to be an array', kindOf, 'items'))
  .min(1, expected(`to have 1 to ${MAX_BULK_ITEMS} items`, gotItems, 'items'))
  .max(MAX_BULK_ITEMS, expected(`to have 1 to ${MAX_BULK_ITEMS} items`, gotItems, 'items'));

/** What became of one item of a bulk request. */
export const bulkItemSchema = record({
  itemStatus: observed(openEnum(['created', 'existing', 'error'])),
  /** The item as the service read it. */
  inputData: z.unknown().optional(),
  tracker: observed(trackerSchema),
  errors: observed(z.array(apiErrorItemSchema)),
});
/** What became of one item of a bulk request. */
export type BulkItem = z.output<typeof bulkItemSchema>;

/** The envelope of the bulk endpoint (service.md 4), also when some or all items failed. */
export const bulkResultSchema = record({
  /** `success`, `partial` (some items failed) or `error` (none was created). */
  status: openEnum(['success', 'partial', 'error']),
  summary: observed(
    record({
      totalInputs: observed(z.number()),
      totalCreated: observed(z.number()),
      totalExisting: observed(z.number()),
      totalErrors: observed(z.number()),
    }),
  ),
  data: observed(z.array(bulkItemSchema)),
  /** Why the whole request failed, when it did. */
  error: observed(apiErrorItemSchema),
});
/** The envelope of the bulk endpoint. */
export type BulkResult = z.output<typeof bulkResultSchema>;
