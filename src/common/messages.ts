import * as z from 'zod';
import { isDate, isPromise, readError } from './foreign.ts';

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
