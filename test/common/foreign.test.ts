import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import {
  isArrayBuffer,
  isBytes,
  isDate,
  isError,
  isOwnError,
  isPromise,
  isSet,
  isUrl,
  maskUserInfo,
  readError,
} from '../../src/common/foreign.ts';

/** Makes a value in another realm, as code in jest or in a `vm` context does. */
const elsewhere = (code: string): unknown => runInNewContext(code);

test.each<[kind: string, is: (value: unknown) => boolean, here: unknown, code: string, others: unknown[]]>([
  [
    'an error',
    isError,
    new TypeError('x'),
    'new RangeError("x")',
    [{ name: 'Error', message: 'x' }, 'x', null],
  ],
  ['a promise', isPromise, Promise.resolve(), 'Promise.resolve()', [{ catch() {} }, () => {}, undefined]],
  ['a date', isDate, new Date(), 'new Date()', [Date.now(), '2026-01-01', {}]],
  ['bytes', isBytes, Buffer.from('x'), 'new Uint8Array(1)', [new Uint16Array(1), [1], 'x']],
  ['an array buffer', isArrayBuffer, new ArrayBuffer(1), 'new SharedArrayBuffer(1)', [Buffer.from('x'), {}]],
  ['a set', isSet, new Set(), 'new Set()', [new Map(), [], new WeakSet()]],
])('%s of any realm → recognised, and nothing else', (_kind, is, here, code, others) => {
  expect([is(here), is(elsewhere(code))]).toEqual([true, true]);
  for (const other of others) expect(is(other)).toBe(false);
});

test.each([
  ['an error of this realm', new TypeError('x'), true],
  ['a DOMException of this realm', new DOMException('x'), true],
  ['an error of another realm', elsewhere('new TypeError("x")'), false],
  ['a text', 'x', false],
])('isOwnError, %s → an error of this realm or not', (_what, value, expected) => {
  expect(isOwnError(value)).toBe(expected);
});

test('a DOMException → an error', () => {
  expect(isError(new DOMException('aborted', 'AbortError'))).toBe(true);
});

test.each([
  ['a URL', new URL('https://a.test'), true],
  ['an object of another URL class', { href: 'https://a.test', [Symbol.toStringTag]: 'URL' }, true],
  ['a text', 'https://a.test', false],
  ['another object', { href: 'https://a.test' }, false],
])('isUrl, %s → %s', (_what, value, expected) => {
  expect(isUrl(value)).toBe(expected);
});

describe('readError', () => {
  test('an ordinary error → its fields', () => {
    const cause = new Error('inner');
    const error = Object.assign(new TypeError('outer', { cause }), { code: 'E', syscall: 'read' });
    expect(readError(error)).toEqual({
      name: 'TypeError',
      message: 'outer',
      stack: error.stack,
      code: 'E',
      cause,
      errors: [],
      syscall: 'read',
    });
  });

  test('fields of other types → the name `Error`, empty texts and an empty list', () => {
    const fields = { name: 7, message: {}, stack: [{}], code: [], errors: 'none', syscall: [] };
    const error = new Error('x');
    for (const [name, value] of Object.entries(fields)) Object.defineProperty(error, name, { value });
    const empty = { name: 'Error', message: '', stack: '', code: '', errors: [], syscall: '' };
    expect(readError(error)).toEqual({ ...empty, cause: undefined });
  });

  test.each<[code: unknown, text: string]>([
    [20, '20'],
    [11_000, '11000'],
    [-111, '-111'],
    ['E', 'E'],
    [0, ''],
    [20n, ''],
  ])('code %o → %j', (code, text) => {
    expect(readError(Object.assign(new Error('x'), { code }))?.code).toBe(text);
  });

  test.each([undefined, null, 'text', 7, { message: 'x' }, () => {}])('%o → undefined', (value) => {
    expect(readError(value)).toBeUndefined();
  });
});

test.each(['//', '//a', '@', '//@', '//a/', '\\/'])(
  'maskUserInfo, 4 MiB of %j again and again, without a user name in a URL → the same text',
  (part) => {
    const text = part.repeat(2 ** 22 / part.length);
    expect(maskUserInfo(text) === text).toBe(true);
  },
);

test('maskUserInfo, 4 MiB of URLs with a user name → masked everywhere', () => {
  expect(maskUserInfo('//a:b@c '.repeat(2 ** 19))).toBe('//[redacted]@c '.repeat(2 ** 19));
});
