import { inspect } from 'node:util';

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
export function showsSecret(root: unknown, secret: string): boolean {
  const seen = new Set<object>();
  const open: unknown[] = [root];
  let looks = MOST_LOOKS;
  try {
    while (open.length > 0) {
      const value = open.pop();
      looks -= 1;
      if (typeof value === 'string' || value instanceof String) {
        looks -= value.length / CHARACTERS_A_LOOK;
        if (value.includes(secret)) return true;
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
  const isBytes = ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
  return (typeof value === 'object' && value !== null && !isBytes) || typeof value === 'function';
}
