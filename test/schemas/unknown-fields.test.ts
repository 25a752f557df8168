import { expect, test } from 'vitest';
import { courierSchema } from '../../src/schemas/courier.ts';
import { unknownFields } from '../../src/schemas/unknown-fields.ts';
import { BULK, COURIER, EVENT, HISTORY, TRACKER, TRACKING } from '../support/calls.ts';

test.each([
  ['tracker', TRACKER],
  ['tracking', TRACKING],
  ['event', EVENT],
  ['courier', COURIER],
  ['bulk result', BULK],
  ['webhook history', HISTORY],
  ['shipment', { shipmentId: 's', statusMilestone: 'delivered', delivery: {} }],
  ['delivery', { signedBy: 'A', service: 'B' }],
  ['recipient', { name: 'A', city: 'B' }],
])('a %s and a field added later → that field', (_name, record) => {
  expect(unknownFields({ ...record, addedLater: [1], another: null })).toEqual({
    addedLater: [1],
    another: null,
  });
});

test('only known fields → nothing', () => {
  expect(unknownFields(TRACKER)).toEqual({});
});

test('as many fields of a tracker as of a courier → compared with a tracker', () => {
  expect(unknownFields({ trackerId: 't', website: 'w' })).toEqual({ website: 'w' });
});

test('a schema given → compared with that one', () => {
  expect(unknownFields({ courierCode: 'x', trackerId: 't' }, courierSchema)).toEqual({ trackerId: 't' });
});

test('the record → untouched', () => {
  const record = Object.freeze({ ...TRACKER, addedLater: 1 });
  unknownFields(record);
  expect(record).toEqual({ ...TRACKER, addedLater: 1 });
});

test('a field named like something every object has → unknown all the same', () => {
  expect(unknownFields({ ...TRACKER, toString: 1, constructor: 2 })).toEqual({ toString: 1, constructor: 2 });
});
