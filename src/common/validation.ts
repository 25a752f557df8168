import * as z from 'zod';

/** One broken rule. */
export interface ValidationIssue {
  /** Path to the value, outermost key first; empty for the value itself. */
  readonly path: readonly (string | number)[];
  /** Stable name of the broken rule, e.g. `too_big`, `invalid_type` or `shipping_date_outdated`. */
  readonly code: string;
  /** A text such as "Expected `field` to be …, got …", which never shows the value. */
  readonly message: string;
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names the kind of a value without showing it, because a secret may stand in the wrong field. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'string') {
    if (value === '') return 'an empty string';
    return `a string of ${value.length} character${value.length === 1 ? '' : 's'}`;
  }
  if (typeof value === 'number') return Number.isFinite(value) ? 'a number' : String(value);
  if (typeof value === 'undefined') return 'undefined';
  if (typeof value === 'object') return value instanceof Date ? 'a Date' : 'an object';
  return `a ${typeof value}`;
}

/** Formats a path as a reader would write it: `items[3].recipient.email`. */
export function formatPath(path: readonly PropertyKey[], root?: string): string {
  let text = '';
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`;
    else text += text === '' ? String(key) : `.${String(key)}`;
  }
  if (text === '') return root ?? 'value';
  return text.startsWith('[') ? `${root ?? 'items'}${text}` : text;
}

/** Builds a zod error option that reads "Expected `field` to be …, got …"; `rootName` names a value without a path. */
export function expected(
  rule: string,
  got: (input: unknown) => string = kindOf,
  rootName?: string,
): { error: (issue: { path?: PropertyKey[] | undefined; input?: unknown }) => string } {
  return {
    error: (issue) =>
      `Expected \`${formatPath(issue.path ?? [], rootName)}\` ${rule}, got ${got(issue.input)}`,
  };
}

/** Builds messages for the issues that zod raises by itself. */
export function errorMap(name: string): z.core.$ZodErrorMap {
  return (issue) => {
    const isSize = issue.code === 'too_big' || issue.code === 'too_small';
    const got = isSize && typeof issue.input === 'number' ? String(issue.input) : kindOf(issue.input);
    return `Expected \`${formatPath(issue.path ?? [], name)}\` ${describeRule(issue)}, got ${got}`;
  };
}

function describeRule(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type')
    return `to be ${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
  if (issue.code === 'invalid_value') return `to be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'too_big') return `to be at most ${issue.maximum}`;
  if (issue.code === 'too_small') return `to be at least ${issue.minimum}`;
  return 'to have a valid value';
}

/** Maximum number of reported issues, because more would fill every log. */
export const MAX_ISSUES = 20;

/** Turns the first zod issues into ours; a `code` in the `params` of a custom issue is the rule's own name. */
export function toValidationIssues(error: {
  readonly issues: readonly z.core.$ZodIssue[];
}): ValidationIssue[] {
  return error.issues.slice(0, MAX_ISSUES).map((issue) => {
    const code = issue.code === 'custom' ? issue.params?.['code'] : undefined;
    return {
      path: issue.path.map((key) => (typeof key === 'number' ? key : String(key))),
      code: typeof code === 'string' ? code : issue.code,
      message: issue.message,
    };
  });
}

/** Compiling takes about ten milliseconds, so it pays only for schemas that are used often. */
const COMPILE_AFTER = 50;

const uses = new WeakMap<z.ZodType, { count: number; compiled: z.ZodType | undefined }>();

/** Returns the schema, or its compiled form once it is used often; both give the same results. */
export function compileWhenHot<Schema extends z.ZodType>(schema: Schema): Schema {
  const use = uses.get(schema) ?? { count: 0, compiled: undefined };
  uses.set(schema, use);
  use.count += 1;
  if (use.count > COMPILE_AFTER) use.compiled ??= z.compile(schema);
  // The cast is sound: `compile` returns a clone of the schema that is the key.
  return (use.compiled as Schema | undefined) ?? schema;
}
