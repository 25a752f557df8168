import * as z from 'zod';
import { ConfigurationError } from '../errors.ts';
import { MAX_TIMER_MS } from './clock.ts';
import {
  compileWhenHot,
  describeBrokenRule,
  errorMap,
  expected,
  kindOrNumber,
  quoteValue,
} from './validation.ts';

/** One schema for each option; it compiles only if each output fits the option's type. */
export type OptionShape<Options> = { readonly [Name in keyof Required<Options>]: z.ZodType<Options[Name]> };

/**
 * @param name - precedes the names of options in messages, as in `hooks.onRequest`; default: none
 * @param maskKey - masks the client's key in the message
 * @throws ConfigurationError for the first option that breaks its rule
 */
export function checkOptions<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  name?: string,
  maskKey: (text: string) => string = (text) => text,
): z.output<Schema> {
  const result = compileWhenHot(schema).safeParse(options, { error: errorMap('options') });
  if (result.success) return result.data;
  // Check again below the name, so that every message has the whole path.
  const named = name === undefined ? undefined : z.object({ [name]: schema });
  const { issues } = named?.safeParse({ [name ?? '']: options }, { error: errorMap() }).error ?? result.error;
  // Report an unknown option first: it may be a misspelling that explains why another one is missing.
  const first = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  throw new ConfigurationError(maskKey(first?.message ?? `\`${name ?? 'options'}\` is not valid`));
}

/** Rejects an option that is checked by hand; `rule` completes "to be". */
export function refuseOption(name: string, rule: string, value: unknown, got = kindOrNumber): never {
  throw new ConfigurationError(describeBrokenRule({ path: [], input: value }, `to be ${rule}`, got, name));
}

/** Rejects a value that is not an object; called where a field is read before all options are checked. */
export function checkIsObject(name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) refuseOption(name, 'an object', value);
}

/**
 * A value that zod has no check for, such as an object that another realm or copy of the package made.
 *
 * @param got - names the wrong value; default: by its kind
 */
export function option<T>(
  rule: string,
  isValid: (value: unknown) => boolean,
  got = kindOrNumber,
): z.ZodType<T> {
  return z.custom<T>(isValid, expected(`to be ${rule}`, got));
}

/** The rule of a number; every check of its schema shows it whole. Text is not quoted, because it may be a key in the wrong place. */
const rule = (text: string) => expected(`to be ${text}`, kindOrNumber);

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

/** Only true and false are valid, because the text "false" is truthy and would switch the option on. */
export const switchOption = z.boolean(expected('to be true or false', kindOrNumber));

export const choiceOption = <const Allowed extends string>(allowed: readonly Allowed[]) =>
  z.enum(
    allowed,
    expected(
      allowed.length > 2
        ? `to be one of ${allowed.join(', ')}`
        : `to be ${allowed.map((choice) => `"${choice}"`).join(' or ')}`,
      quoteValue,
    ),
  );

export const functionOption = <T>() => option<T>('a function', (value) => typeof value === 'function');

export function isUrl(value: unknown): boolean {
  return (typeof value === 'string' || value instanceof URL) && URL.canParse(value);
}

/** Checks the shape only, because a test environment may bring its own `AbortSignal`. */
export function isAbortSignal(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value;
}

export function hasMethods<Name extends string>(
  value: unknown,
  ...names: readonly Name[]
): value is Record<Name, (...parameters: never[]) => unknown> {
  return names.every((name) => typeof Object(value)[name] === 'function');
}

export function checkOneOf<Allowed extends string>(
  name: string,
  value: unknown,
  allowed: readonly Allowed[],
): Allowed {
  return checkOptions(choiceOption(allowed), value, name);
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

function findBrokenHeaderRule(name: string, value: unknown): string | undefined {
  if (name === 'authorization') return 'to be set by `apiKey`';
  if (TRANSPORT_HEADERS.includes(name)) return 'to be set by the runtime';
  const broken = 'to be a valid header';
  if (typeof value !== 'string') return broken;
  try {
    new Headers([[name, value]]);
    return undefined;
  } catch {
    return broken;
  }
}

type HeaderBag = Readonly<Record<string, string>>;

/** Header names and values; the result's names are in lower case. */
export const headersOption = z
  .custom<HeaderBag>()
  .superRefine((headers, context) => {
    // A Map or `Headers` has no fields of its own and would pass as empty; the keys of an array are not header names.
    if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) {
      const rule = 'to be an object of header names and values';
      context.addIssue({ code: 'custom', input: headers, params: { rule } });
      return;
    }
    for (const [name, value] of Object.entries(headers)) {
      const rule = findBrokenHeaderRule(name.toLowerCase(), value);
      if (rule !== undefined)
        context.addIssue({ code: 'custom', path: [name], input: value, params: { rule } });
    }
  })
  .transform((headers): HeaderBag => Object.fromEntries(new Headers(Object.entries(headers))));

/** Calls a callback of the user. If it throws or its promise rejects, only `onFailure` is called. */
export function callGuarded(callback: () => unknown, onFailure: (error: unknown) => void = () => {}): void {
  try {
    const returned = callback();
    if (returned instanceof Promise) returned.catch(onFailure);
  } catch (error) {
    onFailure(error);
  }
}

/** Reads an environment variable. Where Deno denies access to it, it counts as not set. */
export function readEnvironment(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name];
  } catch {
    return undefined;
  }
}
