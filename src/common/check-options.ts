import * as z from 'zod';
import { type CallSite, ConfigurationError } from '../errors.ts';
import { isPromise } from './foreign.ts';
import { errorMap, formatPath, isQuotable, kindOrNumber, PROMISE_RULE, readBrokenRule } from './messages.ts';
import { safeParse } from './parsing.ts';

/** The facts about a client that an error from before a call needs. */
export interface ErrorContext {
  /** Masks the API key in a text that quotes options or input. */
  readonly maskKey: (text: string) => string;
  /** Where the user called the method; the stacks of errors begin there. Default: where the error is made. */
  readonly callSite?: CallSite | undefined;
}

const NO_CLIENT: ErrorContext = { maskKey: (text) => text };

/**
 * @param name - precedes the names of options in messages, as in `hooks.onRequest`; default: none
 * @param context - the client; default: none
 * @throws ConfigurationError for the first option that breaks its rule, or that is a Promise
 */
export function checkOptions<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  name?: string,
  context: ErrorContext = NO_CLIENT,
): z.output<Schema> {
  const path = findPromise(options);
  if (path !== undefined)
    refusePromise(formatPath(name === undefined ? path : [name, ...path], 'options'), context);
  return checkReturned(schema, options, name, context);
}

function refusePromise(option: string, { maskKey, callSite }: ErrorContext = NO_CLIENT): never {
  const facts = { option: maskKey(option), rule: PROMISE_RULE, callSite };
  throw new ConfigurationError(maskKey(`\`${option}\` ${PROMISE_RULE}`), facts);
}

/** Checks a value that a function of the user returned, so that the user cannot await it; otherwise as `checkOptions`. */
export function checkReturned<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  name?: string,
  { maskKey, callSite }: ErrorContext = NO_CLIENT,
): z.output<Schema> {
  const result = safeParse(schema, options, { error: errorMap('options') });
  if (result.success) return result.data;
  // Check the options again as a field called `name`, so that every message shows the whole path.
  const named = name === undefined ? undefined : z.object({ [name]: schema });
  const { issues } = named?.safeParse({ [name ?? '']: options }, { error: errorMap() }).error ?? result.error;
  // Report an unknown option first: it may be a misspelling that explains why another one is missing.
  const first = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const message = first?.message ?? `\`${name ?? 'options'}\` is not valid`;
  const { option, rule = '' } = first === undefined ? {} : readFacts(first);
  const facts = option === undefined ? {} : { option: maskKey(option), rule: maskKey(rule) };
  throw new ConfigurationError(maskKey(message), { ...facts, callSite });
}

/** Returns `option` and `rule` of a ConfigurationError; none for an unknown option whose name may be a secret. */
function readFacts(issue: z.core.$ZodIssue): { readonly option?: string; readonly rule?: string } {
  if (issue.code !== 'unrecognized_keys')
    return { option: formatPath(issue.path, 'options'), rule: readBrokenRule(issue.message) };
  const [key = ''] = issue.keys;
  return isQuotable(key) ? { option: formatPath([...issue.path, key]), rule: 'is unknown' } : {};
}

/** Rejects an option that is checked by hand; `rule` is the text after "to be" or "to return" in the message. */
export function refuseOption(
  name: string,
  rule: string,
  value: unknown,
  got = kindOrNumber,
  verb: 'be' | 'return' = 'be',
): never {
  if (verb === 'be' && isPromise(value)) refusePromise(name);
  const broken = `to ${verb} ${rule}, got ${got(value)}`;
  throw new ConfigurationError(`Expected \`${name}\` ${broken}`, { option: name, rule: broken });
}

/** Rejects an option with a message such as "`apiKey` is missing; pass it, or set TRACKING_API_KEY". */
export function rejectOption(option: string, rule: string, advice: string, callSite?: CallSite): never {
  throw new ConfigurationError(`\`${option}\` ${rule}; ${advice}`, { option, rule, callSite });
}

/** Rejects a value that is not an object; called where a field is read before all options are checked. */
export function checkIsObject(name: string, value: unknown): void {
  if (isPromise(value)) refusePromise(name);
  if (typeof value !== 'object' || value === null) refuseOption(name, 'an object', value);
}

export function checkOneOf<Allowed extends string>(
  name: string,
  value: unknown,
  allowed: readonly Allowed[],
): Allowed {
  return checkOptions(z.enum(allowed), value, name);
}

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
