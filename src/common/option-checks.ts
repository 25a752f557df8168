import { ConfigurationError } from '../errors.ts';
import { MAX_TIMER_MS } from './timing.ts';
import { kindOf } from './validation.ts';

/** Headers that describe the transport: the runtime writes them, and a wrong one makes requests hang or fail. */
const TRANSPORT_HEADERS = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
];

/** Refuses an option: "Expected `name` to be rule, got value"; of other values than numbers only the kind is told. */
export function refuseOption(name: string, rule: string, value: unknown): never {
  const got = typeof value === 'number' ? String(value) : kindOf(value);
  throw new ConfigurationError(`Expected \`${name}\` to be ${rule}, got ${got}`);
}

/** Checks a timeout: a number above 0 that a timer can hold. */
export function checkTimeoutMs(name: string, value: unknown): number {
  if (typeof value !== 'number' || !(value > 0) || value > MAX_TIMER_MS) {
    return refuseOption(name, `a number of milliseconds above 0 and at most ${MAX_TIMER_MS}`, value);
  }
  return value;
}

/** Checks a delay: a number of 0 or more that a timer can hold. */
export function checkDelayMs(name: string, value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0) || value > MAX_TIMER_MS) {
    return refuseOption(name, `a number of milliseconds from 0 to ${MAX_TIMER_MS}`, value);
  }
  return value;
}

/** Checks a whole number from `min`; Infinity where `allowInfinity` says so. */
export function checkCount(name: string, value: unknown, min: number, allowInfinity = false): number {
  const isInfinite = allowInfinity && value === Number.POSITIVE_INFINITY;
  if (!isInfinite && (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min)) {
    return refuseOption(name, `a whole number of at least ${min}`, value);
  }
  // Narrowed above: either the number Infinity or a safe integer.
  return Number(value);
}

/** Checks a switch: a truthy value of another kind, as the text "false", would switch it on. */
export function checkBoolean(name: string, value: unknown): boolean {
  return typeof value === 'boolean' ? value : refuseOption(name, 'true or false', value);
}

/** Checks a value against a fixed set of strings. */
export function checkOneOf<Allowed extends string>(
  name: string,
  value: unknown,
  allowed: readonly Allowed[],
): Allowed {
  const found = allowed.find((one) => one === value);
  return found ?? refuseOption(name, allowed.map((one) => `"${one}"`).join(' or '), value);
}

/** Checks that a value is a plain bag of options with known names only, so that a typo does not pass silently. */
export function checkKnownOptions(name: string, value: unknown, known: readonly string[]): void {
  if (typeof value !== 'object' || value === null) refuseOption(name, 'an object', value);
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const near = nearestName(key, known);
    const hint = near === undefined ? `one of ${known.join(', ')}` : `\`${near}\``;
    throw new ConfigurationError(
      `Expected \`${name}\` to hold known options only, got \`${key}\`; did you mean ${hint}?`,
    );
  }
}

/** Checks header names and values without printing a value; the result's names are in lower case. */
export function checkHeaders(name: string, value: unknown): Readonly<Record<string, string>> {
  // What is read by iterating (an array, a Map, Headers) has no fields, and would pass as empty.
  const isBag = typeof value === 'object' && value !== null && !(Symbol.iterator in value);
  if (!isBag) return refuseOption(name, 'an object of header names and values', value);
  const headers = new Headers();
  for (const [key, text] of Object.entries(value)) {
    if (key.toLowerCase() === 'authorization') {
      throw new ConfigurationError(`Expected \`${name}\` to leave \`authorization\` to \`apiKey\``);
    }
    if (TRANSPORT_HEADERS.includes(key.toLowerCase())) {
      throw new ConfigurationError(`Expected \`${name}\` to leave \`${key.toLowerCase()}\` to the transport`);
    }
    try {
      if (typeof text !== 'string') throw new TypeError(kindOf(text));
      headers.set(key, text);
    } catch {
      refuseOption(`${name}.${key}`, 'a valid header', text);
    }
  }
  return Object.fromEntries(headers);
}

/** The least number of letters to add, drop or change that makes one word of the other (Levenshtein). */
function distance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...one].entries()) {
    const current = [row + 1];
    for (const [column, otherLetter] of [...other].entries()) {
      const changed = (above[column] ?? 0) + (letter === otherLetter ? 0 : 1);
      current.push(Math.min(changed, (above[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    above = current;
  }
  return above.at(-1) ?? 0;
}

/** The name that was most likely meant; undefined when none is near: another case, a beginning, or a slip of the keys. */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  const lower = given.toLowerCase();
  const isBeginning = (one: string, other: string) => one.length >= 3 && other.startsWith(one);
  const near = names.flatMap((name) => {
    const known = name.toLowerCase();
    if (known === lower) return { name, slips: 0 };
    if (isBeginning(lower, known) || isBeginning(known, lower)) return { name, slips: 1 };
    // A word of the same length as another has little in common with it by chance.
    const mostSlips = Math.max(1, Math.floor(Math.min(known.length, lower.length) / 3));
    const slips = Math.abs(known.length - lower.length) > mostSlips ? Infinity : distance(lower, known);
    return slips <= mostSlips ? { name, slips } : [];
  });
  return near.sort((one, other) => one.slips - other.slips)[0]?.name;
}
