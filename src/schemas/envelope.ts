import type { z } from 'zod';
import { errorMap, hotSchema, toValidationIssues, type ValidationIssue } from '../common/validation.ts';
import { isEssential } from './record.ts';

/** Marks a response that is well-formed and holds no results yet. */
export const NO_RESULTS_YET = Symbol('no results yet');

/** Takes the payload out of a response body; or says why it can't, as a rule the reader can check against the body. */
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

/**
 * Reads the first item of `data.<key>[]`, or the bare form; an empty array means that there are no results yet.
 *
 * @param recordFields - what a record of the bare form has at least one of, so that an object of another kind is not
 * taken for an empty record
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

/** Takes the body of the bulk endpoint as it is: with its status, or with items that say by themselves what became of them. */
export const bulkBody: Unwrap = (body) => {
  const isBulk = isJsonObject(body) && (typeof body['status'] === 'string' || Array.isArray(body['data']));
  return isBulk ? { payload: body } : { mismatch: 'an object with `status` or a list in `data`' };
};

/** Reads a list with how many items were sent: items that are none are left out later, and a full page is still full. */
export function pageOf(key: string): Unwrap {
  const unwrapList = inData(key);
  return (body) => {
    const list = unwrapList(body);
    if ('mismatch' in list) return list;
    const { payload } = list;
    if (!Array.isArray(payload)) return { mismatch: `an array in \`data.${key}\`, or as \`data\`` };
    return { payload: { [key]: payload, sent: payload.length } };
  };
}

/** Reads `data.summary` of a resend; without one it is empty, as the status says that the service has taken it. */
export const resendSummary: Unwrap = (body) => {
  const data = isJsonObject(body) ? body['data'] : undefined;
  const summary = isJsonObject(data) ? data['summary'] : undefined;
  return { payload: isJsonObject(summary) ? summary : {} };
};

/** What may differ from its schema: fields nothing depends on, nothing, or everything but the kind of record. */
export type InvalidResponseMode = 'keep' | 'throw' | 'warn';

/** A payload with what of it is not as it should be; without `data` it can't be used. */
export type CheckedResponse<T> = {
  /** The first of what differs, items that were left out before fields that were kept. */
  readonly mismatched: readonly ValidationIssue[];
  /** How much differs in all. */
  readonly total: number;
} & ({ readonly data: T; readonly isUsable: true } | { readonly data?: undefined; readonly isUsable: false });

type Path = readonly PropertyKey[];

/** A page of records that all lack a field would fill megabytes, in every log. */
const MOST_MISMATCHES = 20;

/**
 * Checks a payload. A field that is not what it should be is kept as it came: the service promises few of them, and one
 * odd record must not cost the others. An item of a list that has not even its id is left out. A payload of another
 * kind, or a single record without its id, can't be used, in every mode.
 */
export function checkResponse<T>(
  schema: z.ZodType<T>,
  payload: unknown,
  mode: InvalidResponseMode,
): CheckedResponse<T> {
  const checked = hotSchema(schema).safeParse(payload);
  if (checked.success) return { data: checked.data, isUsable: true, mismatched: [], total: 0 };
  // Once more, for the words, and for what the schema makes of the good fields, which a failure withholds.
  const { error } = schema.safeParse(payload, { error: errorMap('data') });
  // Sound: a schema with promises has made the first check throw.
  const part = schema._zod.run({ value: payload, issues: [] }, { async: false }) as z.core.ParsePayload;
  const broken = part.issues.map(brokenRecord);
  const named = namedIssues(error?.issues ?? [], broken, mode);
  // Asked for as it came, a list may be anything: only what is no record of its kind has nothing to hand over.
  const isNone = part.issues.some(
    (issue, index) => broken[index]?.length === 0 && !(mode === 'warn' && isInnerList(issue)),
  );
  if (isNone || mode === 'throw') return { isUsable: false, ...named };
  const data = mode === 'warn' ? payload : withoutItems(part.value, broken);
  // What anything here depends on was checked; of the other fields `mismatched` says which break the type.
  return { data: data as T, isUsable: true, ...named };
}

function namedIssues(
  issues: readonly z.core.$ZodIssue[],
  broken: readonly (Path | undefined)[],
  mode: InvalidResponseMode,
) {
  const isLeftOut = (index: number) => mode === 'keep' && typeof broken[index]?.at(-1) === 'number';
  const kept = issues.filter((_, index) => !isLeftOut(index));
  const leftOut = issues
    .filter((_, index) => isLeftOut(index))
    .map((issue) => ({ ...issue, message: `${issue.message}; the item is left out` }));
  const mismatched = toValidationIssues({ issues: [...leftOut, ...kept] }, MOST_MISMATCHES);
  return { mismatched, total: issues.length };
}

/** The path of the record that an issue breaks, an item or a part of one: it lacks what makes it a record, or is something else. */
function brokenRecord({ path = [], inst, ...issue }: z.core.$ZodRawIssue): Path | undefined {
  if (path.length === 0) return path;
  if (isEssential(inst)) return path.slice(0, -1);
  return issue['expected'] === 'object' ? path : undefined;
}

function isInnerList({ path = [], ...issue }: z.core.$ZodRawIssue): boolean {
  return path.length > 0 && issue['expected'] === 'array';
}

/** Takes items out of the lists of a value that is ours. */
function withoutItems(value: unknown, paths: readonly (Path | undefined)[]): unknown {
  const indexesOf = new Map<unknown[], Set<PropertyKey | undefined>>();
  for (const path of paths) {
    const index = path?.at(-1);
    const list = path?.slice(0, -1).reduce((holder: unknown, key) => Reflect.get(Object(holder), key), value);
    if (!Array.isArray(list)) continue;
    indexesOf.set(list, (indexesOf.get(list) ?? new Set()).add(index));
  }
  for (const [list, indexes] of indexesOf) {
    const good = list.filter((_, index) => !indexes.has(index));
    list.length = 0;
    for (const item of good) list.push(item);
  }
  return value;
}
