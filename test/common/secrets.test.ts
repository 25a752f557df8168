import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toPrintableLine } from '../../src/common/foreign.ts';
import { Secret } from '../../src/common/secrets.ts';

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
  ['percent-encoded by a form', 'a%21b%7E012.345-6789', 'a!b~012.345-6789', '[redacted]'],
  ['percent-encoded with all punctuation', 'k=sk%2Dlive%2D0123456789', SECRET, 'k=[redacted]'],
  ['a short secret, percent-encoded', 'a%26b xa%26b', 'a&b', '[redacted] xa%26b'],
  ['a slash as JSON escapes it', 'a\\/b=0123456789', 'a/b=0123456789', '[redacted]'],
  [
    'plain and percent-encoded',
    'a/b=0123456789 a%2Fb%3D0123456789',
    'a/b=0123456789',
    '[redacted] [redacted]',
  ],
  ['a key of percent signs, encoded and plain', '%25%25%25 %%%', '%%%', '[redacted] [redacted]'],
  ['a key with an escape', 'k=ab%41cdefg x', 'ab%41cdefg', 'k=[redacted] x'],
  ['a secret of which one character is encoded', 'k=ab%2Bcd/ef01', 'ab+cd/ef01', 'k=[redacted]'],
  ['a secret of which another character is encoded', 'k=ab+cd%2Fef01', 'ab+cd/ef01', 'k=[redacted]'],
  ['a secret of which one hyphen is encoded', 'k=sk%2Dlive-0123456789', SECRET, 'k=[redacted]'],
  ['a secret of which a letter is encoded', 'k=%73k-liv%65-0123456789', SECRET, 'k=[redacted]'],
  ['a secret with upper and lower case in its escapes', 'a%2fb%2Fc01234', 'a/b/c01234', '[redacted]'],
  ['a secret with percent and JSON escapes', 'a%2fb\\/c/1234', 'a/b/c/1234', '[redacted]'],
  ['a secret of which every character is encoded', '%61%2f%62%2F%30%31%32%33', 'a/b/0123', '[redacted]'],
  ['a short secret after an escaped space', 'x%20k3y-ab', 'k3y-ab', 'x%20[redacted]'],
  ['a short secret after an escaped line break of JSON', 'x\\nk3y-ab', 'k3y-ab', 'x\\n[redacted]'],
  ['a short secret after an escaped character of JSON', 'x\\u0022k3y-ab', 'k3y-ab', 'x\\u0022[redacted]'],
  ['a short secret before an escaped space', 'k3y-ab%20x', 'k3y-ab', '[redacted]%20x'],
  ['a short secret behind digits without an escape', '20k3y-ab', 'k3y-ab', '20k3y-ab'],
  ['an escape that is cut off', 'sk%2', 'sk%2Dlive', 'sk%2'],
  ['a percent sign beside a plain secret', '100% 12345678', '12345678', '100% [redacted]'],
])('mask, %s: text %j, secret %j → %j', (_what, text, secret, masked) => {
  expect(new Secret(secret).mask(text)).toBe(masked);
});

test('any text around any key in any form → the key is masked, everything else is kept', () => {
  const filler = fc.stringMatching(/^[^\w%\\-]*$/);
  const key = fc.stringMatching(/^[\x23-\x26\x28-\x5b\x5d-\x5f\x61-\x7e]{8,40}$/);
  const form = fc.constantFrom<(key: string) => string>(
    (key) => key,
    encodeURIComponent,
    (key) => encodeURIComponent(key).replace(/%../g, (encoded) => encoded.toLowerCase()),
    (key) => new URLSearchParams({ key }).toString().slice('key='.length),
    (key) => key.replaceAll('/', '\\/'),
    (key) => key.replace(/[^a-m0-4]/g, (character) => `%${character.charCodeAt(0).toString(16)}`),
  );
  fc.assert(
    fc.property(key, form, filler, filler, (key, write, before, after) => {
      fc.pre(!`${before} ${after}`.includes(key));
      expect(new Secret(key).mask(`${before} ${write(key)} ${after}`)).toBe(`${before} [redacted] ${after}`);
    }),
  );
});

test.each([
  ['a key that nearly matches everywhere', `${'%'.repeat(37)}x`, '%'],
  ['an ordinary key', SECRET, 'a&b '],
  ['an ordinary key', SECRET, '%25'],
  ['an ordinary key', SECRET, SECRET.slice(0, -1)],
  ['an ordinary key', SECRET, `${SECRET.slice(0, -1).replaceAll('-', '%2D')} `],
  ['a key that repeats a letter', 'aaaaaaaaab', 'a'],
])(
  '64 MiB of text and %s %j, which is not in it: %j again and again → the same text',
  (_what, secret, part) => {
    const text = part.repeat(2 ** 26 / part.length);
    expect(new Secret(secret).mask(text) === text).toBe(true);
  },
);

test('a mebibyte full of the key → masked everywhere', () => {
  expect(new Secret(SECRET).mask(`${SECRET} `.repeat(55_000))).toBe('[redacted] '.repeat(55_000));
});

describe('maskBeginning', () => {
  const secret = new Secret('sk/live/0123456789');
  const SECRET_HEX = 'sk/live/0123456789'.replace(
    /./g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );

  test.each([
    ['shorter than the limit', 'a sk/live/0123456789', 100, 'a [redacted]'],
    ['no secret', 'abcdef', 3, 'abc'],
    ['a secret that ends at the limit', 'a sk/live/0123456789 b', 20, 'a [redacted]'],
    ['the limit inside of a secret', 'a sk/live/0123456789 b', 10, 'a [redacted]'],
    ['the limit behind the first character of a secret', 'a sk/live/0123456789 b', 3, 'a [redacted]'],
    ['a secret that begins at the limit', 'a sk/live/0123456789 b', 2, 'a '],
    ['the limit inside of a percent-encoded secret', 'sk%2Flive%2F0123456789', 5, '[redacted]'],
    ['the limit inside of a partly encoded secret', 'sk%2Flive/0123456789', 5, '[redacted]'],
    ['the limit inside of a secret that is encoded whole', SECRET_HEX, 50, '[redacted]'],
    ['a limit of 0', 'sk/live/0123456789', 0, ''],
    ['a negative limit', 'sk/live/0123456789', -1, ''],
  ])('%s → cut and masked', (_what, text, length, expected) => {
    expect(secret.maskBeginning(text, length)).toBe(expected);
  });

  test('any limit in a text full of secrets → no part of a secret is left', () => {
    const text =
      'sk/live/0123456789 sk%2Flive%2F0123456789 sk%2flive/0123456789 sk\\/live%2F0123456789 '.repeat(20);
    for (let length = 0; length <= text.length; length += 1)
      expect(secret.maskBeginning(text, length)).toMatch(/^(?:\[redacted\] )*(?:\[redacted\])?$/);
  });
});

test.each([
  ['the secret as it is', `["${SECRET}"]`, SECRET, true],
  ['as a name', `{"${SECRET}":1}`, SECRET, true],
  ['partly encoded', '["sk%2Dlive-0123456789"]', SECRET, true],
  ['with a character escaped by JSON', '["sk\\u002dlive-0123456789"]', SECRET, true],
  ['with a letter escaped by JSON', '["\\u0073k-live-0123456789"]', SECRET, true],
  ['with an escaped slash', '["a\\/b/01234"]', 'a/b/01234', true],
  ['with an escaped slash in a text of JSON', '["a\\\\/b/01234"]', 'a/b/01234', true],
  ['with a slash that is escaped twice', '["a\\\\\\/b/01234"]', 'a/b/01234', true],
  ['a part of the secret, and other escapes', '["sk-live\\n\\u00fc\\\\ \\u0041 %20"]', SECRET, false],
  ['a short secret after a line break', '["x\\nany"]', 'any', true],
  ['a short secret in a word', '["company\\u0041"]', 'any', false],
])('isInJson, %s: JSON %s, secret %s → %s', (_what, text, secret, expected) => {
  expect(new Secret(secret).isInJson(JSON.parse(text), text)).toBe(expected);
});

describe('maskValue', () => {
  test('a value nested ten thousand levels deep → masked without a stack overflow', () => {
    const depth = 10_000;
    const value: unknown = JSON.parse(`${'['.repeat(depth)}"${SECRET}"${']'.repeat(depth)}`);
    expect(JSON.stringify(new Secret(SECRET).maskValue(value))).not.toContain(SECRET);
  });

  test('texts and names with the secret → masked in a copy; other parts are not copied', () => {
    const value = { [SECRET]: [1, { a: `x ${SECRET}` }], other: { list: ['b', null, true] } };
    const masked = new Secret(SECRET).maskValue(value);
    expect(masked).toEqual({ '[redacted]': [1, { a: 'x [redacted]' }], other: { list: ['b', null, true] } });
    expect(Object(masked).other).toBe(value.other);
    expect(value).toHaveProperty([SECRET]);
  });

  test('no secret in it → the value itself', () => {
    const value = { a: [{ b: 'text' }] };
    expect(new Secret(SECRET).maskValue(value)).toBe(value);
  });
});

test('an empty secret, as long as there is no key → masks nothing', () => {
  const none = new Secret('');
  expect([none.mask('a b'), none.maskBeginning('a b', 2), none.maskValue('a')]).toEqual(['a b', 'a ', 'a']);
});

test('a secret that is printed → not shown', () => {
  const secret = new Secret(SECRET);
  expect(shown(secret) + JSON.stringify(secret)).not.toContain(SECRET);
});

/** The message and the first five frames of a stack. */
const readFirstFrames = ({ stack }: Error) => stack?.split('\n').slice(0, 6).join('\n');

describe('maskCause', () => {
  test('an error → a masked copy with name, code, message and stack', () => {
    const cause = Object.assign(new RangeError(`sent ${SECRET}`), { code: 'ECODE' });
    const copy = new Secret(SECRET).maskCause(cause);
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
    expect(new Secret(SECRET).maskCause(cause)).toMatchObject({ code: '[redacted]', name: '[redacted]' });
  });

  test.each([
    ['a request', { request: { headers: { authorization: `Bearer ${SECRET}` } } }],
    ['a map', { held: new Map([['a', { b: SECRET }]]) }],
    ['a JSON form of its own', { toJSON: () => SECRET }],
    ['a body of bytes', { rawBody: new Uint8Array(1_000) }],
    ['errors of an AggregateError', { errors: [new Error(SECRET)] }],
  ])('%s on an error → left out', (_what, fields) => {
    const copy = new Secret(SECRET).maskCause(Object.assign(new Error('failed'), fields));
    expect(Object.keys(Object(copy))).toEqual(['name']);
    expect(shown(copy)).not.toContain(SECRET);
  });

  test('a chain of seven causes → the first five, each masked', () => {
    let cause: Error | undefined;
    for (let level = 7; level >= 1; level -= 1) cause = new Error(`${level} ${SECRET}`, { cause });
    const messages: string[] = [];
    for (
      let copy = Object(new Secret(SECRET).maskCause(cause));
      copy instanceof Error;
      copy = Object(copy.cause)
    )
      messages.push(copy.message);
    expect(messages).toEqual([1, 2, 3, 4, 5].map((level) => `${level} [redacted]`));
  });

  test.each([
    [`text ${SECRET}`, 'text [redacted]'],
    [{ authorization: SECRET }, '[object Object]'],
    [undefined, 'undefined'],
    [Object.assign(Object.create(null), { key: SECRET }), 'a value of type object'],
  ])('%j, which is no error → %j', (cause, text) => {
    expect(new Secret(SECRET).maskCause(cause)).toBe(text);
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
