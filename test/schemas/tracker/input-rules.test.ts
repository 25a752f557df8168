import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  trackerInputSchema,
  trackerUpdateSchema,
  trackingSearchInputSchema,
} from '../../../src/schemas/tracker.ts';
import { readIssues, readMessages } from '../../support/parse.ts';

const trackingNumber = 'LA680658838NL';
const messages = (fields: object) => readMessages(trackerInputSchema, { trackingNumber, ...fields });
/** An input in which the field at a path, such as `recipient.email`, has a value. */
const withField = (path: string, value: unknown) =>
  path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object; // A path has a key.
const repeat = (count: number) => 'x'.repeat(count);
const MAX_EMAIL = `${repeat(248)}@b.com`;

describe('a value that keeps the rules', () => {
  const QUOTED = ['"ada lovelace"@example.test', '"a@b"@example.test', '"a\\"b"@example.test'];
  const NO_RUNS = ['12346', '54321', '11111', '1234567891', 'A12345', '12345-6', '7890123', '8901234'];

  test.each<[path: string, values: unknown[]]>([
    ['trackingNumber', ['AB123', repeat(50), 'abc-DEF_1/2.3', '-----', '/////', '.....', ...NO_RUNS]],
    ['destinationPostCode', ['1', repeat(32), 'SW1A 1AA', '1010-024', 'L_1/2.3', ' ']],
    ['title', ['📦'.repeat(255)]],
    ['courierCode', ['us-post', ['us-post'], ['a', 'b', 'c'], []]],
    ['settings.restrictTrackingToCourierCode', [true, false, 'us-post', ['a', 'b', 'c']]],
    ['recipient.email', ['a@b', 'a.b+c@mail.example.test', MAX_EMAIL, ...QUOTED]],
    // Characters of two code units count once.
    ['recipient.name', ['📦'.repeat(100)]],
  ])('%s → sent unchanged', (path, values) => {
    for (const value of values) {
      const input = { trackingNumber, ...withField(path, value) };
      expect(trackerInputSchema.parse(input)).toEqual(input);
    }
  });

  test.each(['originCountryCode', 'destinationCountryCode'])(
    '%s in any case → sent in upper case; the input of the caller stays',
    (field) => {
      for (const code of ['fr', 'Fr', 'fra', 'fRa']) {
        const input = { trackingNumber, [field]: code };
        expect(trackerInputSchema.parse(input)).toEqual({ trackingNumber, [field]: code.toUpperCase() });
        expect(trackerUpdateSchema.parse({ [field]: code })).toEqual({ [field]: code.toUpperCase() });
        expect(trackingSearchInputSchema.parse(input)).toMatchObject({ [field]: code.toUpperCase() });
        expect(input[field]).toBe(code);
      }
    },
  );

  test('any tracking number with valid length and characters that is no ascending run of digits → sent unchanged', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_/.';
    const number = fc.string({ unit: fc.constantFrom(...alphabet), minLength: 5, maxLength: 50 });
    fc.assert(
      fc.property(number, (value) => {
        fc.pre(!'01234567890'.includes(value));
        expect(messages({ trackingNumber: value })).toEqual([]);
      }),
    );
  });
});

describe('a value that breaks a rule → one message with field and rule', () => {
  const NUMBER_LENGTH = 'to have 5 to 50 characters, got';
  const ALPHABET = 'to contain only A-Z, a-z, 0-9, "-", "_", "/" and ".", got';
  const RUN = 'to be a real tracking number and not an ascending run of digits, got';
  const COUNTRY = 'to be a country code of two or three letters, such as DE or DEU, got';
  const EMAIL = 'to be an e-mail address, got';
  const BROKEN_EMAILS = [
    '',
    'a',
    '@b.com',
    'a@',
    'a b@c.com',
    'a@b@c',
    '"a@b.com',
    '"a" b@c.com',
    '""@c.com x',
  ];
  const RUNS = ['12345', '01234', '123456789', '1234567890', '0123456789', '67890', '01234567890'];

  test.each<[path: string, rule: string, values: unknown[]]>([
    ['trackingNumber', `${NUMBER_LENGTH} a string of 51 characters`, [repeat(51)]],
    ['trackingNumber', `${NUMBER_LENGTH} an empty string`, ['']],
    ['trackingNumber', `${NUMBER_LENGTH} 'A#'`, ['A#']],
    ['trackingNumber', `${NUMBER_LENGTH} '1234'`, ['1234']],
    [
      'trackingNumber',
      ALPHABET,
      ['AB 123', 'AB#123', 'AB123\n', 'ÄB123', 'AB123é', 'AB%2F1', '１２３４５６'],
    ],
    ['trackingNumber', RUN, RUNS],
    ['trackingNumber', 'to be a string, got', [undefined, null, 12345]],
    ['clientTrackerId', 'to have at most 100 characters, got a string of 101 characters', [repeat(101)]],
    ['shipmentReference', 'to have at most 100 characters, got a string of 101 characters', [repeat(101)]],
    ['destinationPostCode', 'to have 1 to 32 characters, got', ['', repeat(33)]],
    [
      'destinationPostCode',
      'to contain only A-Z, a-z, 0-9, spaces, "_", "-", "." and "/", got',
      ['94901\n', '１００', '10115#', 'Ä1', '\t1', '1\u00a01', '(1)'],
    ],
    ['courierName', 'to have at most 200 characters, got a string of 201 characters', [repeat(201)]],
    ['trackingUrl', 'to have at most 1000 characters, got a string of 1001 characters', [repeat(1001)]],
    ['orderNumber', 'to have at most 50 characters, got a string of 51 characters', [repeat(51)]],
    ['title', 'to have at most 255 characters, got a string of 256 characters', [repeat(256)]],
    ['courierName', 'to be a string, got a number', [7]],
    ['shippingDate', 'to be a string, got 7', [7]],
    ['originCountryCode', 'to be a string, got 7', [7]],
    ['destinationCountryCode', COUNTRY, ['', 'F', 'FRAN', 'F1', 'F R', 'ÉE']],
    ['courierCode', 'to have at most 3 codes, got 4', [['a', 'b', 'c', 'd']]],
    ['courierCode', 'to be a courier code such as us-post, got', ['', ' ']],
    ['courierCode', 'to be a courier code or an array of courier codes, got 5', [5]],
    ['settings.restrictTrackingToCourierCode', 'to have at most 3 codes, got 4', [[...'abcd']]],
    ['recipient', 'to be an object, got a string of 1 character', ['x']],
    ['recipient.email', 'to have at most 254 characters, got a string of 255 characters', [`x${MAX_EMAIL}`]],
    ['recipient.email', EMAIL, BROKEN_EMAILS],
    ['recipient.name', 'to have at most 100 characters, got a string of 101 characters', [repeat(101)]],
  ])('Expected `%s` %s …', (path, rule, values) => {
    for (const value of values)
      expect(messages(withField(path, value))).toEqual([
        expect.stringContaining(`Expected \`${path}\` ${rule}`),
      ]);
  });

  test.each([
    ['trackingNumber', '\u200bAB1234', 'U+200B at position 1 of a string of 7 characters'],
    ['trackingNumber', 'AB1234\u00a0', 'U+00A0 at position 7 of a string of 7 characters'],
    // The Cyrillic letter looks like the Latin one.
    ['trackingNumber', 'RR12345\u0410', "U+0410 at position 8 of 'RR12345\u0410'"],
    ['trackingNumber', 'AB#12 34', "'#' at position 3 of 'AB#12 34'"],
    // A character of two code units counts once.
    ['trackingNumber', 'AB📦📦12', "U+1F4E6 at position 3 of 'AB📦📦12'"],
    ['destinationPostCode', '94901\u200e', 'U+200E at position 6 of a string of 6 characters'],
  ])('%s %j → a message that names the first other character and its position', (field, value, got) => {
    const issues = readIssues(trackerInputSchema, { trackingNumber, [field]: value });
    expect(issues).toMatchObject([{ code: 'invalid_format', message: expect.stringMatching(/^Expected/) }]);
    expect(issues[0]?.message.endsWith(`, got ${got}`)).toBe(true);
  });

  test.each([
    ['', 'an empty string'],
    [5, '5'],
  ])('%j among courier codes → a message that names the item', (code, got) => {
    expect(messages({ courierCode: ['a', code] })).toEqual([
      `Expected \`courierCode[1]\` to be a non-empty string, got ${got}`,
    ]);
  });

  test.each([
    [undefined, 'undefined'],
    ['LA680658838NL', 'a string of 13 characters'],
    [[], 'an empty array'],
  ])('%j as the whole input → a message that names its kind', (value, kind) => {
    expect(readMessages(trackerInputSchema, value)).toEqual([
      `Expected \`input\` to be an object, got ${kind}`,
    ]);
  });
});

describe('null and undefined', () => {
  test.each(Object.keys(trackerInputSchema.shape).filter((field) => field !== 'trackingNumber'))(
    '%s that is null or undefined → same result as without the field',
    (field) => {
      for (const none of [null, undefined])
        expect(trackerInputSchema.parse({ trackingNumber, [field]: none })).toEqual({ trackingNumber });
    },
  );

  test('a field of recipient or settings that is null → same result as without the field', () => {
    const nulls = { recipient: { name: null }, settings: { restrictTrackingToCourierCode: null } };
    const sent = { trackingNumber, recipient: {}, settings: {} };
    expect(trackerInputSchema.parse({ trackingNumber, ...nulls })).toEqual(sent);
  });

  test('an update in which every field is null → rejected, because it would change nothing', () => {
    expect(trackerUpdateSchema.safeParse({ isSubscribed: null, courierCode: null }).success).toBe(false);
    const patch = { isSubscribed: false };
    expect(trackerUpdateSchema.parse({ ...patch, courierCode: null })).toEqual(patch);
  });
});

test('several broken rules → one issue each, with path and code', () => {
  const fields = { trackingNumber: 'x', recipient: { email: 'x' }, originCountryCode: 5 };
  expect(readIssues(trackerInputSchema, fields).map(({ path, code }) => ({ path, code }))).toEqual([
    { path: ['trackingNumber'], code: 'too_small' },
    { path: ['originCountryCode'], code: 'invalid_type' },
    { path: ['recipient', 'email'], code: 'invalid_format' },
  ]);
});

test('a secret in the wrong field → no message contains it', () => {
  const secret = 'hunter2-hunter2 hunter2';
  const found = messages({ recipient: { email: secret, name: [secret] }, title: [secret], settings: secret });
  expect(found).toHaveLength(4);
  expect(found.join()).not.toContain('hunter2');
});

test('an unknown field → sent unchanged', () => {
  const input = { trackingNumber, parcelColour: 'red', settings: { mode: 3 }, recipient: { phone: '1' } };
  expect(trackerInputSchema.parse(input)).toEqual(input);
});
