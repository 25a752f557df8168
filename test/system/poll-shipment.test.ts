import { describe, expect, test } from 'vitest';
import type { PollManyUpdate } from '../../src/polling/poll-many.ts';
import type { FakeTrackingServiceOptions } from '../../src/testing/index.ts';
import { makeService } from '../integration/make-service.ts';

/** Adds a shorthand to the service, whose results are there at once. */
async function makePolledService(options: FakeTrackingServiceOptions = {}) {
  const { fake, client } = await makeService({ resultsDelayMs: 0, ...options });
  const create = (trackingNumber: string, clientTrackerId?: string) =>
    client.trackers.create({ trackingNumber, ...(clientTrackerId && { clientTrackerId }) });
  return { fake, client, create };
}

const number = 'RR123456785CN';
/** The shortest interval that polling allows. */
const fast = { initialDelayMs: 0, intervalMs: 1000 };

describe('poll over HTTP', () => {
  test('a shipment that is simulated until its delivery → every event once, then the stream ends', async () => {
    const { fake, client, create } = await makePolledService();
    const { trackerId } = await create(number);
    fake.play(number, 'delivered', { speed: 100_000 });
    const ids: string[] = [];
    const stops: boolean[] = [];
    for await (const { newEvents, stopped } of client.trackers.poll(trackerId, fast)) {
      ids.push(...newEvents.map(({ eventId }) => eventId));
      stops.push(stopped);
    }
    const played = fake.shipment(number).events.map(({ eventId }) => eventId);
    expect(ids.toSorted()).toEqual(played.toSorted());
    expect(stops.indexOf(true)).toBe(stops.length - 1);
  });

  test.each(['pending', 'parcel_not_found', 'empty'] as const)(
    'no news yet, in the form %s → an update without events, then one with them',
    async (noResults) => {
      const { fake, client, create } = await makePolledService({ noResults });
      const { trackerId } = await create(number, 'order/1');
      const polls = client.trackers.poll('order/1', { ...fast, searchBy: 'clientTrackerId' });
      const first = (await polls.next()).value;
      expect(first).toMatchObject({ newEvents: [], poll: 1, stopped: false });
      expect(first?.tracking?.events).toEqual(noResults === 'pending' ? [] : undefined);
      fake.shipment(number).addEvent({ status: 'here' }).stopTracking();
      expect((await polls.next()).value).toMatchObject({
        tracking: { tracker: { trackerId } },
        newEvents: [{ status: 'here' }],
        stopped: true,
      });
      expect(await polls.next()).toEqual({ done: true, value: undefined });
    },
  );
});

describe('pollMany over HTTP', () => {
  test('41 trackers, one of them unknown, at 10 requests a second → an update or error for each, no 429', async () => {
    const { fake, client, create } = await makePolledService({ limitWindow: 'sliding' });
    const numbers = Array.from({ length: 39 }, (_, index) => `LP0000000${String(index).padStart(2, '0')}CN`);
    const outcomes = client.trackers.createMany(numbers.map((trackingNumber) => ({ trackingNumber })));
    const ids: string[] = ['nobody'];
    for await (const { tracker } of outcomes) ids.push(tracker?.trackerId ?? '');
    for (const trackingNumber of numbers) fake.shipment(trackingNumber).addEvent({}).stopTracking();
    const late = await create(number);

    const updates: PollManyUpdate[] = [];
    const polls = client.trackers.pollMany(ids, { initialDelayMs: 0, intervalMs: 60_000 });
    for await (const update of polls) {
      updates.push(update);
      if (updates.length === 1) polls.add(late.trackerId);
      if (update.id === late.trackerId) polls.delete(late.trackerId);
    }
    expect(updates.map(({ id }) => id).toSorted()).toEqual([...ids, late.trackerId].toSorted());
    expect(updates.filter(({ error }) => error).map(({ id }) => id)).toEqual(['nobody']);
    expect(fake.requests.filter(({ status }) => status === 429)).toEqual([]);
  });
});
