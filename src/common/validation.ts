import * as z from 'zod';

/** One broken rule: where it is, a machine-readable code and a sentence that names field, rule and value's kind. */
export interface ValidationIssue {
  /** Path to the value, outermost key first; empty for the value itself. */
  readonly path: readonly (string | number)[];
  /** Stable name of the broken rule, e.g. `too_big`, `invalid_type` or `shipping_date_outdated`. */
  readonly code: string;
  /** "Expected `field` to be …, got …"; never shows the value. */
  readonly message: string;
}

/** Tells whether a value is an object of JSON, which excludes arrays. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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

/**
 * Formats a path as a reader would write it: `items[3].recipient.email`.
 *
 * @param root - names the root value; default `value`, or `items` where the root is a list
 */
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

/** The most issues that one error, one response or one webhook item reports: more would fill every log. */
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

/**
 * How often a schema is used before it is compiled. Compiling takes about ten milliseconds, so it pays only for schemas
 * that are used often.
 */
const COMPILE_AFTER = 50;

const uses = new WeakMap<z.ZodType, { count: number; compiled: z.ZodType | undefined }>();

/**
 * Returns the schema, or its compiled form once it is used often; both give the same results.
 *
 * @param schema - a schema that lives as long as the program, since each is compiled once
 */
export function compileWhenHot<Schema extends z.ZodType>(schema: Schema): Schema {
  let use = uses.get(schema);
  if (use === undefined) {
    use = { count: 0, compiled: undefined };
    uses.set(schema, use);
  }
  use.count += 1;
  if (use.count > COMPILE_AFTER) use.compiled ??= z.compile(schema);
  // Sound: `compile` returns a clone of the schema that is the key.
  return (use.compiled as Schema | undefined) ?? schema;
}

/** A schema of any library that implements Standard Schema v1: zod 3.24 and later, valibot, arktype and others. */
export interface StandardSchema<Output = unknown> {
  /** The properties that the standard defines. */
  readonly '~standard': {
    /** The version of the standard. */
    readonly version: 1;
    /** The name of the library. */
    readonly vendor: string;
    /** Checks a value. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** The types of input and output; never there at run time. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of the values that a Standard Schema returns. */
export type StandardSchemaOutput<Schema extends StandardSchema> = NonNullable<
  Schema['~standard']['types']
>['output'];

/** Tells whether a value is a Standard Schema v1; arktype's are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard: unknown = Reflect.get(value, '~standard');
  return (
    typeof standard === 'object' &&
    standard !== null &&
    typeof Reflect.get(standard, 'validate') === 'function'
  );
}

/**
 * Checks a value with a schema of any library, synchronous or not.
 *
 * @returns the schema's output, or the first 20 issues
 * @throws what the schema's own code throws
 */
export async function validateWithStandardSchema<Schema extends StandardSchema>(
  schema: Schema,
  value: unknown,
): Promise<{ readonly value: StandardSchemaOutput<Schema> } | { readonly issues: ValidationIssue[] }> {
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return { value: result.value };
  const issues = result.issues.slice(0, MAX_ISSUES).map(({ message, path = [] }) => {
    // A path may be of a subclass of Array, whose `map` would return that subclass.
    const keys = Array.from(path, (step) => (typeof step === 'object' ? step.key : step));
    const names = keys.map((key) => (typeof key === 'number' ? key : String(key)));
    return { path: names, code: 'invalid_value', message };
  });
  return { issues };
}
