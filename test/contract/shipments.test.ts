import { describe, expect, test } from 'vitest';
import { advance, contractFake, DAY_MS, NUMBER } from './support/contract-fake.ts';
import { at, fieldsAt } from './support/reach.ts';

type Service = ReturnType<typeof contractFake>;

async function trackingOf({ call }: Service, id: string): Promise<unknown> {
  return at((await call('GET', `/trackers/${id}/results`)).body, 'data', 'trackings', 0);
}

/** What tells two shipments of one number apart; `later` is the number used again after a time. */
const APART: readonly (readonly [string, object, object])[] = [
  ['courier', { courierCode: 'us-post' }, { courierCode: 'fr-post' }],
  ['origin', { originCountryCode: 'CN' }, { originCountryCode: 'FR' }],
  ['destination', { destinationCountryCode: 'US' }, { destinationCountryCode: 'DE' }],
  ['shipping date', { shippingDate: '2026-03-01' }, { shippingDate: '2026-01-01' }],
];

describe('two trackers of one number', () => {
  test.each(APART)('another %s → another shipmentId and other eventIds', async (_what, one, other) => {
    const service = contractFake();
    const ids = [await service.createFetched(one), await service.createFetched(other)];
    service.fake.shipment(NUMBER).addEvent().deliver();
    const trackings = await Promise.all(ids.map((id) => trackingOf(service, id)));
    const shipmentIds = trackings.map((tracking) => at(tracking, 'shipment', 'shipmentId'));
    const eventIds = trackings.flatMap((tracking) => fieldsAt(tracking, 'eventId', 'events'));
    expect(new Set(shipmentIds).size).toBe(2);
    expect(new Set(eventIds).size).toBe(4);
  });

  test('shipment(number) → speaks to both', async () => {
    const service = contractFake();
    const ids = [await service.createFetched({ courierCode: 'us-post' }), await service.createFetched()];
    service.fake.shipment(NUMBER).deliver();
    for (const id of ids)
      expect(await trackingOf(service, id)).toMatchObject({ shipment: { statusMilestone: 'delivered' } });
  });

  test('results of the number → one tracking a tracker', async () => {
    const { call, createFetched, fake } = contractFake();
    const ids = [await createFetched({ courierCode: 'us-post' }), await createFetched()];
    fake.shipment(NUMBER).addEvent();
    const { body } = await call('GET', `/trackers/search/${NUMBER}/results`);
    const trackers = fieldsAt(body, 'tracker', 'data', 'trackings');
    expect(trackers.map((tracker) => at(tracker, 'trackerId')).sort()).toEqual(ids.toSorted());
  });
});

describe('a number that is used again', () => {
  test('its tracker was stopped → a new tracker of it is tracked', async () => {
    const service = contractFake();
    const { client, createFetched, fake } = service;
    const old = await createFetched({ shipmentReference: 'first' });
    fake.shipment(NUMBER).deliver().stopTracking();
    await advance(30 * DAY_MS);
    const fresh = await createFetched({ shipmentReference: 'second' });
    expect(await client.trackers.get(fresh)).toMatchObject({ isTracked: true });
    expect(await client.trackers.get(old)).toMatchObject({ isTracked: false });
  });
});

describe('settings.restrictTrackingToCourierCode', () => {
  test.each([
    ['true', { courierCode: 'us-post', settings: { restrictTrackingToCourierCode: true } }],
    ['one code', { settings: { restrictTrackingToCourierCode: 'us-post' } }],
    ['a list', { settings: { restrictTrackingToCourierCode: ['us-post'] } }],
  ])('%s → only events of that courier, in results and pushes', async (_form, input) => {
    const service = contractFake();
    const id = await service.createFetched(input);
    service.fake
      .shipment(NUMBER)
      .addEvent({ eventId: 'cn', courierCode: 'cn-post' }, { eventId: 'us', courierCode: 'us-post' });
    expect(fieldsAt(await trackingOf(service, id), 'eventId', 'events')).toEqual(['us']);
    const pushed = service.fake.webhooks.pending.flatMap(({ item }) => fieldsAt(item, 'eventId', 'events'));
    expect(pushed).toEqual(['us']);
  });

  test('without it → events of every courier', async () => {
    const service = contractFake();
    const id = await service.createFetched({ courierCode: 'us-post' });
    service.fake.shipment(NUMBER).addEvent({ courierCode: 'cn-post' }).addEvent({ courierCode: 'us-post' });
    expect(fieldsAt(await trackingOf(service, id), 'courierCode', 'events').sort()).toEqual([
      'cn-post',
      'us-post',
    ]);
  });
});
