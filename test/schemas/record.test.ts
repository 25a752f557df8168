import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { apiErrorItemSchema } from '../../src/schemas/api-error.ts';
import { bulkItemSchema, bulkResultSchema } from '../../src/schemas/bulk.ts';
import { courierSchema } from '../../src/schemas/courier.ts';
import { eventSchema, webhookEventSchema } from '../../src/schemas/event.ts';
import { trackerSchema } from '../../src/schemas/tracker.ts';
import {
  perCallTrackingSchema,
  recipientSchema,
  shipmentDeliverySchema,
  shipmentSchema,
  statisticsSchema,
  trackingSchema,
} from '../../src/schemas/tracking.ts';
import {
  eventsMessageSchema,
  otherMessageSchema,
  proofOfDeliverySchema,
  webhookHistorySchema,
} from '../../src/schemas/webhook.ts';
import {
  BARE_COURIER,
  BULK_SUCCESS,
  EVENT,
  HISTORY,
  PER_CALL_TRACKING,
  PROOF_ITEM,
  SHIPMENT,
  STATISTICS,
  TRACKER,
  TRACKING,
} from '../contract/support/samples.ts';

const FULL_EVENT = { ...EVENT, datetime: '2021-03-04T17:12:57', utcOffset: '+08:00', hasNoTime: false };

const ERROR = { code: 'validation_error', message: 'm' };
const BULK_ITEM = {
  itemStatus: 'created',
  inputData: {
    trackingNumber: 'LA680658838NL',
    clientTrackerId: 'order-1',
    shipmentReference: 'ref',
    courierCode: ['us-post'],
    originCountryCode: 'CN',
    destinationCountryCode: 'FR',
    destinationPostCode: '1',
    shippingDate: '2026-01-02',
    courierName: 'USPS',
    trackingUrl: 'https://example.test/t',
    orderNumber: '7',
    title: 'Shoes',
    recipient: { email: 'a@example.test', name: 'A' },
    settings: { restrictTrackingToCourierCode: ['us-post'] },
  },
  tracker: TRACKER,
  errors: [ERROR],
};
const FULL_BULK = {
  ...BULK_SUCCESS,
  data: [BULK_ITEM, { itemStatus: 'error', inputData: { courierCode: 'us-post' } }],
  error: ERROR,
};

const RECORDS: [name: string, schema: z.ZodObject, full: Record<string, unknown>, required: string[]][] = [
  ['tracker', trackerSchema, TRACKER, ['trackerId', 'trackingNumber', 'isTracked']],
  ['event', eventSchema, FULL_EVENT, ['eventId']],
  ['event of a push', webhookEventSchema, FULL_EVENT, []],
  ['shipment', shipmentSchema, SHIPMENT, []],
  ['delivery', shipmentDeliverySchema, SHIPMENT.delivery, []],
  ['recipient', recipientSchema, SHIPMENT.recipient, []],
  ['statistics', statisticsSchema, STATISTICS, []],
  ['courier', courierSchema, BARE_COURIER, ['courierCode']],
  ['tracking', trackingSchema, TRACKING, []],
  ['results of a search', perCallTrackingSchema, PER_CALL_TRACKING, []],
  ['bulk result', bulkResultSchema, FULL_BULK, ['status']],
  ['bulk item', bulkItemSchema, BULK_ITEM, []],
  ['error', apiErrorItemSchema, ERROR, ['code']],
  ['webhook history', webhookHistorySchema, HISTORY, ['webhooks']],
];

const PUSH = {
  metadata: { generatedAt: '2021-03-04T17:13:00.000Z', messageId: 'm1', topic: 'tracking/events' },
  tracker: { trackerId: 'tracker-1' },
};
/** Messages as the service sends them, without the `kind` that the parser adds. */
const MESSAGES: [name: string, schema: z.ZodObject, kind: string, sent: Record<string, unknown>][] = [
  [
    'push of events',
    eventsMessageSchema,
    'events',
    { ...PUSH, shipment: SHIPMENT, events: [FULL_EVENT], statistics: STATISTICS },
  ],
  ['proof of delivery', proofOfDeliverySchema, 'proofOfDelivery', PROOF_ITEM],
  ['push of another topic', otherMessageSchema, 'other', { metadata: PUSH.metadata }],
];

/** Fields without a documented type. */
const UNDOCUMENTED = [
  'datetime',
  'utcOffset',
  'hasNoTime',
  'courier',
  'requestBody',
  'responseBody',
  'content-type',
];

function listPaths(value: unknown): string[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value)
    .filter(([key]) => !UNDOCUMENTED.includes(key))
    .flatMap(([key, inner]) => [[key], ...listPaths(inner).map((path) => [key, ...path])]);
}

/** Copies a value with one of another kind at the path. */
function spoil(value: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined) return typeof value === 'object' && value !== null ? 7 : {};
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === key ? spoil(item, rest) : item));
  const holder: Record<string, unknown> = { ...Object(value) };
  return { ...holder, [key]: spoil(holder[key], rest) };
}

/** Lists the paths at which the schema accepts a value of another type. */
function listUncheckedPaths(schema: z.ZodType, full: object): string[] {
  return listPaths(full)
    .filter((path) => schema.safeParse(spoil(full, path)).success)
    .map((path) => path.join('.'));
}

describe.each(RECORDS)('the schema of: %s', (_name, schema, full, required) => {
  const optional = Object.keys(full).filter((field) => !required.includes(field));

  test('every documented field → parsed unchanged', () => {
    expect(schema.parse(full)).toEqual(full);
  });

  test('the required fields only → parsed', () => {
    const least = Object.fromEntries(required.map((field) => [field, full[field]]));
    expect(schema.parse(least)).toMatchObject(least);
    expect({ events: [], ...least }).toMatchObject(schema.parse(least));
  });

  test('a value of another type at any path → an issue', () => {
    expect(listUncheckedPaths(schema, full)).toEqual([]);
  });

  test('unknown fields → kept', () => {
    const extended = { ...full, addedLater: { deep: [1] }, 'odd name': null };
    expect(schema.parse(extended)).toEqual(extended);
  });

  test('every optional field null → parsed, nulls kept', () => {
    const nullable = optional.filter((field) => !['events', 'aiPredictiveDeliveryDate'].includes(field));
    const nulls = { ...full, ...Object.fromEntries(nullable.map((field) => [field, null])) };
    expect(schema.parse(nulls)).toEqual(nulls);
  });

  test.each(required)('%s missing → rejected', (field) => {
    const { [field]: _left, ...rest } = full;
    expect(schema.safeParse(rest).success).toBe(false);
  });
});

describe.each(MESSAGES)('the schema of: %s', (_name, schema, kind, sent) => {
  test('a message from the service → parsed unchanged, with its kind', () => {
    expect(schema.parse(sent)).toEqual({ kind, ...sent });
  });

  test('a value of another type at any path → an issue', () => {
    expect(listUncheckedPaths(schema, { kind, ...sent })).toEqual([]);
  });
});

describe('values added later', () => {
  const BULK = { status: 'queued', data: [{ itemStatus: 'deferred', errors: [{ code: 'new_code' }] }] };
  test.each([
    ['statusMilestone of a shipment', shipmentSchema, { statusMilestone: 'teleported' }],
    ['statusCategory', shipmentSchema, { statusCategory: 'teleported' }],
    ['statusCode', shipmentSchema, { statusCode: 'teleported' }],
    ['statusMilestone of an event', eventSchema, { eventId: 'e', statusMilestone: 'teleported' }],
    ['status, itemStatus and error code of a bulk response', bulkResultSchema, BULK],
    ['required field of a courier', courierSchema, { courierCode: 'x', requiredFields: ['phoneNumber'] }],
  ])('an unknown %s → passes', (_name, schema: z.ZodType, value) => {
    expect(schema.parse(value)).toEqual(value);
  });
});

test('aiPredictiveDeliveryDate, an add-on field → may be absent, but not null; its times may be either', () => {
  expect(shipmentDeliverySchema.parse({})).not.toHaveProperty('aiPredictiveDeliveryDate');
  for (const range of [{}, { from: null }, { to: '2026-03-09' }, { from: '2026-03-08', to: null }]) {
    const delivery = { aiPredictiveDeliveryDate: range };
    expect(shipmentDeliverySchema.parse(delivery)).toEqual(delivery);
  }
  expect(shipmentDeliverySchema.safeParse({ aiPredictiveDeliveryDate: null }).success).toBe(false);
});
