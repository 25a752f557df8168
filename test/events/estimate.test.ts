import { describe, expect, test } from 'vitest';
import { deliveryEstimate } from '../../src/events/index.ts';
import { shipmentSchema } from '../../src/index.ts';

const COURIER = { courierEstimatedDeliveryDate: { from: '2026-03-05T10:00:00', to: '2026-03-05T12:00:00' } };
const SERVICE = { estimatedDeliveryDate: '2026-03-06' };
const PREDICTION = { aiPredictiveDeliveryDate: { from: '2026-03-07', to: '2026-03-09' } };
const ALL = { ...COURIER, ...SERVICE, ...PREDICTION };

describe('deliveryEstimate', () => {
  test.each([
    ['all estimates', ALL, { from: '2026-03-05T10:00:00', to: '2026-03-05T12:00:00', source: 'courier' }],
    [
      'a date and a prediction',
      { ...SERVICE, ...PREDICTION },
      { from: '2026-03-06', to: '2026-03-06', source: 'service' },
    ],
    ['only a prediction', PREDICTION, { from: '2026-03-07', to: '2026-03-09', source: 'prediction' }],
    [
      'a window without an end',
      { courierEstimatedDeliveryDate: { from: '2026-03-05', to: null } },
      { from: '2026-03-05', source: 'courier' },
    ],
    [
      'a window without a beginning',
      { courierEstimatedDeliveryDate: { from: '', to: '2026-03-05' } },
      { to: '2026-03-05', source: 'courier' },
    ],
  ])('%s → the first source that has one, texts unchanged', (_what, delivery, estimate) => {
    expect(deliveryEstimate({ delivery })).toEqual(estimate);
  });

  test.each([
    ['empty', { from: '', to: '' }],
    ['null', null],
    ['missing', undefined],
    ['without fields', {}],
    ['unreadable', { from: 'tomorrow', to: '5 March' }],
    ['of another type', { from: 5, to: {} }],
    ['a text', '2026-03-05'],
    ['reversed dates', { from: '2026-03-06', to: '2026-03-05' }],
    ['reversed local times', { from: '2026-03-05T12:00:00', to: '2026-03-05T10:00:00' }],
    ['reversed instants', { from: '2026-03-05T10:00:00-02:00', to: '2026-03-05T11:59:00Z' }],
  ])("a courier's window that is %s → the service's date", (_what, courierEstimatedDeliveryDate) => {
    const shipment = { delivery: { ...ALL, courierEstimatedDeliveryDate } };
    // @ts-expect-error The service can break its own schema.
    expect(deliveryEstimate(shipment)).toMatchObject({ source: 'service' });
  });

  test.each([
    ['unreadable', '5 March', '2026-03-09'],
    ['empty', '', '2026-03-09'],
  ])("a service's date that is %s, without a window → the prediction", (_what, estimatedDeliveryDate, to) => {
    const shipment = { delivery: { ...PREDICTION, estimatedDeliveryDate } };
    expect(deliveryEstimate(shipment)).toEqual({ from: '2026-03-07', to, source: 'prediction' });
  });

  test('only a reversed prediction → undefined', () => {
    const aiPredictiveDeliveryDate = { from: '2026-03-09', to: '2026-03-07' };
    expect(deliveryEstimate({ delivery: { aiPredictiveDeliveryDate } })).toBeUndefined();
  });

  test.each([
    ['instants that look reversed', '2026-03-05T10:00:00+02:00', '2026-03-05T09:00:00Z'],
    ['a time and the date of the same day', '2026-03-05T10:00:00', '2026-03-05'],
    ['equal dates', '2026-03-05', '2026-03-05'],
  ])('%s → not reversed', (_what, from, to) => {
    expect(deliveryEstimate({ delivery: { courierEstimatedDeliveryDate: { from, to } } })).toEqual({
      from,
      to,
      source: 'courier',
    });
  });

  test.each([[undefined], [null], [{}], [{ delivery: null }], [{ delivery: {} }]])(
    '%j → undefined',
    (shipment) => {
      expect(deliveryEstimate(shipment)).toBeUndefined();
    },
  );

  test('a shipment that the schema has read → its estimate', () => {
    expect(deliveryEstimate(shipmentSchema.parse({ delivery: SERVICE }))).toMatchObject({ to: '2026-03-06' });
  });
});
