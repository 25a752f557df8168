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
  listCauses,
  maskUserInfo,
  readError,
} from '../../src/common/foreign.ts';

/** Makes a value in another realm, as code in jest or in a `vm` context does. */
const elsewhere = (code: string): unknown => runInNewContext(code);
const throws = () => {
  throw new Error('a getter');
};

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

describe('an object that throws when it is asked', () => {
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const { proxy: revokedError, revoke: revokeError } = Proxy.revocable(new Error('x'), {});
  revokeError();
  const ASKED: [what: string, value: unknown][] = [
    ['a tag that throws', Object.defineProperty({}, Symbol.toStringTag, { get: throws })],
    [
      'an inherited tag that throws',
      Object.create(Object.defineProperty({}, Symbol.toStringTag, { get: throws })),
    ],
    ['a proxy whose traps throw', new Proxy({}, { get: throws, getPrototypeOf: throws, has: throws })],
    ['a function whose traps throw', new Proxy(() => {}, { get: throws, getPrototypeOf: throws })],
    ['a revoked proxy', revoked],
    ['a revoked proxy of an error', revokedError],
  ];

  test.each(ASKED)('%s → it is nothing that the package knows', (_what, value) => {
    for (const is of [isArrayBuffer, isBytes, isDate, isError, isOwnError, isPromise, isSet, isUrl])
      expect([is.name, is(value)]).toEqual([is.name, false]);
    expect(readError(value)).toBeUndefined();
    expect(listCauses(value)).toEqual([]);
  });

  test.each(ASKED)('%s in every field of an error → empty fields', (_what, value) => {
    const fields = ['name', 'message', 'stack', 'code', 'errors', 'syscall', 'erroredSysCall'];
    const error = new Error('x');
    // V8 formats the stack, which needs the name, before it replaces the stack.
    expect(error.stack).toBeDefined();
    Object.defineProperties(error, Object.fromEntries([...fields, 'cause'].map((name) => [name, { value }])));
    const empty = { name: 'Error', message: '', stack: '', code: '', errors: [], syscall: '' };
    const { cause: _cause, ...texts } = Object(readError(error));
    expect(texts).toEqual(empty);
    expect(listCauses(error)).toHaveLength(1);
  });

  test('errors that are a list which throws → an empty list', () => {
    const errors = new Proxy([new Error('a')], { get: throws });
    expect(readError(Object.assign(new AggregateError([]), { errors }))?.errors).toEqual([]);
  });
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

  test.each<[what: string, error: object]>([
    ['fields of other types', { name: 7, message: {}, stack: null, code: [], errors: 'none', syscall: [] }],
    ['no fields', { name: undefined, message: undefined, stack: undefined }],
    ['a stack of call sites', { name: '', message: '', stack: [{}, {}] }],
  ])('%s → texts, and an empty list', (_what, fields) => {
    const error = Object.defineProperties(
      new Error('x'),
      Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { value }])),
    );
    const empty = {
      name: 'Error',
      message: '',
      stack: '',
      code: '',
      cause: undefined,
      errors: [],
      syscall: '',
    };
    expect(readError(error)).toEqual(empty);
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

  test('fields that throw when they are read → empty', () => {
    const fields = ['name', 'message', 'stack', 'code', 'cause', 'errors', 'syscall', 'erroredSysCall'];
    const error = new Error('x');
    // V8 formats the stack, which needs the name, before it replaces the stack.
    expect(error.stack).toBeDefined();
    Object.defineProperties(error, Object.fromEntries(fields.map((name) => [name, { get: throws }])));
    expect(readError(error)).toMatchObject({ name: 'Error', message: '', stack: '', code: '' });
  });

  test.each([undefined, null, 'text', 7, { message: 'x' }, () => {}])('%o → undefined', (value) => {
    expect(readError(value)).toBeUndefined();
  });
});

test('listCauses, a cause that is its own cause → six errors', () => {
  const round = new Error('round');
  round.cause = round;
  expect(listCauses(round)).toHaveLength(6);
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
