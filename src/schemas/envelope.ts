import type { z } from 'zod';
import {
  compileWhenHot,
  errorMap,
  isJsonObject,
  toValidationIssues,
  type ValidationIssue,
} from '../common/validation.ts';
import { perCallTrackingListSchema, trackingListSchema, trackingSchema } from './tracking.ts';

/** Marks a response that is well-formed and holds no results yet. */
export const NO_RESULTS_YET = Symbol('no results yet');

/** Takes the payload out of a response body, or names what the body lacks. */
export type Unwrap = (body: unknown) => { readonly payload: unknown } | { readonly missing: string };

/** Reads `data.<key>`, or `data` itself if it has no such key (docs/service.md 2.10). */
export function inData(key: string): Unwrap {
  return (body) => {
    if (!isJsonObject(body) || !Object.hasOwn(body, 'data')) return { missing: '`data`' };
    const { data } = body;
    return { payload: isJsonObject(data) && Object.hasOwn(data, key) ? data[key] : data };
  };
}

/** Reads a single record from `data.<key>` or `data`, or takes the whole body if it has the record's id. */
export function recordInData(key: string, idField: string): Unwrap {
  const unwrapData = inData(key);
  return (body) => {
    const isRecord = isJsonObject(body) && !Object.hasOwn(body, 'data') && Object.hasOwn(body, idField);
    return isRecord ? { payload: body } : unwrapData(body);
  };
}

/**
 * Reads the first item of the list in `data.<key>` or `data`, or a single record there. An empty list means no results yet
 * (docs/service.md 2.11).
 *
 * @param recordFields - a single record has at least one of these fields; without this rule, any object would pass as an empty
 * record
 */
export function firstInData(key: string, recordFields: readonly string[]): Unwrap {
  const unwrapList = inData(key);
  return (body) => {
    const list = unwrapList(body);
    if ('missing' in list) return list;
    const { payload } = list;
    if (Array.isArray(payload)) return { payload: payload.length === 0 ? NO_RESULTS_YET : payload[0] };
    const isOtherKind = isJsonObject(payload) && !recordFields.some((field) => Object.hasOwn(payload, field));
    if (!isOtherKind) return list;
    const fields = [key, ...recordFields].map((field) => `\`data.${field}\``);
    return { missing: `${fields.slice(0, -1).join(', ')} or ${fields.at(-1)}` };
  };
}

/** Takes the body as it is. */
export const wholeBody: Unwrap = (body) => ({ payload: body });

/** Takes the body of the bulk endpoint as it is, if it has a status or a list of items. */
export const bulkBody: Unwrap = (body) => {
  const isBulk = isJsonObject(body) && (typeof body['status'] === 'string' || Array.isArray(body['data']));
  return isBulk ? { payload: body } : { missing: '`status` or `data[]`' };
};

/** Reads `data.summary` of a resend. A missing summary counts as empty, because the status is enough (docs/service.md 8.12). */
export const resendSummary: Unwrap = (body) => {
  const data = isJsonObject(body) ? body['data'] : undefined;
  const summary = isJsonObject(data) ? data['summary'] : undefined;
  return { payload: isJsonObject(summary) ? summary : {} };
};

/** The handling of fields that break the schema of a response: keep them, or reject the call. */
export type InvalidResponseMode = 'keep' | 'throw';

/** A payload, and the list of its fields that break the schema; `data` is missing if the payload cannot be used. */
export type CheckedResponse<T> = {
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
  mode: InvalidResponseMode,
): CheckedResponse<T> {
  const result = compileWhenHot(schema).safeParse(payload, { error: errorMap('data') });
  if (result.success) return { data: result.data, isUsable: true, mismatched: [], total: 0 };
  const { issues } = result.error;
  const found = { mismatched: toValidationIssues(result.error), total: issues.length };
  if (mode === 'throw' || issues.some(({ path }) => preventsUse(path))) return { isUsable: false, ...found };
  // The cast covers fields that break the type. The client depends on none of them, and `mismatched` names them.
  return { data: fillEvents(schema, payload) as T, isUsable: true, ...found };
}

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
