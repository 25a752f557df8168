import * as z from 'zod';
import { MAX_TIMER_MS } from './clock.ts';
import { isDate, isPromise, readError } from './foreign.ts';

/** One broken rule. */
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

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Names the kind of a value without showing it, because a secret may stand in the wrong field. */
export function kindOf(value: unknown): string {
  try {
    return describeKind(value);
  } catch {
    // A revoked proxy cannot be asked whether it is an array.
    return 'an object';
  }
}

/** Names what was thrown: an error by its name and message, any other value by its kind. The text is not masked. */
export function describeThrown(value: unknown): string {
  const error = readError(value);
  return error === undefined ? kindOf(value) : `${error.name}: ${error.message}`;
}

function describeKind(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value))
    return value.length === 0 ? 'an empty array' : `an array of ${countOf(value.length, 'item')}`;
  if (typeof value === 'string') {
    if (value === '') return 'an empty string';
    return `a string of ${countOf(value.length, 'character')}`;
  }
  if (typeof value === 'number') return Number.isFinite(value) ? 'a number' : String(value);
  if (typeof value === 'undefined') return 'undefined';
  if (isDate(value)) return 'a Date';
  if (isPromise(value)) return 'a Promise';
  if (typeof value === 'object' && Symbol.iterator in value) return 'an iterable object';
  if (typeof value === 'object') return 'an object';
  return `a ${typeof value}`;
}

/** The text of a boolean or of a duration, such as `allowInsecureHttp: 'false'` or `timeoutMs: '5s'`. */
const HARMLESS = /^(?:true|false|yes|no|\d{1,6}(?:ms|s|m|h|d))$/i;

/** Like `kindOf`, for options: a number and the text of a boolean or of a duration are not secrets, so they are shown. */
export function kindOrNumber(value: unknown): string {
  if (typeof value === 'string' && HARMLESS.test(value)) return `'${value}'`;
  return typeof value === 'number' ? String(value) : kindOf(value);
}

/** Letters, marks, digits, punctuation, symbols and spaces: no line breaks, control characters or direction marks. */
const QUOTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,40}$/u;

export function isQuotable(value: unknown): value is string {
  return typeof value === 'string' && QUOTABLE.test(value);
}

/**
 * Quotes a value in a message. Use it only for harmless kinds: a tracking number, a country or courier code, a date, a numeric
 * limit, an enum, an id, a method, a path without its query, or the name of an option, endpoint or table. A text of several lines
 * or more than 40 characters is described by its kind. A text is never cut: the caller masks the API key, and could not find half
 * of an API key.
 */
export function quoteValue(value: unknown): string {
  return isQuotable(value) ? `'${value}'` : kindOrNumber(value);
}

/** The rule of API keys, for the client and for the fake service. */
export const KEY_RULE = 'visible ASCII characters without spaces, quotes and backslashes';

export function isKey(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value) && !/["'`\\]/.test(value);
}

/**
 * A host with an optional scheme, port and path. Credentials, queries and a single word without a scheme, except `localhost`, do
 * not match.
 */
const HOST_AND_PATH =
  /^(?:[a-z]+:\/\/[\w-]+(?:\.[\w-]+)*|localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?:\/[\w./-]*)?$/i;

/** Quotes a wrong URL. A text that does not look like a host with a path is described by its kind: it may contain a secret. */
export function quoteUrl(value: unknown): string {
  return typeof value === 'string' && HOST_AND_PATH.test(value) ? quoteValue(value) : kindOrNumber(value);
}

/**
 * Formats a path as code would: `items[3].recipient.email`, `limits["couriers.list"]`.
 *
 * @param root - names the value itself; default `value`, or `items` if the path starts with an index
 */
export function formatPath(path: readonly PropertyKey[], root?: string): string {
  if (path.length === 0) return root ?? 'value';
  const steps = path.map((key, index) => {
    if (typeof key === 'number') return `[${key}]`;
    if (index === 0) return String(key);
    return /^[\w-]+$/.test(String(key)) ? `.${String(key)}` : `[${JSON.stringify(String(key))}]`;
  });
  return (typeof path[0] === 'number' ? (root ?? 'items') : '') + steps.join('');
}

type IssueFacts = { readonly path?: PropertyKey[] | undefined; readonly input?: unknown };

/** Writes the message of a broken rule, such as "Expected `timeoutMs` to be …, got …". */
export function describeBrokenRule(
  issue: IssueFacts,
  rule: string,
  got: (input: unknown) => string,
  root?: string,
): string {
  return `Expected \`${formatPath(issue.path ?? [], root)}\` ${rule}, got ${got(issue.input)}`;
}

/** Returns the part of a message of `describeBrokenRule` that follows the field. */
export function readBrokenRule(message: string): string {
  return message.slice(message.indexOf('` ') + 2);
}

/**
 * Builds a zod error option that reads "Expected `field` to be …, got …". The checks that follow in the chain, such as `.min()`,
 * use the same message.
 *
 * @param rootName - names a value without a path
 */
export function expected(
  rule: string,
  got: (input: unknown) => string = kindOf,
  rootName?: string,
): { error: (issue: IssueFacts) => string } {
  return { error: (issue) => describeBrokenRule(issue, rule, got, rootName) };
}

/**
 * Builds messages for the issues that zod raises by itself, and for those that have a `rule` in their `params`. With `isQuotable`
 * in the `params`, the message quotes the value (`quoteValue`).
 */
export function errorMap(name?: string): z.core.$ZodErrorMap {
  return (issue) => {
    if (issue.code === 'unrecognized_keys') {
      const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
      const name = issue.keys[0] ?? '';
      const option = isQuotable(name)
        ? `\`${formatPath([...(issue.path ?? []), name])}\``
        : `with ${kindOf(name)} as its name`;
      return `Unknown option ${option}; known options: ${known.join(', ')}`;
    }
    const isSize = issue.code === 'too_big' || issue.code === 'too_small';
    const isHarmless =
      issue.code === 'invalid_value' || (issue.code === 'custom' && issue.params?.['isQuotable'] === true);
    const isBoolean = issue.code === 'invalid_type' && issue.expected === 'boolean';
    const got = isHarmless ? quoteValue : isSize || isBoolean ? kindOrNumber : kindOf;
    return describeBrokenRule(issue, describeRule(issue), got, name);
  };
}

function describeRule(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') {
    // The text "false" is truthy, so the message names the two values that are meant.
    if (issue.expected === 'boolean') return 'to be true or false';
    if (issue.expected === 'nonoptional') return 'to be set';
    return `to be ${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
  }
  if (issue.code === 'invalid_value') {
    const { values } = issue;
    if (values.length > 2) return `to be one of ${values.map(String).join(', ')}`;
    return `to be ${values.map((value) => (typeof value === 'string' ? `"${value}"` : String(value))).join(' or ')}`;
  }
  if (issue.code === 'too_big') return `to be at most ${issue.maximum}`;
  if (issue.code === 'too_small') return `to be at least ${issue.minimum}`;
  const rule = issue.code === 'custom' ? issue.params?.['rule'] : undefined;
  return typeof rule === 'string' ? rule : `to follow the rule "${issue.code}"`;
}

export const PROMISE_RULE = 'is a Promise; await it';

/**
 * Returns the path of a Promise in options or input, where somebody forgot an `await`; undefined if there is none. Zod takes a
 * Promise for an object without fields, or fails. Other objects than lists and plain data are of the user, and are not searched.
 *
 * @param depth - levels to search; the deepest options are limits, as in `rateLimit.limits["couriers.list"]`
 */
export function findPromise(value: unknown, depth = 3): (string | number)[] | undefined {
  if (isPromise(value)) return [];
  if (depth === 0 || typeof value !== 'object' || value === null) return undefined;
  // A list can be long, and `Object.entries` makes a text of each index.
  const fields: Iterable<[string | number, unknown]> = Array.isArray(value)
    ? value.entries()
    : Object.entries(value);
  for (const [key, field] of fields) {
    const path = isPromise(field) || isData(field) ? findPromise(field, depth - 1) : undefined;
    if (path !== undefined) return [key, ...path];
  }
  return undefined;
}

/** True for a list, and for a plain object without methods. */
function isData(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype of another realm's plain objects has no prototype, either.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain && !Object.values(value).some((field) => typeof field === 'function');
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

/** Has one schema for each option. A schema whose output does not fit the type of its option does not compile. */
export type OptionShape<Options> = { readonly [Name in keyof Required<Options>]: z.ZodType<Options[Name]> };

/**
 * Builds the schema of an option that zod cannot check, such as an object that another realm or copy of the package made.
 *
 * @param got - describes the wrong value in the message; default: `kindOrNumber`
 */
export function option<T>(
  rule: string,
  isValid: (value: unknown) => boolean,
  got = kindOrNumber,
): z.ZodType<T> {
  return z.custom<T>(isValid, expected(`to be ${rule}`, got));
}

/**
 * Builds the error of an option. The checks that follow in the chain, such as `.min()`, use the same message. Text that
 * may be an API key is described and not quoted (`kindOrNumber`).
 */
export const rule = (text: string) => expected(`to be ${text}`, kindOrNumber);

export const timeoutOption = z
  .number(rule(`a number of milliseconds above 0 and at most ${MAX_TIMER_MS}`))
  .positive()
  .max(MAX_TIMER_MS);

export const delayOption = z
  .number(rule(`a number of milliseconds from 0 to ${MAX_TIMER_MS}`))
  .min(0)
  .max(MAX_TIMER_MS);

export function countOption(min: number, allowInfinity = false): z.ZodType<number> {
  const error = rule(`a whole number of at least ${min}`);
  const count = z.int(error).min(min);
  return allowInfinity ? z.union([count, z.literal(Number.POSITIVE_INFINITY)], error) : count;
}

export const functionOption = <T>() => option<T>('a function', (value) => typeof value === 'function');

/** Checks the shape only, because a test environment may bring its own `AbortSignal`. */
export function isAbortSignal(value: unknown): boolean {
  return (
    hasMethods(value, 'addEventListener', 'removeEventListener') && typeof Object(value).aborted === 'boolean'
  );
}

export function hasMethods<Name extends string>(
  value: unknown,
  ...names: readonly Name[]
): value is Record<Name, (...parameters: never[]) => unknown> {
  return names.every((name) => typeof Object(value)[name] === 'function');
}

/** Headers that the runtime writes: a wrong one makes requests hang or fail. */
const TRANSPORT_HEADERS = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
];

const HEADER_NAME_RULE = 'to have a header name of letters, digits and hyphens, such as x-request-source';

function findBrokenHeaderRule(name: string, value: unknown): string | undefined {
  const lowerName = name.toLowerCase();
  if (lowerName === 'authorization') return 'to be left out (the client sets it from `apiKey`)';
  if (TRANSPORT_HEADERS.includes(lowerName)) return 'to be left out (`fetch` sets it)';
  try {
    new Headers([[name, '']]);
  } catch {
    return HEADER_NAME_RULE;
  }
  try {
    if (typeof value === 'string' && new Headers([[name, value]])) return undefined;
  } catch {
    // The value is invalid, e.g. because it contains a line break.
  }
  return 'to be a string of Latin-1 characters without line breaks';
}

/**
 * A plain object with a rule for each field.
 *
 * @param example - shown in the message about a value that is not a plain object
 * @param findBrokenRule - returns the rule that a field breaks
 */
export function fieldsOption<T extends object>(
  example: string,
  findBrokenRule: (name: string, value: unknown) => string | undefined,
) {
  return z.custom<T>().superRefine((fields, context) => {
    // A Map or `Headers` has no fields of its own and would pass as empty; the keys of an array are not names.
    if (typeof fields !== 'object' || fields === null || Symbol.iterator in fields) {
      const rule = `to be a plain object, as in ${example}`;
      context.addIssue({ code: 'custom', input: fields, params: { rule } });
      return;
    }
    for (const [name, value] of Object.entries(fields)) {
      const rule = findBrokenRule(name, value);
      const isQuotable = rule === HEADER_NAME_RULE;
      const input = isQuotable ? name : value;
      if (rule !== undefined)
        context.addIssue({ code: 'custom', path: [name], input, params: { rule, isQuotable } });
    }
  });
}

type HeaderBag = Readonly<Record<string, string>>;

/** Header names and values; the result's names are in lower case. */
export const headersOption = fieldsOption<HeaderBag>(
  "{ 'x-source': 'shop' }",
  findBrokenHeaderRule,
).transform((headers): HeaderBag => Object.fromEntries(new Headers(Object.entries(headers))));
