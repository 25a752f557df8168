import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isAscendingDigitRun, trackerInputSchema, trackingNumber } from '../../src/schemas/tracker.ts';
import { messagesOf } from '../support/parse.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_/.';
const validNumber = fc
  .string({ unit: fc.constantFrom(...ALPHABET), minLength: 5, maxLength: 50 })
  .filter((value) => !isAscendingDigitRun(value));

const of = (value: unknown) => messagesOf(trackerInputSchema, { trackingNumber: value });

describe('length', () => {
  test.each(['AB123', 'A'.repeat(50)])('%s, as short or as long as allowed → accepted', (value) => {
    expect(of(value)).toEqual([]);
  });

  test.each([
    ['A'.repeat(51), 'a string of 51 characters'],
    ['', 'an empty string'],
    ['A#', 'a string of 2 characters'],
    ['1234', 'a string of 4 characters'],
  ])('%j, whatever else it breaks → one message, about the length', (value, got) => {
    expect(of(value)).toEqual([`Expected \`trackingNumber\` to have 5 to 50 characters, got ${got}`]);
  });
});

describe('characters', () => {
  test.each(['LA680658838NL', 'abc-DEF_1/2.3', '-----', '/////', '.....'])('%s → accepted', (value) => {
    expect(of(value)).toEqual([]);
  });

  test.each(['AB 123', 'AB#123', 'AB123\n', 'ÄB123', 'AB123é', 'AB%2F1', '１２３４５６'])(
    '%j → rejected with the rule',
    (value) => {
      expect(of(value)).toEqual([
        `Expected \`trackingNumber\` to hold only A-Z, a-z, 0-9, "-", "_", "/" and ".", got a string of ${value.length} characters`,
      ]);
    },
  );
});

describe('kind', () => {
  test.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [12345, 'a number'],
    [['AB123'], 'an array of 1'],
  ])('%j → rejected, the kind is named', (value, kind) => {
    expect(of(value)[0]).toBe(`Expected \`trackingNumber\` to be a string, got ${kind}`);
  });
});

describe('dummy values', () => {
  test.each(['12345', '01234', '123456789', '1234567890', '0123456789', '67890', '01234567890'])(
    '%s → rejected as an ascending run',
    (value) => {
      expect(of(value)).toEqual([
        'Expected `trackingNumber` to be a real tracking number, got a plain ascending run of digits',
      ]);
    },
  );

  test.each(['12346', '54321', '11111', '1234567891', 'A12345', '12345-6', '7890123', '8901234'])(
    '%s → accepted',
    (value) => {
      expect(of(value)).toEqual([]);
    },
  );
});

test('any number of the right length and characters that is no run → accepted unchanged', () => {
  fc.assert(
    fc.property(validNumber, (value) => {
      expect(trackingNumber.parse(value)).toBe(value);
    }),
  );
});
