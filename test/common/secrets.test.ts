import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { redactCause, redactHeaders, redactText, redactValue } from '../../src/common/secrets.ts';

const SECRET = 'sk-live-0123456789';

describe('redactText', () => {
  test('every occurrence → masked', () => {
    expect(redactText(`a ${SECRET} b ${SECRET}`, SECRET)).toBe('a [redacted] b [redacted]');
  });

  test('characters that mean something in a pattern → taken literally', () => {
    expect(redactText('a.c abc', 'a.c')).toBe('[redacted] abc');
    expect(redactText('x', '$&')).toBe('x');
  });

  test('no secret → unchanged', () => {
    expect(redactText('text', '')).toBe('text');
  });
});

describe('a secret of fewer than 8 characters', () => {
  test.each([
    ['company_x', 'company_x'],
    ['an any-thing', 'an any-thing'],
    ['the key any is unknown', 'the key [redacted] is unknown'],
    ['Bearer any', 'Bearer [redacted]'],
    ['any', '[redacted]'],
    ['(any)', '([redacted])'],
  ])('%j → %j: masked only as a word of its own', (text, clean) => {
    expect(redactText(text, 'any')).toBe(clean);
  });

  test.each([
    ['7 characters', '1234567', 'x1234567'],
    ['8 characters', '12345678', 'x[redacted]'],
  ])('%s inside a longer word → masked from 8 on', (_what, secret, clean) => {
    expect(redactText(`x${secret}`, secret)).toBe(clean);
  });

  test('letters that mean something in a pattern → taken as they are', () => {
    expect(redactText('a.c abc', 'a.c')).toBe('[redacted] abc');
  });

  test('headers that hold it as letters → the headers themselves', () => {
    const headers = new Headers({ 'x-code': 'company_x' });
    expect(redactHeaders(headers, 'any')).toBe(headers);
  });

  test('a cause that holds it as letters → the cause itself', () => {
    const cause = new Error('the company is unknown');
    cause.stack = 'Error: the company is unknown';
    expect(redactCause(cause, 'any')).toBe(cause);
  });
});

describe('redactValue', () => {
  test('strings and names at any depth → masked; the rest as it was', () => {
    const value = { a: [`Bearer ${SECRET}`, 5, null, true], [SECRET]: { b: SECRET } };
    expect(redactValue(value, SECRET)).toEqual({
      a: ['Bearer [redacted]', 5, null, true],
      '[redacted]': { b: '[redacted]' },
    });
  });

  test('the value it was made from → untouched', () => {
    const value = { a: SECRET };
    redactValue(value, SECRET);
    expect(value).toEqual({ a: SECRET });
  });

  test('a value nested ten thousand deep → masked without running out of stack', () => {
    const depth = 10_000;
    const value: unknown = JSON.parse(`${'['.repeat(depth)}"${SECRET}"${']'.repeat(depth)}`);
    expect(() => redactValue(value, SECRET)).not.toThrow();
  });
});

describe('redactHeaders', () => {
  test('a value that holds the secret → masked in a copy', () => {
    const headers = new Headers({ 'x-echo': `Bearer ${SECRET}`, 'x-other': 'a' });
    const clean = redactHeaders(headers, SECRET);
    expect(clean.get('x-echo')).toBe('Bearer [redacted]');
    expect(clean.get('x-other')).toBe('a');
    expect(headers.get('x-echo')).toBe(`Bearer ${SECRET}`);
  });

  test('several cookies, one with the secret → all of them kept, that one masked', () => {
    const headers = new Headers();
    headers.append('set-cookie', `a=${SECRET}`);
    headers.append('set-cookie', 'b=2');
    expect(redactHeaders(headers, SECRET).getSetCookie()).toEqual(['a=[redacted]', 'b=2']);
  });

  test('no secret in them → the same headers', () => {
    const headers = new Headers({ 'x-other': 'a' });
    expect(redactHeaders(headers, SECRET)).toBe(headers);
  });
});

describe('redactCause', () => {
  const shows = (value: unknown) =>
    inspect(value, { depth: 20, showHidden: true, maxStringLength: null }).includes(SECRET);

  test('a cause without the secret → the original', () => {
    const cause = new TypeError('fetch failed');
    expect(redactCause(cause, SECRET)).toBe(cause);
  });

  test('the secret in the message → a copy with name, code and stack, masked', () => {
    const cause = Object.assign(new RangeError(`sent ${SECRET}`), { code: 'ECODE' });
    const clean = redactCause(cause, SECRET);
    expect(clean).toMatchObject({ name: 'RangeError', message: 'sent [redacted]', code: 'ECODE' });
    expect(shows(clean)).toBe(false);
  });

  test('the secret in the cause of the cause → masked there', () => {
    const clean = redactCause(new Error('outer', { cause: new Error(SECRET) }), SECRET);
    expect(clean).toMatchObject({ message: 'outer', cause: { message: '[redacted]' } });
    expect(shows(clean)).toBe(false);
  });

  test('the secret in a property → gone', () => {
    const cause = Object.assign(new Error('failed'), {
      request: { headers: { authorization: `Bearer ${SECRET}` } },
    });
    expect(shows(redactCause(cause, SECRET))).toBe(false);
  });

  test('the secret at the end of a very long property → gone', () => {
    const cause = Object.assign(new Error('failed'), { dump: 'x'.repeat(20_000) + SECRET });
    expect(shows(redactCause(cause, SECRET))).toBe(false);
  });

  test('the secret after many array items → gone', () => {
    const cause = Object.assign(new Error('failed'), { log: [...Array(200).fill('x'), SECRET] });
    const clean = redactCause(cause, SECRET);
    expect(clean).not.toHaveProperty('log');
  });

  test('a code that holds the secret → masked', () => {
    const cause = Object.assign(new Error('failed'), { code: SECRET });
    expect(redactCause(cause, SECRET)).toMatchObject({ code: '[redacted]' });
  });

  test.each([`text ${SECRET}`, { authorization: SECRET }])(
    '%j, which is no error → text without the secret',
    (cause) => {
      expect(shows(redactCause(cause, SECRET))).toBe(false);
    },
  );

  test('a cause that is its own cause → ends', () => {
    const cause = new Error(SECRET);
    cause.cause = cause;
    expect(shows(redactCause(cause, SECRET))).toBe(false);
  });

  test('the secret in a cyclic cause ten levels down → gone', () => {
    const deepest: Record<string, unknown> = { key: SECRET };
    let value: Record<string, unknown> = deepest;
    for (let depth = 0; depth < 10; depth += 1) value = { value };
    const cause = Object.assign(new Error('failed'), { value });
    deepest['cycle'] = cause;
    expect(redactCause(cause, SECRET)).not.toHaveProperty('value');
  });

  test.each([
    ['a map', new Map([['a', { b: SECRET }]])],
    ['a set', new Set([SECRET])],
    ['the name of a field', { [SECRET]: 1 }],
    ['a boxed string', Object(`Bearer ${SECRET}`)],
    ['a hidden field', Object.defineProperty({}, 'hidden', { value: SECRET, enumerable: false })],
    ['a field whose name is a symbol', { [Symbol('headers')]: SECRET }],
    ['headers, which print themselves', new Headers({ authorization: SECRET })],
    ['a promise, which can not be looked into', Promise.resolve(SECRET)],
    ['a JSON form of its own', { toJSON: () => SECRET }],
  ])('the secret in %s → gone', (_what, held) => {
    const cause = Object.assign(new Error('failed'), { held });
    expect(redactCause(cause, SECRET)).not.toHaveProperty('held');
  });

  test('a getter → a copy without it, and it is not run', () => {
    let runs = 0;
    const cause = Object.defineProperty(new Error('failed'), 'held', {
      enumerable: true,
      get() {
        runs += 1;
        return SECRET;
      },
    });
    expect(redactCause(cause, SECRET)).not.toHaveProperty('held');
    expect(runs).toBe(0);
  });

  test('twenty megabytes of bytes → not read, the original is kept', () => {
    const cause = Object.assign(new Error('failed'), { rawBody: new Uint8Array(20_000_000) });
    expect(redactCause(cause, SECRET)).toBe(cause);
  });

  test.each([
    ['a million numbers', Array.from({ length: 1_000_000 }, () => 1)],
    ['a text of a hundred megabytes', 'x'.repeat(100_000_000)],
    ['what can not be printed', new Proxy({}, { ownKeys: () => null } as unknown as ProxyHandler<object>)],
  ])('%s, too much to be sure → a copy without it', (_what, held) => {
    const cause = Object.assign(new Error('failed'), { held });
    expect(redactCause(cause, SECRET)).not.toHaveProperty('held');
  });

  test('an object without a prototype that holds the secret → text without it', () => {
    const cause = Object.assign(Object.create(null), { key: SECRET });
    expect(redactCause(cause, SECRET)).toBe('a value of type object');
  });
});
