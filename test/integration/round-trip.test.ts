import { describe, expect, test } from 'vitest';
import { catchRejection } from '../support/make-client.ts';
import { makeService } from './make-service.ts';

const number = 'LA680658838NL';

describe('trackers', () => {
  test('created → found by both ids and in the list, its number in upper case', async () => {
    const { client } = await makeService();
    const created = await client.trackers.create({
      trackingNumber: number.toLowerCase(),
      clientTrackerId: 'order 1/2',
    });
    expect(created).toMatchObject({ trackingNumber: number, clientTrackerId: 'order 1/2', isTracked: true });
    expect(await client.trackers.get(created.trackerId)).toEqual(created);
    expect(await client.trackers.get('order 1/2', { searchBy: 'clientTrackerId' })).toEqual(created);
    expect((await client.trackers.list()).trackers).toEqual([created]);
  });

  test('the same clientTrackerId with another payload → ConflictError, one request', async () => {
    const { client, fake } = await makeService();
    await client.trackers.create({ trackingNumber: number, clientTrackerId: 'a' });
    const error = await catchRejection(
      client.trackers.create({ trackingNumber: 'RR123456785CN', clientTrackerId: 'a' }),
    );
    expect(error).toMatchObject({ name: 'ConflictError', code: 'tracker_conflict' });
    expect(fake.requests).toHaveLength(2);
  });

  test('events added → in its results, and in those of its number', async () => {
    const { client, fake } = await makeService();
    const { trackerId } = await client.trackers.create({ trackingNumber: number });
    fake.play(number, 'delivered', { speed: Number.POSITIVE_INFINITY });
    const results = await client.trackers.results(trackerId);
    expect(results.events.length).toBeGreaterThan(0);
    expect(results.tracker?.trackerId).toBe(trackerId);
    const byNumber = await client.trackers.resultsByTrackingNumber(number);
    expect(byNumber.map(({ tracker }) => tracker?.trackerId)).toEqual([trackerId]);
  });

  test('more trackers than fit a page → listAll walks through all of them', async () => {
    const { client } = await makeService();
    const items = Array.from({ length: 7 }, (_, index) => ({ trackingNumber: `AB10000${index}X` }));
    await client.trackers.createBulk(items);
    const found: string[] = [];
    for await (const tracker of client.trackers.listAll({ limit: 3 })) found.push(tracker.trackingNumber);
    expect(found).toEqual(items.map((item) => item.trackingNumber));
  });
});
