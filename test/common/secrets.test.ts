import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { maskCause, maskHeaders, maskText, maskValue, toPrintableLine } from '../../src/common/secrets.ts';

const SECRET = 'sk-live-0123456789';

/** Prints everything that a log could show of a value. */
const shown = (value: unknown) => inspect(value, { depth: 20, showHidden: true, maxStringLength: null });

test.each([
  ['every occurrence', `a ${SECRET} b ${SECRET}`, SECRET, 'a [redacted] b [redacted]'],
  ['no secret', 'text', '', 'text'],
  ['no occurrence', 'x', '$&', 'x'],
  ['8 characters, inside a word', 'x12345678', '12345678', 'x[redacted]'],
  ['7 characters, inside a word', 'x1234567', '1234567', 'x1234567'],
  ['characters that mean something in a pattern', 'a.c abc', 'a.c', '[redacted] abc'],
  ['characters that mean something in a replacement', '$& x', '$&', '[redacted] x'],
  ['a short secret before an underscore', 'company_x any_x', 'any', 'company_x any_x'],
  ['a short secret before a hyphen', 'any-thing', 'any', 'any-thing'],
  ['a short secret as a word', 'the key any is unknown', 'any', 'the key [redacted] is unknown'],
  ['a short secret in parentheses', '(any)', 'any', '([redacted])'],
  ['nothing but a short secret', 'any', 'any', '[redacted]'],
  ['percent-encoded', 'key=a%2Fb%3D0123456789&x=1', 'a/b=0123456789', 'key=[redacted]&x=1'],
  ['percent-encoded in lower case', 'a%2fb%3d0123456789', 'a/b=0123456789', '[redacted]'],
  ['percent-encoded in part', 'k=%61/b%3d0123456789', 'a/b=0123456789', 'k=[redacted]'],
  ['a short secret, percent-encoded in part', 'k=%61ny x', 'any', 'k=[redacted] x'],
  ['a space, percent-encoded', '?k=a%20b/0123456789', 'a b/0123456789', '?k=[redacted]'],
  ['form-encoded', '?k=a+b%7E0123456789%21', 'a b~0123456789!', '?k=[redacted]'],
  [
    'plain and percent-encoded',
    'a/b=0123456789 a%2Fb%3D0123456789',
    'a/b=0123456789',
    '[redacted] [redacted]',
  ],
  ['a short secret after an encoded space', 'a%20any%20b', 'any', 'a%20[redacted]%20b'],
  ['a key of percent signs, encoded and plain', '%25%25%25 %%%', '%%%', '[redacted] [redacted]'],
  ['a key with an escape', 'k=ab%41cdefg x', 'ab%41cdefg', 'k=[redacted] x'],
  ['two encoded keys', '%61bcdefgh,abcdefg%68%21', 'abcdefgh', '[redacted],[redacted]%21'],
  ['a percent sign beside a plain secret', '100% 12345678', '12345678', '100% [redacted]'],
])('maskText, %s: text %j, secret %j → %j', (_what, text, secret, masked) => {
  expect(maskText(text, secret)).toBe(masked);
});

test.each([
  ['a key of percent signs', '%'.repeat(38), '[redacted]'.repeat(26_315) + '%'.repeat(30)],
  ['a key that nearly matches everywhere', `${'%'.repeat(37)}x`, '%'.repeat(1_000_000)],
  ['an ordinary key', SECRET, '%'.repeat(1_000_000)],
])('a million percent signs and %s → masked in linear time', (_what, secret, masked) => {
  // A pattern with a choice for every character of the key can take many seconds.
  expect(maskText('%'.repeat(1_000_000), secret) === masked).toBe(true);
});

test('maskValue, a value nested ten thousand levels deep → masked without a stack overflow', () => {
  const depth = 10_000;
  const value: unknown = JSON.parse(`${'['.repeat(depth)}"${SECRET}"${']'.repeat(depth)}`);
  expect(JSON.stringify(maskValue(value, SECRET))).not.toContain(SECRET);
});

test('maskHeaders, several cookies, one with the secret → all kept, the secret is masked', () => {
  const headers = new Headers();
  headers.append('set-cookie', `a=${SECRET}`);
  headers.append('set-cookie', 'b=2');
  expect(maskHeaders(headers, SECRET).getSetCookie()).toEqual(['a=[redacted]', 'b=2']);
});

/** The message and the first five frames of a stack. */
const readFirstFrames = ({ stack }: Error) => stack?.split('\n').slice(0, 6).join('\n');

describe('maskCause', () => {
  test('an error → a masked copy with name, code, message and stack', () => {
    const cause = Object.assign(new RangeError(`sent ${SECRET}`), { code: 'ECODE' });
    const copy = maskCause(cause, SECRET);
    expect(copy).not.toBe(cause);
    expect(copy).toMatchObject({
      name: 'RangeError',
      message: 'sent [redacted]',
      code: 'ECODE',
      stack: readFirstFrames(cause)?.replaceAll(SECRET, '[redacted]'),
    });
    expect(Object.keys(Object(copy))).not.toContain('stack');
  });

  test('a code or a name with the secret → masked', () => {
    const cause = Object.assign(new Error('failed'), { code: SECRET, name: SECRET });
    expect(maskCause(cause, SECRET)).toMatchObject({ code: '[redacted]', name: '[redacted]' });
  });

  test.each([
    ['a request', { request: { headers: { authorization: `Bearer ${SECRET}` } } }],
    ['a map', { held: new Map([['a', { b: SECRET }]]) }],
    ['a JSON form of its own', { toJSON: () => SECRET }],
    ['a body of bytes', { rawBody: new Uint8Array(1_000) }],
    ['errors of an AggregateError', { errors: [new Error(SECRET)] }],
  ])('%s on an error → left out', (_what, fields) => {
    const copy = maskCause(Object.assign(new Error('failed'), fields), SECRET);
    expect(Object.keys(Object(copy))).toEqual(['name']);
    expect(shown(copy)).not.toContain(SECRET);
  });

  test('a chain of seven causes → the first five, each masked', () => {
    let cause: Error | undefined;
    for (let level = 7; level >= 1; level -= 1) cause = new Error(`${level} ${SECRET}`, { cause });
    const messages: string[] = [];
    for (let copy = Object(maskCause(cause, SECRET)); copy instanceof Error; copy = Object(copy.cause))
      messages.push(copy.message);
    expect(messages).toEqual([1, 2, 3, 4, 5].map((level) => `${level} [redacted]`));
  });

  test.each([
    [`text ${SECRET}`, 'text [redacted]'],
    [{ authorization: SECRET }, '[object Object]'],
    [undefined, 'undefined'],
    [Object.assign(Object.create(null), { key: SECRET }), 'a value of type object'],
  ])('%j, which is no error → %j', (cause, text) => {
    expect(maskCause(cause, SECRET)).toBe(text);
  });
});

test.each([
  ['line breaks and tabs', ' a\n\n  b\tc ', 'a b c'],
  ['terminal codes of C0', 'a\u001b[2J\u0000b', 'a [2J b'],
  ['terminal codes of C1', 'a\u009b31m\u0085b', 'a 31m b'],
  ['line separators', 'a\u2028b\u2029c', 'a b c'],
  ['characters that turn the direction of text', 'a\u202eb\u2066c\u200fd\u061ce', 'a b c d e'],
  ['other languages', 'ü 日本 🙂', 'ü 日本 🙂'],
  ['a text of the maximum length', 'x'.repeat(20), 'x'.repeat(20)],
  ['a text one character longer', 'x'.repeat(21), `${'x'.repeat(19)}…`],
  ['a word behind far too many spaces', `${' '.repeat(80)}x`, ''],
])('toPrintableLine, %s → one line of at most 20 characters', (_what, text, line) => {
  expect(toPrintableLine(text, 20)).toBe(line);
});
