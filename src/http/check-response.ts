import type { z } from 'zod';
import { errorMap } from '../common/messages.ts';
import { isJsonObject, safeParse, toValidationIssues, type ValidationIssue } from '../common/parsing.ts';
import type { Config } from '../config/config.ts';
import { perCallTrackingListSchema, trackingListSchema, trackingSchema } from '../schemas/tracking.ts';

/** A payload, and the list of its fields that break the schema; `data` is missing if the payload cannot be used. */
export type CheckedData<T> = {
  /** The first 20 mismatches. */
  readonly mismatched: readonly ValidationIssue[];
  /** The number of mismatches. In a list of records, counting stops after 20. */
  readonly total: number;
} & ({ readonly data: T; readonly isUsable: true } | { readonly data?: undefined; readonly isUsable: false });

/**
 * Checks a payload. Nothing is dropped: a field that breaks its schema is kept as it came.
 *
 * @param schema - the response schema of an endpoint
 * @param payload - parsed JSON; not changed
 * @param mode - `throw`: any mismatch makes the payload unusable. `keep`: the payload is unusable only if the payload itself or a
 * list of records has a wrong type, if an item of such a list is not an object, or if a single tracker has no valid `trackerId`
 */
export function checkResponse<T>(
  schema: z.ZodType<T>,
  payload: unknown,
  mode: Config['invalidResponse'],
): CheckedData<T> {
  const result = safeParse(schema, payload, { error: errorMap('data') });
  if (result.success) return { data: result.data, isUsable: true, mismatched: [], total: 0 };
  const { issues } = result.error;
  const found = { mismatched: toValidationIssues(result.error), total: issues.length };
  if (mode === 'throw' || issues.some(({ path }) => preventsUse(path))) return { isUsable: false, ...found };
  // The cast covers fields that break the type. The client depends on none of them, and `mismatched` names them.
  return { data: fillEvents(schema, payload) as T, isUsable: true, ...found };
}

/** `data` is the list of a bulk result. */
const RECORD_LIST_FIELDS = ['data', 'events', 'webhooks'];

/** True for the path of the payload, of the id of a single tracker, of a list of records, or of an item of such a list. */
function preventsUse(path: readonly PropertyKey[]): boolean {
  const [field, ...deeperFields] = path.filter((key) => typeof key === 'string');
  if (field === undefined) return true;
  if (deeperFields.length > 0) return false;
  return RECORD_LIST_FIELDS.includes(field) || (field === 'trackerId' && path.length === 1);
}

const RESULT_SCHEMAS: readonly z.ZodType[] = [trackingSchema, trackingListSchema, perCallTrackingListSchema];

/** Adds an empty list of events to results without events, because a schema that does not match sets no defaults. */
function fillEvents(schema: z.ZodType, payload: unknown): unknown {
  if (!RESULT_SCHEMAS.includes(schema)) return payload;
  const fill = (result: unknown) =>
    isJsonObject(result) ? { ...result, events: result['events'] ?? [] } : result;
  return Array.isArray(payload) ? payload.map(fill) : fill(payload);
}
