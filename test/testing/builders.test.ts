import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { courierSchema } from '../../src/schemas/courier.ts';
import { eventSchema } from '../../src/schemas/event.ts';
import { trackerSchema } from '../../src/schemas/tracker.ts';
import { trackingSchema } from '../../src/schemas/tracking.ts';
import { eventsMessageSchema, proofOfDeliverySchema } from '../../src/schemas/webhook.ts';
import {
  buildCourier,
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
} from '../../src/testing/index.ts';
import { parseWebhook } from '../../src/webhooks/parse.ts';

describe.each([
  ['buildTracker', buildTracker, trackerSchema],
  ['buildTracking', buildTracking, trackingSchema],
  ['buildEvent', buildEvent, eventSchema],
  ['buildWebhookMessage', buildWebhookMessage, eventsMessageSchema],
  ['buildProofOfDelivery', buildProofOfDelivery, proofOfDeliverySchema],
  ['buildCourier', buildCourier, courierSchema],
] as const)('the builder %s', (_, build, schema) => {
  it('no arguments → a record that the schema of such records accepts unchanged', () => {
    const built = build();
    expect(schema.parse(built)).toEqual(built);
  });

  it('the same seed → the same record; ten seeds → different records', () => {
    expect(build({}, { seed: 'a' })).toEqual(build({}, { seed: 'a' }));
    const texts = Array.from({ length: 10 }, (_, seed) => JSON.stringify(build({}, { seed })));
    expect(new Set(texts).size).toBeGreaterThan(1);
  });
});

describe('overrides', () => {
  it('fields of an event → set, with a status that fits the milestone', () => {
    const event = buildEvent({ statusMilestone: 'exception', occurrenceDatetime: '2026-03-04' });
    expect(event).toMatchObject({ statusCode: 'delivery_exception', occurrenceDatetime: '2026-03-04' });
  });

  it('the tracker of a tracking → its events carry the same number', () => {
    const tracking = buildTracking({ tracker: buildTracker({ trackingNumber: 'AB12345' }) });
    expect(tracking.events.map((event) => event.trackingNumber)).toEqual(['AB12345', 'AB12345', 'AB12345']);
    expect(tracking.shipment?.trackingNumbers).toEqual([{ tn: 'AB12345' }]);
  });
});

describe('builders', () => {
  it('a push of events and one of a proof of delivery → what parseWebhook returns for them', () => {
    const messages = [buildWebhookMessage(), buildProofOfDelivery()];
    const parsed = parseWebhook({ trackings: messages });
    expect(parsed).toEqual({ messages, duplicates: 0, rejected: [], mismatched: [] });
  });

  it.each([[null], [{ sed: 1 }], [{ seed: {} }]])('options %j → ConfigurationError', (options) => {
    const build = () => Reflect.apply(buildTracker, undefined, [{}, options]);
    expect(build).toThrow(ConfigurationError);
  });
});
