import * as z from 'zod';
import { ConfigurationError } from '../errors.ts';
import { MAX_TIMER_MS } from './clock.ts';
import { kindOf } from './validation.ts';

/** A schema for every option of an interface, so that an option without one does not compile. */
export type OptionShape<Options> = { readonly [Name in keyof Required<Options>]: z.ZodType };

/** @param name - precedes the names of options in messages, as in `rateLimit.maxQueue`; `options` is left out */
export function checkOptions<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  name = 'options',
): z.output<Schema> {
  const result = schema.safeParse(options, { error: (issue) => buildMessage(issue, name) });
  if (result.success) return result.data;
  const { issues } = result.error;
  // Report an unknown option first: it may be a misspelling that explains why another one is missing.
  const first = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  throw new ConfigurationError(first?.message ?? `Expected \`${name}\` to be valid`);
}

function buildMessage(issue: z.core.$ZodRawIssue, root: string): string {
  const name = formatName(issue.path ?? [], root);
  if (issue.code === 'unrecognized_keys') {
    const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
    const unknown = `got \`${issue.keys[0] ?? ''}\``;
    return `Expected \`${name}\` to hold known options only, ${unknown}; known are ${known.join(', ')}`;
  }
  const rule = issue.code === 'custom' ? issue.params?.['rule'] : undefined;
  if (typeof rule === 'string') return ruleMessage(name, rule, issue.input);
  return ruleMessage(name, issue.code === 'invalid_type' ? 'an object' : 'valid', issue.input);
}

/** Writes a path as code would: `rateLimit.limits["couriers.list"]`; a field of `options` itself stands alone: `timeoutMs`. */
function formatName(path: readonly PropertyKey[], root: string): string {
  const steps = path.map((key) =>
    /^\w+$/.test(String(key)) ? `.${String(key)}` : `[${JSON.stringify(key)}]`,
  );
  const isNamed = root !== 'options' || path.length === 0;
  return `${isNamed ? root : ''}${steps.join('')}`.replace(/^\./, '');
}

function ruleMessage(name: string, rule: string, value: unknown): string {
  return `Expected \`${name}\` to be ${rule}, got ${typeof value === 'number' ? String(value) : kindOf(value)}`;
}

/** Builds the schema of an option with one rule, which messages put after "to be". */
export function option<T>(rule: string, isValid: (value: unknown) => boolean): z.ZodType<T> {
  return z.custom<T>(isValid, { params: { rule } });
}

const isNumber = (value: unknown): value is number => typeof value === 'number';

export const timeoutOption = option<number>(
  `a number of milliseconds above 0 and at most ${MAX_TIMER_MS}`,
  (value) => isNumber(value) && value > 0 && value <= MAX_TIMER_MS,
);

export const delayOption = option<number>(
  `a number of milliseconds from 0 to ${MAX_TIMER_MS}`,
  (value) => isNumber(value) && value >= 0 && value <= MAX_TIMER_MS,
);

export const countOption = (min: number, allowInfinity = false) =>
  option<number>(`a whole number of at least ${min}`, (value) => {
    if (allowInfinity && value === Number.POSITIVE_INFINITY) return true;
    return isNumber(value) && Number.isSafeInteger(value) && value >= min;
  });

/** Only true and false are valid, because the text "false" is truthy and would switch the option on. */
export const switchOption = option<boolean>('true or false', (value) => typeof value === 'boolean');

export const choiceOption = <Allowed extends string>(allowed: readonly Allowed[]) =>
  option<Allowed>(allowed.map((choice) => `"${choice}"`).join(' or '), (value) =>
    allowed.some((choice) => choice === value),
  );

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

export const functionOption = <T>() => option<T>('a function', (value) => typeof value === 'function');

export function refuseOption(name: string, rule: string, value: unknown): never {
  throw new ConfigurationError(ruleMessage(name, rule, value));
}

/** Rejects a value that is not an object; called where a field is read before all options are checked. */
export function checkIsObject(name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) refuseOption(name, 'an object', value);
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

/** Header names and values; the result's names are in lower case. */
export const headersOption = z.unknown().transform((value): Readonly<Record<string, string>> => {
  // A Map or Headers has no fields of its own and would pass as empty; the keys of an array are no header names.
  const isBag = typeof value === 'object' && value !== null && !(Symbol.iterator in value);
  if (!isBag) return refuseOption('headers', 'an object of header names and values', value);
  const headers = new Headers();
  for (const [key, text] of Object.entries(value)) {
    const name = key.toLowerCase();
    if (name === 'authorization')
      throw new ConfigurationError('Expected `headers` to leave `authorization` to `apiKey`');
    if (TRANSPORT_HEADERS.includes(name))
      throw new ConfigurationError(`Expected \`headers\` to leave \`${name}\` to the transport`);
    try {
      if (typeof text !== 'string') throw new TypeError(kindOf(text));
      headers.set(key, text);
    } catch {
      refuseOption(`headers.${key}`, 'a valid header', text);
    }
  }
  return Object.fromEntries(headers);
});

/** Calls a callback of the user. If it throws or its promise rejects, only `onFailure` is called. */
export function callGuarded(callback: () => unknown, onFailure: () => void = () => {}): void {
  try {
    const returned = callback();
    if (returned instanceof Promise) returned.catch(onFailure);
  } catch {
    onFailure();
  }
}
