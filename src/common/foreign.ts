// `instanceof` of a built-in class recognises only objects of this realm. Jest, `vm` contexts and test environments bring classes of
// their own, so only this file decides what an object from outside is. No function here throws, whatever the object is.
import { types } from 'node:util';

export function isError(value: unknown): value is Error {
  if (types.isNativeError(value) || isOwnError(value)) return true;
  // Errors of the DOM are not native in Node.
  return getTag(value) === 'DOMException';
}

/** True for an error of this realm, which libraries recognise by `instanceof`. */
export function isOwnError(value: unknown): value is Error {
  return isInstance(value, Error);
}

/** True for a native promise, and for one of the class that an app has set as the global `Promise`. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return types.isPromise(value) || isInstance(value, globalThis.Promise);
}

export function isDate(value: unknown): value is Date {
  return types.isDate(value);
}

/** True for a `Uint8Array`, and so for a `Buffer`. */
export function isBytes(value: unknown): value is Uint8Array {
  return types.isUint8Array(value);
}

export function isArrayBuffer(value: unknown): value is ArrayBuffer | SharedArrayBuffer {
  return types.isAnyArrayBuffer(value);
}

export function isSet(value: unknown): value is Set<unknown> {
  return types.isSet(value);
}

export function isUrl(value: unknown): value is URL {
  return getTag(value) === 'URL';
}

/** A getter or a proxy may throw when it is asked; a revoked proxy always does. */
export function tryRead<T>(read: () => T, fallback: T): T {
  try {
    return read();
  } catch {
    return fallback;
  }
}

/** Like `instanceof`, for a value from outside. */
export function isInstance<T>(value: unknown, Class: abstract new (...parameters: never[]) => T): value is T {
  return tryRead(() => value instanceof Class, false);
}

function getTag(value: unknown): string {
  return tryRead(() => Object.prototype.toString.call(value), '').slice('[object '.length, -1);
}

/** The fields of an error from outside. Fields that cannot be read, or that have another type, are empty. */
export interface ErrorFields {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** A number as text. Empty if there is no code. */
  readonly code: string;
  readonly cause: unknown;
  /** The errors of an AggregateError. */
  readonly errors: readonly unknown[];
  /** The system call that failed; node-fetch calls it `erroredSysCall`. */
  readonly syscall: string;
}

/** `fetch` wraps a failure two or three times; causes further down help no reader. */
export const MAX_CAUSES = 5;

/** Lists an error and its causes, the innermost last. */
export function listCauses(value: unknown, remaining = MAX_CAUSES): ErrorFields[] {
  const error = readError(value);
  if (error === undefined) return [];
  return [error, ...(remaining > 0 ? listCauses(error.cause, remaining - 1) : [])];
}

/**
 * Masks the user name and password of each URL in a text from outside, such as the URL of a proxy. Mask the API key first, because
 * it can contain an `@`, and the rest of it would not be found.
 */
export function maskUserInfo(text: string): string {
  return text.replace(/(\\?\/\\?\/)[^\s/"<>]+@/g, '$1[redacted]@');
}

/** Reads the fields of an error; undefined if the value is not an error. */
export function readError(value: unknown): ErrorFields | undefined {
  if (!isError(value)) return undefined;
  const read = (field: string): unknown => tryRead(() => Reflect.get(value, field), undefined);
  const readText = (field: string): string => {
    const text = read(field);
    return typeof text === 'string' ? text : '';
  };
  const code = read('code');
  // A DOMException without a code has the code 0.
  const numericCode = typeof code === 'number' && code !== 0 ? String(code) : '';
  const errors = read('errors');
  return {
    name: readText('name') || 'Error',
    message: readText('message'),
    stack: readText('stack'),
    code: readText('code') || numericCode,
    cause: read('cause'),
    errors: tryRead(() => (Array.isArray(errors) ? [...errors] : []), []),
    syscall: readText('erroredSysCall') || readText('syscall'),
  };
}

/** Line breaks, terminal codes, and the characters that reverse the direction of text: they would forge lines in a log. */
const UNPRINTABLE = /[\s\p{Cc}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]+/gu;

/** Makes one printable line of a text. The caller must mask the text before, because the cut could leave half of a secret. */
export function toPrintableLine(text: string, maxLength: number): string {
  // Cut before the search, so that a body of 64 MiB is not searched. `trim` may shorten the text, so keep four times the length.
  const line = maskUserInfo(text.slice(0, maxLength * 4))
    .replace(UNPRINTABLE, ' ')
    .trim();
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
}
