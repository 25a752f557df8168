import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { endpoints } from '../../src/endpoints.ts';
import { checkResponse } from '../../src/http/check-response.ts';
import { bulkResultSchema } from '../../src/schemas/bulk.ts';
import { courierSchema } from '../../src/schemas/courier.ts';
import { listOf } from '../../src/schemas/record.ts';
import { trackerSchema } from '../../src/schemas/tracker.ts';
import { trackingListSchema, trackingSchema } from '../../src/schemas/tracking.ts';
import { webhookHistorySchema } from '../../src/schemas/webhook.ts';
import { EVENT, TRACKER } from '../contract/support/samples.ts';

const { trackerId: _id, ...WITHOUT_ID } = TRACKER;
const { trackingNumber: _number, ...WITHOUT_NUMBER } = TRACKER;
const MODES = ['keep', 'throw'] as const;

function joinPaths({
  mismatched,
}: {
  readonly mismatched: readonly { readonly path: readonly unknown[] }[];
}) {
  return mismatched.map(({ path }) => path.join('.'));
}

describe("mode 'keep'", () => {
  test('wrong fields in results without events → the events are an empty list, also after 20 issues', () => {
    const items = Array.from({ length: 50 }, () => ({ tracker: 7 }));
    const checked = checkResponse(trackingListSchema, items, 'keep');
    expect(checked.data).toEqual(items.map((item) => ({ ...item, events: [] })));
    const single = { statistics: [], events: null };
    expect(checkResponse(trackingSchema, single, 'keep').data).toEqual({ statistics: [], events: [] });
  });

  test('list records without their id or another field → all are kept, with issues', () => {
    const items = [TRACKER, WITHOUT_ID, {}, WITHOUT_NUMBER];
    const checked = checkResponse(listOf(trackerSchema), items, 'keep');
    expect(checked.data).toEqual(items);
    expect(joinPaths(checked)).toEqual([
      '1.trackerId',
      '2.trackerId',
      '2.trackingNumber',
      '2.isTracked',
      '3.trackingNumber',
    ]);
  });

  test.each([{ occurrenceDatetime: '2026-03-02' }, { eventId: 7 }, { eventId: null }])(
    'an event whose id is no string (%j) → kept, with an issue',
    (odd) => {
      const checked = checkResponse(trackingSchema, { events: [odd, EVENT] }, 'keep');
      expect(checked.data).toEqual({ events: [odd, EVENT] });
      expect(joinPaths(checked)).toEqual(['events.0.eventId']);
      expect(checked.mismatched[0]?.message).toMatch(/^Expected `events\[0\]\.eventId` to be a string, got /);
    },
  );

  test.each([
    ['tracker', trackerSchema, { ...TRACKER, courierCode: ['us-post', 7] }],
    ['courier', courierSchema, { courierCode: 'us-post', requiredFields: [7, 'courierAccount'] }],
    ['tracking', trackingSchema, { events: [], shipment: { trackingNumbers: ['a', null, { tn: 7 }] } }],
  ])('a wrong item in a list of plain values of a %s → kept', (_name, schema, odd) => {
    expect(checkResponse<unknown>(listOf<z.ZodType>(schema), [odd], 'keep').data).toEqual([odd]);
  });

  test('a payload with wrong fields → the payload object is not changed', () => {
    const payload = [{ tracker: WITHOUT_ID }];
    checkResponse(trackingListSchema, payload, 'keep');
    expect(payload).toEqual([{ tracker: WITHOUT_ID }]);
  });
});

describe.each(MODES)('payloads of another kind in mode %s', (mode) => {
  test.each([
    ['a single tracker without its id', trackerSchema, WITHOUT_ID],
    ['null', trackerSchema, null],
    ['an object for a list', listOf(trackerSchema), {}],
    ['events that are text', trackingSchema, { events: 'none' }],
    ['a list of results with events that are text', trackingListSchema, [{ events: 'none' }]],
    ['bulk data that is no list', bulkResultSchema, { status: 'success', data: {} }],
    ['a webhook history without its list', webhookHistorySchema, {}],
    ['a list with null', listOf(trackerSchema), [TRACKER, null]],
    ['a list with a text', listOf(courierSchema), ['us-post']],
    ['an event that is a number', trackingSchema, { events: [EVENT, 0] }],
    ['an event that is a number, and a wrong tracker', trackingSchema, { tracker: 7, events: [EVENT, 0] }],
    ['a bulk item that is null', bulkResultSchema, { status: 'success', data: [null] }],
    ['a pushed webhook that is a text', webhookHistorySchema, { webhooks: ['x'] }],
    [
      'an event that is a number, behind more than 20 issues',
      trackingListSchema,
      [...Array(50).fill({ tracker: 7 }), { events: [EVENT, 0] }],
    ],
  ])('%s → the payload cannot be used, and its mismatches are counted', (_what, schema, payload) => {
    const checked = checkResponse<unknown>(schema, payload, mode);
    expect(checked.isUsable).toBe(false);
    expect(checked.total).toBeGreaterThan(0);
  });
});

test('a list item that is no object → one issue with its position and kind', () => {
  const { mismatched } = checkResponse(listOf(trackerSchema), [TRACKER, 0, {}], 'keep');
  expect(mismatched).toEqual([
    { path: [1], code: 'invalid_type', message: 'Expected `data[1]` to be an object, got a number' },
  ]);
});

describe('200,000 wrong items', () => {
  const ZEROS = Array(200_000).fill(0);
  const EMPTY = ZEROS.map(() => ({}));

  test.each([
    ['numbers as couriers', endpoints['couriers.list'].response.schema, ZEROS],
    ['objects without fields as trackers', endpoints['trackers.list'].response.schema, EMPTY],
    ['objects without fields as events', trackingSchema, { events: EMPTY }],
    ['numbers as tracking numbers', trackingSchema, { shipment: { trackingNumbers: ZEROS } }],
    ['numbers as required fields', courierSchema, { courierCode: 'us-post', requiredFields: ZEROS }],
    ['numbers as courier codes', trackerSchema, { ...TRACKER, courierCode: ZEROS }],
  ])('%s → at most 20 issues, and the rest are not checked', (_what, schema: z.ZodType, payload) => {
    const { mismatched, total } = checkResponse(schema, payload, 'keep');
    expect(mismatched).toHaveLength(Math.min(total, 20));
    expect(total).toBeGreaterThan(0);
    expect(total).toBeLessThan(30);
  });
});
