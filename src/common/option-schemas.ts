import * as z from 'zod';
import { MAX_TIMER_MS } from './clock.ts';
import { expected, kindOrNumber } from './messages.ts';

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
