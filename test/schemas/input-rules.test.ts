import { describe, expect, test } from 'vitest';
import { trackerInputSchema, trackerUpdateSchema } from '../../src/schemas/tracker.ts';
import { issuesOf, messagesOf } from '../support/parse.ts';

const trackingNumber = 'LA680658838NL';
const messages = (fields: object) => messagesOf(trackerInputSchema, { trackingNumber, ...fields });

describe('text fields', () => {
  test.each([
    ['clientTrackerId', 100, 'at most 100 characters'],
    ['shipmentReference', 100, 'at most 100 characters'],
    ['destinationPostCode', 32, '1 to 32 characters'],
  ])('%s of %d characters → accepted; of one more → rejected with the rule', (field, max, rule) => {
    expect(messages({ [field]: 'x'.repeat(max) })).toEqual([]);
    expect(messages({ [field]: 'x'.repeat(max + 1) })).toEqual([
      `Expected \`${field}\` to have ${rule}, got a string of ${max + 1} characters`,
    ]);
  });

  test('a destinationPostCode of no characters → rejected', () => {
    expect(messages({ destinationPostCode: '' })).toEqual([
      'Expected `destinationPostCode` to have 1 to 32 characters, got an empty string',
    ]);
  });

  test.each([
    'clientTrackerId',
    'shipmentReference',
    'destinationPostCode',
    'courierName',
    'shippingDate',
    'originCountryCode',
  ])('%s that is a number → rejected', (field) => {
    expect(messages({ [field]: 7 })).toEqual([`Expected \`${field}\` to be a string, got a number`]);
  });

  test.each(Object.keys(trackerInputSchema.shape).filter((field) => field !== 'trackingNumber'))(
    '%s that is null → as if it were left out',
    (field) => {
      expect(trackerInputSchema.parse({ trackingNumber, [field]: null })).toEqual({ trackingNumber });
    },
  );

  test('a null inside of recipient and settings → as if it were left out', () => {
    const nulls = { recipient: { name: null }, settings: { restrictTrackingToCourierCode: null } };
    expect(trackerInputSchema.parse({ trackingNumber, ...nulls })).toEqual({
      trackingNumber,
      recipient: {},
      settings: {},
    });
  });

  test('an update of nothing but nulls → rejected, it would change nothing', () => {
    expect(trackerUpdateSchema.safeParse({ isSubscribed: null, courierCode: null }).success).toBe(false);
    expect(trackerUpdateSchema.parse({ isSubscribed: false, courierCode: null })).toEqual({
      isSubscribed: false,
    });
  });
});

describe('country codes', () => {
  test.each(['FR', 'FRA', 'fr', 'fra'])('originCountryCode %s → accepted', (code) => {
    expect(messages({ originCountryCode: code })).toEqual([]);
  });

  test.each(['', 'F', 'FRAN', 'F1', 'F R', 'ÉE'])(
    'destinationCountryCode %j → rejected with the rule',
    (code) => {
      expect(messages({ destinationCountryCode: code })).toEqual([
        expect.stringContaining(
          'Expected `destinationCountryCode` to be an ISO 3166-1 alpha-2 or alpha-3 country code, got',
        ),
      ]);
    },
  );
});

describe('courier codes', () => {
  test.each([['us-post'], [['us-post']], [['a', 'b', 'c']], [[]]])('%j → accepted', (courierCode) => {
    expect(messages({ courierCode })).toEqual([]);
  });

  test.each([
    [['a', 'b', 'c', 'd'], 'to have at most 3 codes, got an array of 4'],
    ['', 'to be a courier code, got an empty string'],
    [' ', 'to be a courier code, got a string of 1 character'],
    [['a', ''], 'to hold courier codes only, got an array of 2'],
    [['a', 5], 'to hold courier codes only, got an array of 2'],
    [5, 'to be a courier code or an array of them, got a number'],
  ])('%j → rejected with the rule', (courierCode, rule) => {
    expect(messages({ courierCode })).toEqual([`Expected \`courierCode\` ${rule}`]);
  });

  test.each([[true], [false], ['us-post'], [['a', 'b', 'c']]])(
    'settings.restrictTrackingToCourierCode %j → sent as given',
    (restrictTrackingToCourierCode) => {
      const input = { trackingNumber, settings: { restrictTrackingToCourierCode } };
      expect(trackerInputSchema.parse(input)).toEqual(input);
    },
  );

  test('settings.restrictTrackingToCourierCode with 4 codes → rejected with the rule', () => {
    expect(messages({ settings: { restrictTrackingToCourierCode: ['a', 'b', 'c', 'd'] } })).toEqual([
      'Expected `settings.restrictTrackingToCourierCode` to have at most 3 codes, got an array of 4',
    ]);
  });
});

describe('recipient', () => {
  const longest = `${'x'.repeat(248)}@b.com`;
  const quoted = ['"ada lovelace"@example.test', '"a@b"@example.test', '"a\\"b"@example.test'];
  test.each(['a@b', 'a.b+c@mail.example.test', longest, ...quoted])('email %s → accepted', (email) => {
    expect(messages({ recipient: { email } })).toEqual([]);
  });

  test('an email of 255 characters → rejected with the rule', () => {
    expect(messages({ recipient: { email: `x${longest}` } })).toEqual([
      'Expected `recipient.email` to have at most 254 characters, got a string of 255 characters',
    ]);
  });

  const broken = ['', 'a', '@b.com', 'a@', 'a b@c.com', 'a@b@c', '"a@b.com', '"a" b@c.com', '""@c.com x'];
  test.each(broken)('email %j → rejected with the rule', (email) => {
    expect(messages({ recipient: { email } })).toEqual([
      expect.stringContaining('Expected `recipient.email` to be an e-mail address, got'),
    ]);
  });

  test('a name of 100 characters of two code units → accepted; of 101 → rejected with the rule', () => {
    expect(messages({ recipient: { name: '📦'.repeat(100) } })).toEqual([]);
    expect(messages({ recipient: { name: 'x'.repeat(101) } })).toEqual([
      'Expected `recipient.name` to have at most 100 characters, got a string of 101 characters',
    ]);
  });

  test('a string in place of it → rejected', () => {
    expect(messages({ recipient: 'x' })).toEqual([
      'Expected `recipient` to be an object, got a string of 1 character',
    ]);
  });
});

describe('the input as a whole', () => {
  test.each([
    [undefined, 'undefined'],
    ['LA680658838NL', 'a string of 13 characters'],
    [[], 'an array of 0'],
  ])('%j → rejected, the kind is named', (value, kind) => {
    expect(messagesOf(trackerInputSchema, value)).toEqual([
      `Expected \`input\` to be an object, got ${kind}`,
    ]);
  });

  test('several broken rules → one issue each, with path and code', () => {
    const issues = issuesOf(trackerInputSchema, {
      trackingNumber: 'x',
      recipient: { email: 'x' },
      originCountryCode: 5,
    });
    expect(issues.map(({ path, code }) => ({ path, code }))).toEqual([
      { path: ['trackingNumber'], code: 'too_small' },
      { path: ['originCountryCode'], code: 'invalid_type' },
      { path: ['recipient', 'email'], code: 'invalid_format' },
    ]);
  });

  test('a secret in the wrong field → never in a message', () => {
    const secret = 'hunter2-hunter2 hunter2';
    const found = messages({
      trackingNumber: secret,
      originCountryCode: secret,
      shippingDate: secret,
      recipient: { email: secret },
      courierCode: [secret, ''],
    });
    expect(found).toHaveLength(5);
    expect(found.join()).not.toContain('hunter2');
  });

  test('a field that no rule knows → kept', () => {
    const input = { trackingNumber, parcelColour: 'red', settings: { mode: 3 }, recipient: { phone: '1' } };
    expect(trackerInputSchema.parse(input)).toEqual(input);
  });
});
