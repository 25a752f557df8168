import { describe, expect, test } from 'vitest';
import { bulkInputSchema } from '../../../src/schemas/bulk.ts';
import { trackerListQuerySchema, trackerUpdateSchema } from '../../../src/schemas/tracker.ts';
import { readMessages } from '../../support/parse.ts';

const item = { trackingNumber: 'LA680658838NL' };

describe('bulk input', () => {
  test.each([1, 100])('%d items → accepted unchanged', (count) => {
    const items = Array(count).fill(item);
    expect(bulkInputSchema.parse(items)).toEqual(items);
  });

  const BAD_EMAIL = { ...item, recipient: { email: 'x' } };
  test.each([
    [
      'no item',
      [],
      '`items` to have 1 to 100 items (`trackers.createMany` takes any number), got an empty array',
    ],
    [
      '101 items',
      Array(101).fill(item),
      '`items` to have 1 to 100 items (`trackers.createMany` takes any number), got an array of 101 items',
    ],
    ['nothing', undefined, '`items` to be an array, got undefined'],
    ['a single item', item, '`items` to be an array, got an object'],
    ['an item that is null', [null], '`items[0]` to be an object, got null'],
    ['a bad second item', [item, BAD_EMAIL], '`items[1].recipient.email` to be an e-mail address, got'],
  ])('%s → rejected with the rule', (_name, items, rule) => {
    expect(readMessages(bulkInputSchema, items, 'items')).toEqual([
      expect.stringContaining(`Expected ${rule}`),
    ]);
  });
});

describe('update', () => {
  test.each([
    { isSubscribed: false },
    { courierCode: ['us-post'], originCountryCode: 'FR', destinationPostCode: '1' },
    { courierName: 'USPS' },
    { trackingUrl: 'https://example.test/t' },
    { recipient: { name: 'Ada' } },
    { recipient: { name: '' } },
    { addedLater: 1 },
  ])('%j → accepted unchanged', (patch) => {
    expect(trackerUpdateSchema.parse(patch)).toEqual(patch);
  });

  test.each([
    [{}, '`patch` to have at least one field, got none'],
    [{ isSubscribed: undefined }, '`patch` to have at least one field, got none'],
    [{ recipient: {} }, '`patch` to have at least one field, got none'],
    [{ recipient: { name: null, email: null } }, '`patch` to have at least one field, got none'],
    [
      { recipient: { name: 'Ada', email: 'ada@example.test' } },
      '`recipient.email` to be left out (an update cannot change it), got a string of 16 characters',
    ],
    [
      { recipient: { name: 'x'.repeat(101) } },
      '`recipient.name` to have at most 100 characters, got a string of 101 characters',
    ],
    [
      { courierName: 'x'.repeat(201) },
      '`courierName` to have at most 200 characters, got a string of 201 characters',
    ],
    [
      { trackingUrl: 'x'.repeat(1001) },
      '`trackingUrl` to have at most 1000 characters, got a string of 1001 characters',
    ],
    [{ isSubscribed: 'false' }, "`isSubscribed` to be true or false, got 'false'"],
  ])('%j → rejected with the rule', (patch, rule) => {
    expect(readMessages(trackerUpdateSchema, patch)).toEqual([`Expected ${rule}`]);
  });
});

describe('list query', () => {
  test.each([
    { page: 1, limit: 1 },
    { page: 10_000, limit: 500, sort: 1 },
    { page: 1, limit: 100, sort: -1 },
  ])('%j → accepted unchanged', (query) => {
    expect(trackerListQuerySchema.parse(query)).toEqual(query);
  });

  test.each([
    [{ page: 0 }, 'Expected `page` to be a whole number of at least 1, got 0'],
    [{ page: 1.5 }, 'Expected `page` to be a whole number of at least 1, got 1.5'],
    [{ page: '1' }, "Expected `page` to be a whole number of at least 1, got '1'"],
    [{ page: Number.NaN }, 'Expected `page` to be a whole number of at least 1, got NaN'],
    [{ limit: 0 }, 'Expected `limit` to be a whole number from 1 to 500, got 0'],
    [{ limit: 501 }, 'Expected `limit` to be a whole number from 1 to 500, got 501'],
    [{ sort: 2 }, 'Expected `sort` to be 1 or -1, got 2'],
    [{ sort: 'asc' }, "Expected `sort` to be 1 or -1, got 'asc'"],
  ])('%j → %s', (query, message) => {
    expect(readMessages(trackerListQuerySchema, query)).toEqual([message]);
  });
});
