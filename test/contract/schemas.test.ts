import { describe, expect, test } from 'vitest';
import * as samples from './support/samples.ts';
import { findBreaches, type SchemaName } from './support/schemas.ts';

/** Together, they contain every documented record. */
const DOCUMENTED: readonly (readonly [schema: SchemaName, example: unknown])[] = [
  ['trackerEnvelope', { data: { tracker: samples.TRACKER } }],
  ['trackerPageEnvelope', { data: { trackers: [samples.TRACKER] } }],
  ['trackingsEnvelope', { data: { trackings: [samples.TRACKING, samples.PENDING_TRACKING] } }],
  ['trackingsEnvelope', { data: { trackings: [] } }],
  ['perCallEnvelope', { data: { trackings: [samples.PER_CALL_TRACKING] } }],
  ['couriersEnvelope', { data: { couriers: [samples.COURIER, samples.BARE_COURIER] } }],
  ['resendEnvelope', { data: { summary: { totalResent: 12 } } }],
  ['bulkEnvelope', samples.BULK_SUCCESS],
  ['bulkEnvelope', samples.BULK_PARTIAL],
  ['bulkEnvelope', samples.BULK_FAILED],
  ['bulkEnvelope', samples.BULK_REFUSED],
  ['errorEnvelope', { errors: [{ code: 'tracker_not_found' }], data: null }],
  ['webhook', samples.ENVELOPED_WEBHOOK],
  ['webhook', samples.PROOF_WEBHOOK],
  ['webhookFlat', samples.FLAT_WEBHOOK],
  ['webhookHistory', samples.HISTORY],
];

describe('the schemas against the documented examples', () => {
  test.each(DOCUMENTED)('%s and its documented example → no breach', (schema, example) => {
    expect(findBreaches(schema, example)).toEqual([]);
  });

  test.each<[SchemaName, unknown, string]>([
    ['tracker', { ...samples.TRACKER, isTracked: undefined }, '/ must have required property'],
    ['tracker', { ...samples.TRACKER, isSubscribed: null }, '/isSubscribed must be boolean'],
    ['tracker', { ...samples.TRACKER, recipient: { name: '' } }, '/recipient/name must NOT have fewer'],
    ['webhookTracker', samples.TRACKER, '/isTracked boolean schema is false'],
    ['event', { ...samples.EVENT, occurrenceDatetime: 'yesterday' }, '/occurrenceDatetime must match'],
    ['webhookHistory', { ...samples.HISTORY, webhooks: [{}] }, '/webhooks/0 must have required property'],
    ['bulkEnvelope', { ...samples.BULK_PARTIAL, error: {} }, '/error must be null'],
  ])('%s and a value that it forbids → $2', (schema, value, breach) => {
    // JSON drops undefined fields, as on the wire.
    const breaches = findBreaches(schema, JSON.parse(JSON.stringify(value)));
    expect(breaches.some((line) => line.startsWith(breach))).toBe(true);
  });

  test('an unknown field in every record → no breach', () => {
    const tracker = { ...samples.TRACKER, carbonFootprint: 12 };
    const event = { ...samples.EVENT, temperature: null };
    const tracking = { ...samples.TRACKING, tracker, events: [event], insurance: {} };
    expect(findBreaches('trackingsEnvelope', { data: { trackings: [tracking] }, meta: {} })).toEqual([]);
  });
});
