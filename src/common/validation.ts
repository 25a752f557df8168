import { z } from 'zod';

/** One broken rule: where it is, a machine-readable code and a sentence that names field, rule and value's kind. */
export interface ValidationIssue {
  /** Path to the value, outermost key first; empty for the value itself. */
  readonly path: readonly (string | number)[];
  /** Stable name of the broken rule, e.g. `too_big`, `invalid_type` or `shipping_date_outdated`. */
  readonly code: string;
  /** "Expected `field` to be …, got …"; never shows the value. */
  readonly message: string;
}

/** Names the kind of a value without showing it, so a secret in the wrong field never reaches a message. */
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

/** Formats a path as a reader would write it: `items[3].recipient.email`; `fallback` names the root value. */
export function formatPath(path: readonly PropertyKey[], fallback = 'value'): string {
  let text = '';
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`;
    else text += text === '' ? String(key) : `.${String(key)}`;
  }
  if (text === '') return fallback;
  return text.startsWith('[') ? `items${text}` : text;
}

/** Builds a zod error option that reads "Expected `field` to be …, got …"; `rootName` names a value without a path. */
export function expected(
  rule: string,
  got: (input: unknown) => string = kindOf,
  rootName = 'value',
): { error: (issue: { path?: PropertyKey[] | undefined; input?: unknown }) => string } {
  return {
    error: (issue) =>
      `Expected \`${formatPath(issue.path ?? [], rootName)}\` ${rule}, got ${got(issue.input)}`,
  };
}

/** Words for the issues zod raises by itself, in the form of our own; `name` is the root value. */
export function errorMap(name: string): z.core.$ZodErrorMap {
  return (issue) => {
    const field = formatPath(issue.path ?? [], name);
    if (issue.code === 'invalid_type')
      return `Expected \`${field}\` to be ${article(issue.expected)}, got ${kindOf(issue.input)}`;
    if (issue.code === 'invalid_value')
      return `Expected \`${field}\` to be one of ${issue.values.map(String).join(', ')}, got ${kindOf(issue.input)}`;
    if (issue.code === 'too_big')
      return `Expected \`${field}\` to be at most ${issue.maximum}, got ${sizeOf(issue.input)}`;
    if (issue.code === 'too_small')
      return `Expected \`${field}\` to be at least ${issue.minimum}, got ${sizeOf(issue.input)}`;
    return `Expected \`${field}\` to have a valid value, got ${kindOf(issue.input)}`;
  };
}

function sizeOf(input: unknown): string {
  return typeof input === 'number' ? String(input) : kindOf(input);
}

function article(noun: string): string {
  return /^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`;
}

/** Turns the first zod issues into ours; a `code` given in a custom issue's `params` is the rule's own name. */
export function toValidationIssues(
  error: { readonly issues: readonly z.core.$ZodIssue[] },
  most = Number.POSITIVE_INFINITY,
): ValidationIssue[] {
  return error.issues.slice(0, most).map((issue) => {
    const named = issue.code === 'custom' ? issue.params?.['code'] : undefined;
    return {
      path: issue.path.map((key) => (typeof key === 'number' ? key : String(key))),
      code: typeof named === 'string' ? named : issue.code,
      message: issue.message,
    };
  });
}

/**
 * Validations before a schema is compiled: that takes about ten milliseconds, which a program that asks once or twice would
 * pay for nothing, and saves most of the cost of every later one.
 */
const HOT_AFTER = 50;

const heats = new WeakMap<z.ZodType, { uses: number; compiled: z.ZodType | undefined }>();

/** The schema, or its compiled form once it is used often, with the same results; for schemas that live for ever. */
export function hotSchema<Schema extends z.ZodType>(schema: Schema): Schema {
  let heat = heats.get(schema);
  if (heat === undefined) {
    heat = { uses: 0, compiled: undefined };
    heats.set(schema, heat);
  }
  heat.uses += 1;
  if (heat.uses > HOT_AFTER) heat.compiled ??= z.compile(schema);
  // Sound: `compile` gives a clone of the very schema that is the key.
  return (heat.compiled as Schema | undefined) ?? schema;
}
