import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { bulkResultSchema } from '../../src/schemas/bulk.ts';
import { courierSchema } from '../../src/schemas/courier.ts';
import { checkResponse } from '../../src/schemas/envelope.ts';
import { trackerSchema } from '../../src/schemas/tracker.ts';
import { trackingSchema } from '../../src/schemas/tracking.ts';

const TRACKER = {
  trackerId: 't1',
  trackingNumber: 'RR123456785CN',
  isTracked: true,
  isSubscribed: true,
  createdAt: '2026-03-01T00:00:00.000Z',
};
const { trackerId: _id, ...WITHOUT_ID } = TRACKER;
const { trackingNumber: _number, ...WITHOUT_NUMBER } = TRACKER;
const EVENT = { eventId: 'e1', occurrenceDatetime: '2026-03-01' };

function pathsOf({ mismatched }: { readonly mismatched: readonly { readonly path: readonly unknown[] }[] }) {
  return mismatched.map(({ path }) => path.join('.'));
}

test.each(['keep', 'warn', 'throw'] as const)('nothing odd, %s → the data, nothing named', (mode) => {
  const checked = checkResponse(trackerSchema, TRACKER, mode);
  expect(checked).toEqual({ data: TRACKER, isUsable: true, mismatched: [], total: 0 });
});

describe("mode 'keep'", () => {
  test('a field of another type → as it came, and named', () => {
    const odd = { ...TRACKER, isTracked: 'yes' };
    const message = 'Expected `isTracked` to be a boolean, got a string of 3 characters';
    const mismatched = [{ path: ['isTracked'], code: 'invalid_type', message }];
    expect(checkResponse(trackerSchema, odd, 'keep')).toEqual({
      data: odd,
      isUsable: true,
      mismatched,
      total: 1,
    });
  });

  test('an odd field beside missing events → the events are still an empty list', () => {
    const checked = checkResponse(trackingSchema, { statistics: [], events: null }, 'keep');
    expect(checked.data).toEqual({ statistics: [], events: [] });
  });

  test('a value of an add-on in an unknown form → as it came', () => {
    const tracking = { events: [], shipment: { delivery: { aiPredictiveDeliveryDate: 7 } } };
    expect(checkResponse(trackingSchema, tracking, 'keep')).toMatchObject({ data: tracking, total: 1 });
  });

  test.each([
    ['no id', WITHOUT_ID, '1.trackerId'],
    ['null', null, '1'],
    ['text', 'RR123456785CN', '1'],
  ])('an item of a list that is %s → left out and named, the others stay', (_what, item, path) => {
    const checked = checkResponse(z.array(trackerSchema), [TRACKER, item, WITHOUT_NUMBER], 'keep');
    expect(checked.data).toEqual([TRACKER, WITHOUT_NUMBER]);
    expect(pathsOf(checked)).toEqual([expect.stringContaining(path), '2.trackingNumber']);
    expect(checked.mismatched[0]?.message).toMatch(/; the item is left out$/);
  });

  test('an event without its id → left out of its tracking', () => {
    const tracking = { events: [{ occurrenceDatetime: '2026-03-02' }, EVENT] };
    expect(checkResponse(trackingSchema, tracking, 'keep').data).toEqual({ events: [EVENT] });
  });

  test.each([
    ['tracker', trackerSchema, { ...TRACKER, courierCode: ['us-post', 7] }],
    ['courier', courierSchema, { courierCode: 'us-post', requiredFields: [7, 'courierAccount'] }],
  ])('an odd item of a list of plain values, of a %s → kept', (_name, schema, odd) => {
    expect(checkResponse<unknown>(z.array(schema), [odd], 'keep').data).toEqual([odd]);
  });

  test('a bulk item whose tracker has no id → kept, it is an outcome all the same', () => {
    const data = [{ itemStatus: 'created', tracker: WITHOUT_ID }];
    const checked = checkResponse(bulkResultSchema, { status: 'success', data }, 'keep');
    expect(checked.data).toEqual({ status: 'success', data });
  });

  test('500 records that lack three fields → the first 20 are named, all are counted', () => {
    const items = Array.from({ length: 500 }, (_, index) => ({
      trackerId: `t${index}`,
      trackingNumber: 'x',
    }));
    const checked = checkResponse(z.array(trackerSchema), items, 'keep');
    expect(checked).toMatchObject({ data: { length: 500 }, mismatched: { length: 20 }, total: 1500 });
  });

  test('one left out behind many odd ones → named first', () => {
    const items = Array.from({ length: 100 }, () => WITHOUT_NUMBER);
    const checked = checkResponse(z.array(trackerSchema), [...items, WITHOUT_ID], 'keep');
    expect(pathsOf(checked)[0]).toBe('100.trackerId');
  });

  test('used often enough to be compiled → says the same', () => {
    const items = [TRACKER, WITHOUT_ID, WITHOUT_NUMBER];
    const schema = z.array(trackerSchema);
    const [first, ...others] = Array.from({ length: 120 }, () => checkResponse(schema, items, 'keep'));
    for (const other of others) expect(other).toEqual(first);
  });

  test('an odd payload → is not changed itself', () => {
    const items = [TRACKER, WITHOUT_ID];
    checkResponse(z.array(trackerSchema), items, 'keep');
    expect(items).toEqual([TRACKER, WITHOUT_ID]);
  });
});

describe('what is none', () => {
  test.each([
    ['a single tracker without its id', trackerSchema, WITHOUT_ID],
    ['null', trackerSchema, null],
    ['an object for a list', z.array(trackerSchema), {}],
    ['null for a bulk response', bulkResultSchema, null],
  ])('%s → can not be used, in every mode', (_what, schema, payload) => {
    for (const mode of ['keep', 'warn', 'throw'] as const) {
      const checked = checkResponse<unknown>(schema, payload, mode);
      expect(checked.isUsable).toBe(false);
      expect(checked.total).toBeGreaterThan(0);
    }
  });

  test.each([
    ['events that are text', trackingSchema, { events: 'none' }],
    ['bulk data that is no list', bulkResultSchema, { status: 'success', data: {} }],
  ])("%s → can not be used, but with 'warn' handed over", (_what, schema, payload) => {
    expect(checkResponse<unknown>(schema, payload, 'keep').isUsable).toBe(false);
    expect(checkResponse<unknown>(schema, payload, 'throw').isUsable).toBe(false);
    expect(checkResponse<unknown>(schema, payload, 'warn').data).toBe(payload);
  });
});

describe('the other modes', () => {
  test("'throw', one odd field → can not be used", () => {
    expect(checkResponse(trackerSchema, { ...TRACKER, createdAt: 7 }, 'throw')).toMatchObject({
      isUsable: false,
      mismatched: [{ path: ['createdAt'] }],
    });
  });

  test("'warn', an item without its id → handed over as it came", () => {
    const items = [TRACKER, WITHOUT_ID];
    const checked = checkResponse(z.array(trackerSchema), items, 'warn');
    expect(checked.data).toEqual(items);
    expect(checked.mismatched[0]?.message).not.toContain('left out');
  });
});
