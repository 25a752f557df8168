import { expect, test } from 'vitest';
import { TRACKER } from '../support/calls.ts';
import { makeClient } from '../support/make-client.ts';

test('a list record without an id → comes through', async () => {
  const { client } = makeClient({
    body: { data: { couriers: [{ courierName: 'A' }, { courierCode: 'b' }] } },
  });
  expect(await client.couriers.list()).toEqual([{ courierName: 'A' }, { courierCode: 'b' }]);
});

test('an event without an id → comes through', async () => {
  const { client } = makeClient({
    body: { data: { trackings: [{ events: [{ status: 'x' }, { eventId: 5 }] }] } },
  });
  expect((await client.trackers.results('t1')).events).toEqual([{ status: 'x' }, { eventId: 5 }]);
});

test.each(['courierCodes', 'titles', 'orderNumbers'])(
  'the unknown input field %s → sent as given',
  async (field) => {
    const { client, requests } = makeClient({ body: { data: { tracker: TRACKER } } });
    await client.trackers.create({ trackingNumber: 'LA680658838NL', ...{ [field]: ['x'] } });
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ [field]: ['x'] });
  },
);

test.each(['get', 'update', 'create'] as const)(
  '%s with the tracker as the whole body of the response → the tracker',
  async (method) => {
    const { client } = makeClient({ body: TRACKER });
    const calls = {
      get: () => client.trackers.get('t1'),
      update: () => client.trackers.update('t1', { isSubscribed: false }),
      create: () => client.trackers.create({ trackingNumber: 'LA680658838NL' }),
    };
    expect(await calls[method]()).toEqual(TRACKER);
  },
);
