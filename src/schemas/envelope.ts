import { z } from 'zod';
import {
  compileWhenHot,
  errorMap,
  expected,
  kindOf,
  MAX_ISSUES,
  toValidationIssues,
  type ValidationIssue,
} from '../common/validation.ts';
import { isRequired } from './record.ts';

/** Marks a response that is well-formed and holds no results yet. */
export const NO_RESULTS_YET = Symbol('no results yet');

/** Takes the payload out of a response body, or names what the body lacks. */
export type Unwrap = (body: unknown) => { readonly payload: unknown } | { readonly mismatch: string };

type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads `data.<key>`, or `data` itself when the service sends the bare form. */
export function inData(key: string): Unwrap {
  return (body) => {
    if (!isJsonObject(body) || !Object.hasOwn(body, 'data')) return { mismatch: 'an object with `data`' };
    const { data } = body;
    return { payload: isJsonObject(data) && Object.hasOwn(data, key) ? data[key] : data };
  };
}

/** Reads a single record from `data.<key>` or `data`, or takes the whole body when that has the record's id. */
export function recordInData(key: string, idField: string): Unwrap {
  const unwrapData = inData(key);
  return (body) => {
    const isRecord = isJsonObject(body) && !Object.hasOwn(body, 'data') && Object.hasOwn(body, idField);
    return isRecord ? { payload: body } : unwrapData(body);
  };
}

/**
 * Reads the first item of `data.<key>[]`, or the bare form; an empty array means that there are no results yet.
 *
 * @param recordFields - the bare form has at least one of these fields, so that an object of another kind is not taken for
 * an empty record
 */
export function firstInData(key: string, recordFields: readonly string[]): Unwrap {
  const unwrapList = inData(key);
  return (body) => {
    const list = unwrapList(body);
    if ('mismatch' in list) return list;
    const { payload } = list;
    if (Array.isArray(payload)) return { payload: payload.length === 0 ? NO_RESULTS_YET : payload[0] };
    const isOtherKind = isJsonObject(payload) && !recordFields.some((field) => Object.hasOwn(payload, field));
    if (!isOtherKind) return list;
    const fields = recordFields.map((field) => `\`${field}\``).join(' or ');
    return { mismatch: `\`data.${key}\`, or \`data\` with ${fields}` };
  };
}

/** Takes the body as it is. */
export const wholeBody: Unwrap = (body) => ({ payload: body });

/** Takes the body of the bulk endpoint as it is, when it has a status or a list of items. */
export const bulkBody: Unwrap = (body) => {
  const isBulk = isJsonObject(body) && (typeof body['status'] === 'string' || Array.isArray(body['data']));
  return isBulk ? { payload: body } : { mismatch: 'an object with `status` or a list in `data`' };
};

/** Reads `data.summary` of a resend; a missing one counts as empty, since the status already says that the resend was accepted. */
export const resendSummary: Unwrap = (body) => {
  const data = isJsonObject(body) ? body['data'] : undefined;
  const summary = isJsonObject(data) ? data['summary'] : undefined;
  return { payload: isJsonObject(summary) ? summary : {} };
};

/** What happens to a response with fields that break its schema: they are kept as they came, or the call rejects. */
export type InvalidResponseMode = 'keep' | 'throw';

/** A payload with the fields that break its schema; `data` is missing when the payload cannot be used. */
export type CheckedResponse<T> = {
  /** The first 20 breaches. */
  readonly mismatched: readonly ValidationIssue[];
  /** How many breaches were found; more than `mismatched` has when the check stopped there. */
  readonly total: number;
} & ({ readonly data: T; readonly isUsable: true } | { readonly data?: undefined; readonly isUsable: false });

/**
 * Checks a payload part by part, so that a list of a million wrong items costs no more than its first 20 issues.
 * Nothing is dropped: a field that breaks its schema is kept as it came, with the schema's defaults beside it.
 *
 * @param schema - the response schema of an endpoint
 * @param payload - parsed JSON; not changed
 * @param mode - `throw` makes every breach unusable. Both modes reject a payload of another kind, a single record
 * without its id, and an item of a list of records that is no object
 */
export function checkResponse<T>(
  schema: z.ZodType<T>,
  payload: unknown,
  mode: InvalidResponseMode,
): CheckedResponse<T> {
  const check = new ResponseCheck();
  const data = check.read(schema, payload, []);
  const { issues, isRejected } = check;
  const mismatched = issues.slice(0, MAX_ISSUES);
  if (isRejected || (mode === 'throw' && issues.length > 0))
    return { isUsable: false, mismatched, total: issues.length };
  // Everything that the client itself depends on is checked; `mismatched` names the other fields that break the type.
  return { data: data as T, isUsable: true, mismatched, total: issues.length };
}

type Path = readonly (string | number)[];

/** Reads one payload and collects its issues. */
class ResponseCheck {
  /** Holds at most one issue more than are reported, so that the reader learns that there are more. */
  readonly issues: ValidationIssue[] = [];
  isRejected = false;

  /** Returns what the schema makes of a value, or the value as it came when it breaks the schema. */
  read(schema: z.ZodType, value: unknown, path: Path): unknown {
    const plan = planOf(schema);
    if (plan.kind === 'list') return this.#readList(schema, plan, value, path);
    if (plan.kind === 'record' && isJsonObject(value)) return this.#readRecord(plan, value, path);
    if (path.length === 0) this.isRejected = true;
    return this.#parse(schema, value, path);
  }

  #readList(
    schema: z.ZodType,
    { item: itemSchema, isRequired }: ListPlan,
    value: unknown,
    path: Path,
  ): unknown {
    const mustBeRecords = isRequired || path.length === 0;
    if (!Array.isArray(value)) {
      const missing = compileWhenHot(schema).safeParse(value);
      if (missing.success) return missing.data;
      this.isRejected ||= mustBeRecords;
      return this.#parse(schema, value, path);
    }
    const items: readonly unknown[] = value;
    const itemPlan = planOf(itemSchema);
    const strayIndex = mustBeRecords ? findStray(items, itemPlan) : -1;
    if (strayIndex >= 0) {
      this.isRejected = true;
      this.issues.push(strayIssue([...path, strayIndex], items[strayIndex], itemPlan));
      return items;
    }
    let copy: unknown[] | undefined;
    for (let index = 0; index < items.length; index += 1) {
      // Nothing more is reported, so only the lists of records inside of the other items need to be read.
      if (this.#isFull && !holdsRequiredLists(itemPlan)) break;
      const read = this.read(itemSchema, items[index], [...path, index]);
      if (read === items[index]) continue;
      copy ??= [...items];
      copy[index] = read;
    }
    return copy ?? items;
  }

  #readRecord({ flat, lists, ids }: RecordPlan, value: JsonObject, path: Path): unknown {
    const record = this.#parse(flat, value, path);
    if (path.length === 0 && this.issues.some((issue) => ids.includes(String(issue.path[0]))))
      this.isRejected = true;
    if (lists.length === 0) return record;
    const read = lists.map(
      ([field, schema]) => [field, this.read(schema, value[field], [...path, field])] as const,
    );
    const changed = read.filter(([field, list]) => list !== value[field]);
    return changed.length === 0 ? record : { ...Object(record), ...Object.fromEntries(changed) };
  }

  #parse(schema: z.ZodType, value: unknown, path: Path): unknown {
    if (this.#isFull) return value;
    const result = compileWhenHot(schema).safeParse(value);
    if (result.success) return result.data;
    // Parsed again for the messages, so that a good response never pays for them.
    const { error } = schema.safeParse(value, { error: errorMapAt(path) });
    const found = error === undefined ? [] : toValidationIssues(error);
    for (const issue of found.slice(0, MAX_ISSUES + 1 - this.issues.length))
      this.issues.push({ ...issue, path: [...path, ...issue.path] });
    return value;
  }

  get #isFull(): boolean {
    return this.issues.length > MAX_ISSUES;
  }
}

/** Returns the index of the first item that is no record, or -1; a loop, since a list may have millions of items. */
function findStray(items: readonly unknown[], plan: Plan): number {
  for (let index = 0; index < items.length; index += 1) {
    if (!isOfKind(items[index], plan)) return index;
  }
  return -1;
}

/** Tells whether an item may be a record: one without an id of its own needs at least one of its fields. */
function isOfKind(item: unknown, plan: Plan): boolean {
  if (!isJsonObject(item)) return false;
  return plan.kind !== 'record' || plan.ids.length > 0 || plan.fields.some((field) => field in item);
}

function strayIssue(path: Path, item: unknown, plan: Plan): ValidationIssue {
  const needsField = plan.kind === 'record' && isJsonObject(item);
  const rule = needsField ? `to have one of ${plan.fields.join(', ')}` : 'to be an object';
  return {
    path,
    code: 'invalid_type',
    message: expected(rule, kindOf, 'data').error({ path: [...path], input: item }),
  };
}

function errorMapAt(path: Path): z.core.$ZodErrorMap {
  const describe = errorMap('data');
  return (issue) => describe({ ...issue, path: [...path, ...(issue.path ?? [])] });
}

interface ListPlan {
  readonly kind: 'list';
  readonly item: z.ZodType;
  readonly isRequired: boolean;
}

interface RecordPlan {
  readonly kind: 'record';
  /** The schema without the fields that hold lists. */
  readonly flat: z.ZodType;
  /** The fields that hold lists, perhaps deeper inside. */
  readonly lists: readonly (readonly [field: string, schema: z.ZodType])[];
  /** All fields that the schema knows. */
  readonly fields: readonly string[];
  /** The required ones of them that are no lists. */
  readonly ids: readonly string[];
}

/** How a schema is checked: lists item by item, records apart from their lists, anything else at once. */
type Plan = ListPlan | RecordPlan | { readonly kind: 'value' };

const plans = new WeakMap<z.ZodType, Plan>();

function planOf(schema: z.ZodType): Plan {
  const known = plans.get(schema);
  if (known !== undefined) return known;
  const plan = makePlan(schema);
  plans.set(schema, plan);
  return plan;
}

function makePlan(schema: z.ZodType): Plan {
  const inner = withoutWrappers(schema);
  // Sound: every schema of this package is a classic one, and so are its parts.
  if (inner instanceof z.ZodArray)
    return { kind: 'list', item: inner.element as z.ZodType, isRequired: isRequired(inner) };
  if (!(inner instanceof z.ZodObject)) return { kind: 'value' };
  const fields = Object.entries(inner.shape as Record<string, z.ZodType>);
  const lists = fields.filter(([, field]) => holdsLists(planOf(field)));
  const omitted: Record<string, true> = Object.fromEntries(lists.map(([field]) => [field, true]));
  const flat = lists.length === 0 ? inner : inner.omit(omitted);
  const ids = fields.filter(([, field]) => isRequired(field)).map(([field]) => field);
  return { kind: 'record', flat, lists, fields: Object.keys(inner.shape), ids };
}

function holdsLists(plan: Plan): boolean {
  return plan.kind === 'list' || (plan.kind === 'record' && plan.lists.length > 0);
}

function holdsRequiredLists(plan: Plan): boolean {
  if (plan.kind === 'list') return plan.isRequired;
  return plan.kind === 'record' && plan.lists.some(([, field]) => holdsRequiredLists(planOf(field)));
}

/** Returns the list or record inside of what makes a field optional or fills it in. */
function withoutWrappers(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return withoutWrappers(schema.unwrap());
  return schema instanceof z.ZodPipe ? withoutWrappers(schema.in) : schema;
}
