import { describe, expect, test } from 'vitest';
import { advance, contractFake, DAY_MS, NUMBER } from './support/contract-fake.ts';
import { fieldsAt } from './support/reach.ts';

/** A tracker with the event `before`, whose push was taken. */
async function trackedShipment() {
  const service = contractFake();
  const { call, createFetched, fake } = service;
  const id = await createFetched({ clientTrackerId: 'order-1' });
  fake.shipment(NUMBER).addEvent({ eventId: 'before' });
  fake.webhooks.take();
  const shownIds = async () =>
    fieldsAt(
      (await call('GET', `/trackers/${id}/results`)).body,
      'eventId',
      'data',
      'trackings',
      0,
      'events',
    );
  const pushedIds = () => fake.webhooks.take().flatMap(({ item }) => fieldsAt(item, 'eventId', 'events'));
  return { ...service, id, shownIds, pushedIds };
}

type Tracked = Awaited<ReturnType<typeof trackedShipment>>;

const STOPS: readonly (readonly [string, (tracked: Tracked) => unknown])[] = [
  ['isSubscribed: false', ({ client, id }) => client.trackers.update(id, { isSubscribed: false })],
  ['stopTracking()', ({ fake }) => fake.shipment(NUMBER).stopTracking()],
];

describe('after tracking has stopped', () => {
  test.each(STOPS)(
    '%s, then events and a proof of delivery → nothing is shown or pushed',
    async (_name, stop) => {
      const tracked = await trackedShipment();
      await stop(tracked);
      tracked.fake.shipment(NUMBER).addEvent({ eventId: 'after' }).deliver().proveDelivery();
      await advance(DAY_MS);
      expect(await tracked.shownIds()).toEqual(['before']);
      expect(tracked.fake.webhooks.pending).toEqual([]);
      expect(await tracked.client.trackers.results(tracked.id)).toMatchObject({
        tracker: { isTracked: false },
        shipment: { statusMilestone: 'in_transit' },
      });
      expect(await tracked.client.trackers.get(tracked.id)).toMatchObject({ isTracked: false });
    },
  );
});

describe('subscribed again', () => {
  test('an event from then on → shown and pushed; what was missed is not pushed', async () => {
    const { client, fake, id, shownIds, pushedIds } = await trackedShipment();
    await client.trackers.update(id, { isSubscribed: false });
    fake.shipment(NUMBER).addEvent({ eventId: 'missed' });
    await client.trackers.update(id, { isSubscribed: true });
    await advance(1000);
    fake.shipment(NUMBER).addEvent({ eventId: 'new' });
    expect(await shownIds()).toEqual(['new', 'before']);
    expect(pushedIds()).toEqual(['new']);
  });

  test('isSubscribed: false → frees the clientTrackerId for another tracker', async () => {
    const { client, id } = await trackedShipment();
    await client.trackers.update(id, { isSubscribed: false });
    const other = await client.trackers.create({
      trackingNumber: 'LA680658838NL',
      clientTrackerId: 'order-1',
    });
    expect(other.trackerId).not.toBe(id);
    expect(await client.trackers.get('order-1', { searchBy: 'clientTrackerId' })).toMatchObject(other);
  });
});

describe('tracking stops by itself', () => {
  test.each([
    [13, true],
    [15, false],
  ])('%d days after delivery → isTracked: %s', async (days, isTracked) => {
    const { client, fake, id } = await trackedShipment();
    fake.shipment(NUMBER).deliver();
    await advance(days * DAY_MS);
    expect(await client.trackers.get(id)).toMatchObject({ isTracked });
  });

  test('a year without events → isTracked: false', async () => {
    const { client, id } = await trackedShipment();
    await advance(365 * DAY_MS);
    expect(await client.trackers.get(id)).toMatchObject({ isTracked: false });
  });

  test('a year without any data → isTracked: false', async () => {
    const { client, createFetched } = contractFake();
    const id = await createFetched();
    await advance(365 * DAY_MS);
    expect(await client.trackers.get(id)).toMatchObject({ isTracked: false });
  });

  test('an event every week → still tracked after ten', async () => {
    const { client, fake, id } = await trackedShipment();
    for (let week = 0; week < 10; week += 1) {
      await advance(7 * DAY_MS);
      fake.shipment(NUMBER).addEvent();
    }
    expect(await client.trackers.get(id)).toMatchObject({ isTracked: true });
  });
});
