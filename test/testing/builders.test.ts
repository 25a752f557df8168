import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { ConfigurationError } from '../../src/errors.ts';
import type { BuildOptions } from '../../src/testing/builders.ts';
import {
  buildCourier,
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
} from '../../src/testing/index.ts';
import { parseWebhook } from '../../src/webhooks/parse.ts';
import { findBreaches, type SchemaName } from '../contract/support/schemas.ts';

/** The builders with the schemas of the contract for what they build. */
const BUILDERS: [(overrides?: object, options?: BuildOptions) => object, SchemaName][] = [
  [buildTracker, 'tracker'],
  [buildTracking, 'tracking'],
  [buildEvent, 'event'],
  [buildWebhookMessage, 'webhookEvents'],
  [buildProofOfDelivery, 'webhookProofOfDelivery'],
  [buildCourier, 'courier'],
];

it.each(BUILDERS)(
  '%o → keeps the contract; the same seed → the same record, ten seeds → different records',
  (build, schema) => {
    expect(build({}, { seed: 'a' })).toEqual(build({}, { seed: 'a' }));
    const records = Array.from({ length: 10 }, (_, seed) => build({}, { seed }));
    expect(new Set(records.map((record) => JSON.stringify(record))).size).toBeGreaterThan(1);
    expect(records.flatMap((record) => findBreaches(schema, record))).toEqual([]);
  },
);

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
  it('a tracking without overrides → a delivered shipment with three events, whose times have three forms', () => {
    const { events, shipment } = buildTracking();
    expect(shipment?.statusMilestone).toBe('delivered');
    expect(events).toMatchObject([
      { statusMilestone: 'delivered', occurrenceDatetime: '2026-03-06T17:42:00Z' },
      { statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-05' },
      { statusMilestone: 'info_received', occurrenceDatetime: '2026-03-01T17:12:57+08:00' },
    ]);
    expect(events.map(({ location }) => location)).toEqual([
      expect.stringContaining('SAN RAFAEL'),
      expect.stringContaining('SAN RAFAEL'),
      expect.stringContaining('Beijing'),
    ]);
  });

  it('the events of one seed → different ids', () => {
    const ids = buildTracking().events.map(({ eventId }) => eventId);
    expect(new Set(ids).size).toBe(3);
  });

  it('any seed → UUIDs of version 4 for trackers, events and shipments', () => {
    const seeds = fc.oneof(fc.string(), fc.integer());
    fc.assert(
      fc.property(seeds, (seed) => {
        const { tracker, events, shipment } = buildTracking({}, { seed });
        const ids = [tracker?.trackerId, shipment?.shipmentId, ...events.map(({ eventId }) => eventId)];
        for (const id of ids) expect(z.uuidv4().safeParse(id)).toMatchObject({ success: true });
      }),
    );
  });

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
