import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { searchBySchema, trackerIdentifier, trackingNumberIdentifier } from '../../src/schemas/tracker.ts';
import { messagesOf } from '../support/parse.ts';

/** `encodeURIComponent` for every character, so nothing is left as it is. */
function encodeAll(value: string): string {
  return [...value].map((one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
}

const dots = fc
  .constantFrom('.', '..')
  .chain((value) =>
    fc
      .tuple(...[...value].map((one) => fc.constantFrom(one, '%2e', '%2E', '%252e', '%25%32%65')))
      .map((parts) => parts.join('')),
  );

describe('tracker ids', () => {
  test.each(['order 1042', 'a/b', '...', 'a..b', '..a', '%', '%zz', '😀'])(
    '%s → accepted unchanged',
    (id) => {
      expect(trackerIdentifier.parse(id)).toBe(id);
    },
  );

  test.each(['.', '..', '%2e', '%2E%2e', '%2e.', '%252e%252e', '%25252e', ' .. ', '%20..'])(
    '%j → rejected as a dot segment',
    (id) => {
      expect(messagesOf(trackerIdentifier, id)).toEqual(['Expected `value` to be an id, got a dot segment']);
    },
  );

  test.each([
    ['', 'a non-empty id'],
    ['\t\n', 'a non-empty id'],
    [undefined, 'a string'],
    [5, 'a string'],
    ['\ud800', 'well-formed Unicode'],
    ['a\udc00b', 'well-formed Unicode'],
  ])('%j → rejected, because it must be %s', (id, rule) => {
    expect(messagesOf(trackerIdentifier, id)).toEqual([
      expect.stringContaining(`Expected \`value\` to be ${rule}, got `),
    ]);
  });

  test('every encoding of a dot segment, also several times over → rejected', () => {
    fc.assert(
      fc.property(dots, fc.nat(3), (value, rounds) => {
        let id = value;
        for (let round = 0; round < rounds; round += 1) id = encodeAll(id);
        expect(trackerIdentifier.safeParse(id).success).toBe(false);
      }),
    );
  });

  test.each([
    [8, 'rejected', false],
    [9, 'taken for an id: no server decodes that often', true],
  ])('a dot segment encoded %d times over → %s', (times, _outcome, isAccepted) => {
    const id = `%${'25'.repeat(times - 1)}2e`;
    expect(trackerIdentifier.safeParse(id).success).toBe(isAccepted);
  });
});

describe('tracking numbers in a path', () => {
  test.each(['LA680658838NL', 'AB/12/3', 'A..B/C', '12345'])('%s → accepted unchanged', (value) => {
    expect(trackingNumberIdentifier.parse(value)).toBe(value);
  });

  test.each(['../..', 'AB/../CD', 'ABCD/.', './ABCD', 'ABCD/..'])(
    '%s → rejected as a dot segment',
    (value) => {
      expect(messagesOf(trackingNumberIdentifier, value)).toEqual([
        'Expected `value` to be a tracking number, got a dot segment',
      ]);
    },
  );

  test.each(['', 'AB12', 'AB%2E%2E', 'AB 123', 'A'.repeat(51)])(
    '%j → rejected like any other number',
    (value) => {
      expect(trackingNumberIdentifier.safeParse(value).success).toBe(false);
    },
  );
});

test('another word as searchBy → rejected with the rule', () => {
  expect(messagesOf(searchBySchema, 'clientId')).toEqual([
    'Expected `value` to be "trackerId" or "clientTrackerId", got a string of 8 characters',
  ]);
});
