import { describe, expect, test } from 'vitest';
import * as samples from './support/samples.ts';
import { findBreaches, SCHEMA_FILES } from './support/schemas.ts';

const DOCUMENTED: readonly (readonly [schema: string, example: unknown])[] = [
  ['tracker', samples.TRACKER],
  ['webhook-tracker', samples.WEBHOOK_TRACKER],
  ['event', samples.EVENT],
  ['event', samples.BARE_EVENT],
  ['shipment', samples.SHIPMENT],
  ['shipment', samples.EMPTY_SHIPMENT],
  ['statistics', samples.STATISTICS],
  ['courier', samples.COURIER],
  ['courier', samples.BARE_COURIER],
  ['tracker-envelope', { data: { tracker: samples.TRACKER } }],
  ['tracker-page-envelope', { data: { trackers: [samples.TRACKER] } }],
  ['trackings-envelope', { data: { trackings: [samples.TRACKING, samples.PENDING_TRACKING] } }],
  ['trackings-envelope', { data: { trackings: [] } }],
  ['per-call-envelope', { data: { trackings: [samples.PER_CALL_TRACKING] } }],
  ['couriers-envelope', { data: { couriers: [samples.COURIER] } }],
  ['resend-envelope', { data: { summary: { totalResent: 12 } } }],
  ['restriction', true],
  ['restriction', 'us-post'],
  ['restriction', ['us-post']],
  ['bulk-envelope', samples.BULK_SUCCESS],
  ['bulk-envelope', samples.BULK_PARTIAL],
  ['bulk-envelope', samples.BULK_FAILED],
  ['bulk-envelope', samples.BULK_REFUSED],
  ['error-envelope', { errors: [{ code: 'tracker_not_found' }], data: null }],
  ['webhook', samples.ENVELOPED_WEBHOOK],
  ['webhook', samples.PROOF_WEBHOOK],
  ['webhook-flat', samples.FLAT_WEBHOOK],
  ['webhook-history', samples.HISTORY],
];

describe('the schemas against the documented examples', () => {
  test.each(DOCUMENTED)('%s.json and its documented example → no breach', (schema, example) => {
    expect(findBreaches(schema, example)).toEqual([]);
  });

  test('every file → a valid schema', () => {
    for (const file of SCHEMA_FILES) expect(() => findBreaches(file.replace('.json', ''), {})).not.toThrow();
  });

  test.each([
    ['tracker', { ...samples.TRACKER, isTracked: undefined }, '/ must have required property'],
    ['tracker', { ...samples.TRACKER, isSubscribed: null }, '/isSubscribed must be boolean'],
    ['webhook-tracker', samples.TRACKER, '/isTracked boolean schema is false'],
    ['event', { ...samples.EVENT, occurrenceDatetime: 'yesterday' }, '/occurrenceDatetime must match'],
    ['webhook-history', { ...samples.HISTORY, webhooks: [{}] }, '/webhooks/0 must have required property'],
    ['bulk-envelope', { ...samples.BULK_PARTIAL, error: {} }, '/error must be null'],
  ])('%s.json and a value that it forbids → $2', (schema, value, breach) => {
    // JSON drops undefined fields, as on the wire.
    const breaches = findBreaches(schema, JSON.parse(JSON.stringify(value)));
    expect(breaches.some((line) => line.startsWith(breach))).toBe(true);
  });

  test('an unknown field in every record → no breach', () => {
    const tracker = { ...samples.TRACKER, carbonFootprint: 12 };
    const event = { ...samples.EVENT, temperature: null };
    const tracking = { ...samples.TRACKING, tracker, events: [event], insurance: {} };
    expect(findBreaches('trackings-envelope', { data: { trackings: [tracking] }, meta: {} })).toEqual([]);
  });
});
