import type { z } from 'zod';
import { errorMap, hotSchema, toValidationIssues, type ValidationIssue } from '../common/validation.ts';
import { isEssential } from './record.ts';

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

/** The path of the record that an issue breaks: it lacks what makes it a record, or is something else altogether. */
function brokenRecord({ path = [], code, inst, ...issue }: z.core.$ZodRawIssue): Path | undefined {
  if (path.length === 0) return path;
  if (isEssential(inst)) return path.slice(0, -1);
  const isOtherKind = code === 'invalid_type' && 'expected' in issue && issue['expected'] === 'object';
  return isOtherKind && typeof path.at(-1) === 'number' ? path : undefined;
}

function isInnerList({ path = [], ...issue }: z.core.$ZodRawIssue): boolean {
  return path.length > 0 && issue['expected'] === 'array';
}

/** Takes items out of the lists of a value that is ours. */
function withoutItems(value: unknown, paths: readonly (Path | undefined)[]): unknown {
  const indexesOf = new Map<unknown[], Set<PropertyKey>>();
  for (const path of paths) {
    const index = path?.at(-1);
    const list = path?.slice(0, -1).reduce((holder: unknown, key) => Reflect.get(Object(holder), key), value);
    if (typeof index !== 'number' || !Array.isArray(list)) continue;
    indexesOf.set(list, (indexesOf.get(list) ?? new Set()).add(index));
  }
  for (const [list, indexes] of indexesOf) {
    const good = list.filter((_, index) => !indexes.has(index));
    list.length = 0;
    for (const item of good) list.push(item);
  }
  return value;
}
