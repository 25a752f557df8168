import { inspect } from 'node:util';

const MASK = '[redacted]';
/** Deeper than any honest response; what lies below is masked whole, so a hostile one can't exhaust the stack. */
const DEEPEST_VALUE = 100;
const LONGEST_CAUSE_CHAIN = 10;

/** A shorter key stands in ordinary words by chance, so it counts only where it is a word of its own. */
const SHORTEST_UNMISTAKABLE_SECRET = 8;

function patternOf(secret: string): RegExp | string {
  if (secret.length >= SHORTEST_UNMISTAKABLE_SECRET) return secret;
  const literal = secret.replace(/[^A-Za-z0-9]/g, '\\$&');
  return new RegExp(`(?<![\\w-])${literal}(?![\\w-])`, 'g');
}

export function redactText(text: string, secret: string): string {
  return secret !== '' && text.includes(secret) ? text.replaceAll(patternOf(secret), () => MASK) : text;
}

function holdsSecret(text: string, secret: string): boolean {
  return redactText(text, secret) !== text;
}

/** A copy of a JSON value that does not show the secret in any string or name. */
export function redactValue(value: unknown, secret: string, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value, secret);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEEPEST_VALUE) return MASK;
  const redact = (inner: unknown) => redactValue(inner, secret, depth + 1);
  if (Array.isArray(value)) return value.map(redact);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [redactText(name, secret), redact(inner)]),
  );
}

/** Replaces a secret in header values; the headers themselves when there is none. */
export function redactHeaders(headers: Headers, secret: string): Headers {
  const entries = [...headers];
  if (!entries.some(([, value]) => holdsSecret(value, secret))) return headers;
  return headersOf(entries.map(([name, value]) => [name, redactText(value, secret)]));
}

/** Headers as they were received, but for those that `fetch` takes from a server and `Headers` from nobody, as `bad name: 1`. */
export function headersOf(entries: Iterable<[name: string, value: string]>): Headers {
  const headers = new Headers();
  for (const [name, value] of entries) {
    try {
      // Appended, not set: cookies come as several entries of one name.
      headers.append(name, value);
    } catch {
      // No program could ask for it by its name.
    }
  }
  return headers;
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    // An object without a prototype, or a text beyond what a string can hold.
    return `a value of type ${typeof value}`;
  }
}

/**
 * A cause that may be kept on an error: the original when it surely does not show the secret anywhere a log would,
 * else a copy with name, message, code and stack, cleaned.
 */
export function redactCause(cause: unknown, secret: string, chain = 0): unknown {
  if (!showsSecret(cause, secret)) return cause;
  if (!(cause instanceof Error)) return redactText(textOf(cause), secret);
  const clean = new Error(redactText(cause.message, secret));
  clean.name = redactText(cause.name, secret);
  if (cause.stack !== undefined) clean.stack = redactText(cause.stack, secret);
  if ('code' in cause) Object.assign(clean, { code: redactValue(cause.code, secret) });
  if (cause.cause !== undefined && chain < LONGEST_CAUSE_CHAIN) {
    clean.cause = redactCause(cause.cause, secret, chain + 1);
  }
  return clean;
}

/** Parts of a value, and thousands of characters, that are looked at; who has more is taken to show the secret. */
const MOST_LOOKS = 10_000;
const CHARACTERS_A_LOOK = 1000;

/** What can't be looked through without running code of its own. */
function isOpaque(value: object): boolean {
  if (value instanceof Date) return false;
  return value instanceof Promise || inspect.custom in value || 'toJSON' in value;
}

/** The values of an object that a log may print, also those it hides. */
function* partsOf(value: object): Generator<unknown> {
  if (value instanceof Map) for (const [key, item] of value) yield* [key, item];
  else if (value instanceof Set) yield* value;
  // An accessor in newer engines.
  if (value instanceof Error) yield value.stack;
  for (const key of Reflect.ownKeys(value)) {
    yield typeof key === 'symbol' ? key.description : key;
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (property === undefined || 'value' in property) yield property?.value;
    // Running a getter of the caller's could do anything.
    else if (property.enumerable && key !== 'stack') throw new Error('a getter');
  }
}

/**
 * Whether a log that prints a value could show a secret.
 *
 * One bounded walk: printing to find out would cost seconds and gigabytes for an error that holds a file. In doubt the
 * answer is yes: too large, too deep, or with a printed form of its own.
 */
function showsSecret(root: unknown, secret: string): boolean {
  const seen = new Set<object>();
  const open: unknown[] = [root];
  let looks = MOST_LOOKS;
  try {
    while (open.length > 0) {
      const value = open.pop();
      looks -= 1;
      if (typeof value === 'string' || value instanceof String) {
        looks -= value.length / CHARACTERS_A_LOOK;
        if (holdsSecret(String(value), secret)) return true;
      } else if (isWalkable(value) && !seen.has(value)) {
        if (isOpaque(value)) return true;
        seen.add(value);
        for (const part of partsOf(value)) {
          open.push(part);
          if (open.length > looks) return true;
        }
      }
      if (looks < 0) return true;
    }
    return false;
  } catch {
    return true;
  }
}

function isWalkable(value: unknown): value is object {
  // Bytes are printed as numbers, never as text.
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return false;
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
