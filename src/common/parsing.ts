import * as z from 'zod';

/** Describes a rule that a value has broken. */
export interface ValidationIssue {
  /** Path to the value, outermost key first; empty for the value itself. */
  readonly path: readonly (string | number)[];
  /** Stable name of the broken rule, e.g. `too_big`, `invalid_type` or `shipping_date_outdated`. */
  readonly code: string;
  /** A text such as "Expected `field` to be …, got …". It quotes harmless values only (`quoteValue`), with the API key masked. */
  readonly message: string;
  /**
   * The message without the field, such as "to be …, got …", for programs that name the field in another way. Only the issues of a
   * RequestValidationError have it.
   */
  readonly rule?: string | undefined;
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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

type SafeParse<Schema extends z.ZodType> = (
  value: unknown,
  options?: z.core.ParseContext<z.core.$ZodIssue>,
) => z.ZodSafeParseResult<z.output<Schema>>;

/**
 * Returns a function that parses as `schema.safeParse` does. The schema is compiled only after many calls of `parserOf`.
 * `schema.safeParse` alone would generate code for each object of the schema at its first use, which would slow down the first call
 * of a process.
 */
export function parserOf<Schema extends z.ZodType>(schema: Schema): SafeParse<Schema> {
  const use = uses.get(schema) ?? { count: 0, compiled: undefined };
  uses.set(schema, use);
  use.count += 1;
  if (use.count > COMPILE_AFTER) use.compiled ??= z.compile(schema);
  // Safe cast: `use` is the entry of `schema` in the map, and `compile` has returned a clone of `schema`.
  const compiled = use.compiled as Schema | undefined;
  if (compiled !== undefined) return (value, options) => compiled.safeParse(value, options);
  return (value, options) => schema.safeParse(value, { ...options, jitless: true });
}

/** Parses one value as `schema.safeParse` does; see `parserOf`. */
export function safeParse<Schema extends z.ZodType>(
  schema: Schema,
  ...parameters: Parameters<SafeParse<Schema>>
): z.ZodSafeParseResult<z.output<Schema>> {
  return parserOf(schema)(...parameters);
}
