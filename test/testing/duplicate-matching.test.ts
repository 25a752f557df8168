import { describe, expect, it } from 'vitest';
import { codeOf, makeFake, OTHER_NUMBER, type WireResponse } from './make-fake.ts';

/** The status alone tells a tracker that is reused from a new one. */
const TOLD_APART = { existingStatus: 200 } as const;

/** A value and another one for each of the nine fields of service.md 2.4. */
const FIELDS: [string, object, object][] = [
  ['shippingDate', { shippingDate: '2026-03-01' }, { shippingDate: '2026-03-02' }],
  ['originCountryCode', { originCountryCode: 'CN' }, { originCountryCode: 'FR' }],
  ['destinationCountryCode', { destinationCountryCode: 'US' }, { destinationCountryCode: 'CA' }],
  ['destinationPostCode', { destinationPostCode: '94901' }, { destinationPostCode: '94902' }],
  ['shipmentReference', { shipmentReference: 'one' }, { shipmentReference: 'two' }],
  ['courierName', { courierName: 'USPS' }, { courierName: 'La Poste' }],
  ['trackingUrl', { trackingUrl: 'https://a.test' }, { trackingUrl: 'https://b.test' }],
  [
    'settings.restrictTrackingToCourierCode',
    { settings: { restrictTrackingToCourierCode: ['us-post'] } },
    { settings: { restrictTrackingToCourierCode: ['fr-post'] } },
  ],
  ['courierCode', { courierCode: ['us-post'] }, { courierCode: ['fr-post'] }],
];

describe.each([['create'], ['track']] as const)('%s', (verb) => {
  const trackerOf = ({ body }: WireResponse) => body.data.tracker ?? body.data.trackings[0].tracker;

  it.each(FIELDS)('the same number and %s → reused with 200', async (_, value) => {
    const fake = makeFake(TOLD_APART);
    const first = await fake.create(value);
    const second = await fake[verb](value);
    expect(second.status).toBe(200);
    expect(trackerOf(second)).toMatchObject({ trackerId: first.body.data.tracker.trackerId });
  });

  it.each(FIELDS)('another %s → a new tracker with 201', async (_, value, other) => {
    const fake = makeFake(TOLD_APART);
    await fake.create(value);
    expect((await fake[verb](other)).status).toBe(201);
    expect(fake.fake.trackers).toHaveLength(2);
  });

  it.each(FIELDS)('no %s where the tracker has one → a new tracker', async (_, value) => {
    const fake = makeFake(TOLD_APART);
    await fake.create(value);
    expect((await fake[verb]()).status).toBe(201);
  });

  it('a client tracker id in use with the same payload → reused', async () => {
    const fake = makeFake(TOLD_APART);
    await fake.create({ clientTrackerId: 'mine' });
    expect((await fake[verb]({ clientTrackerId: 'mine' })).status).toBe(200);
  });

  it('a client tracker id in use with another payload → 400 tracker_conflict', async () => {
    const fake = makeFake(TOLD_APART);
    await fake.create({ clientTrackerId: 'mine' });
    const response = await fake[verb]({ clientTrackerId: 'mine', shipmentReference: 'other' });
    expect([response.status, codeOf(response)]).toEqual([400, 'tracker_conflict']);
  });

  it('a client tracker id in use for another number → 400 tracker_conflict', async () => {
    const fake = makeFake(TOLD_APART);
    await fake.create({ clientTrackerId: 'mine' });
    const response = await fake[verb]({ clientTrackerId: 'mine', trackingNumber: OTHER_NUMBER });
    expect(codeOf(response)).toBe('tracker_conflict');
  });

  it('a client tracker id of an archived tracker → free for a new tracker', async () => {
    const fake = makeFake(TOLD_APART);
    const id = await fake.createId({ clientTrackerId: 'mine' });
    await fake.call('PATCH', `/trackers/${id}`, { isSubscribed: false });
    expect((await fake[verb]({ clientTrackerId: 'mine', shipmentReference: 'other' })).status).toBe(201);
  });

  it('a new client tracker id for a known number → a new tracker: the search goes by that id', async () => {
    const fake = makeFake(TOLD_APART);
    await fake.create();
    expect((await fake[verb]({ clientTrackerId: 'mine' })).status).toBe(201);
  });

  it('no client tracker id for a number that has one → reused: the search goes by number', async () => {
    const fake = makeFake(TOLD_APART);
    await fake.create({ clientTrackerId: 'mine' });
    expect((await fake[verb]()).status).toBe(200);
  });

  it('an archived tracker that matches → not reused', async () => {
    const fake = makeFake(TOLD_APART);
    const id = await fake.createId();
    await fake.call('PATCH', `/trackers/${id}`, { isSubscribed: false });
    expect((await fake[verb]()).status).toBe(201);
  });

  it.each([
    [
      'the same day at another time',
      { shippingDate: '2026-03-01T08:00:00Z' },
      { shippingDate: '2026-03-01' },
    ],
    ['the same country in alpha-3', { originCountryCode: 'CHN' }, { originCountryCode: 'cn' }],
    ['the couriers in another order', { courierCode: ['a', 'b'] }, { courierCode: ['b', 'a'] }],
    ['one courier as a string', { courierCode: 'a' }, { courierCode: ['a'] }],
    ['an empty list of couriers for none', { courierCode: [] }, {}],
  ])('%s → reused', async (_, value, same) => {
    const fake = makeFake(TOLD_APART);
    await fake.create(value);
    expect((await fake[verb](same)).status).toBe(200);
  });
});

describe('overlapping couriers', () => {
  const first = { courierCode: ['us-post', 'fr-post'] };
  const overlapping = { courierCode: ['us-post'] };

  it('track with couriers that overlap without matching → 400 tracker_conflict', async () => {
    const { create, track } = makeFake();
    await create(first);
    const response = await track(overlapping);
    expect([response.status, codeOf(response)]).toEqual([400, 'tracker_conflict']);
  });

  it('create with couriers that overlap → a new tracker', async () => {
    const { create } = makeFake();
    await create(first);
    expect((await create(overlapping)).status).toBe(201);
  });

  it.each([
    ['shippingDate', { shippingDate: '2026-03-01' }],
    ['destinationCountryCode', { destinationCountryCode: 'US' }],
  ])(
    'track with overlapping couriers and a %s that tells them apart → a new tracker',
    async (_, difference) => {
      const { create, track } = makeFake();
      await create(first);
      expect((await track({ ...overlapping, ...difference })).status).toBe(201);
    },
  );

  it('track with overlapping couriers for another number → a new tracker', async () => {
    const { create, track } = makeFake();
    await create(first);
    expect((await track({ ...overlapping, trackingNumber: OTHER_NUMBER })).status).toBe(201);
  });

  it('track with couriers that have nothing in common → a new tracker', async () => {
    const { create, track } = makeFake();
    await create(first);
    expect((await track({ courierCode: 'cn-post' })).status).toBe(201);
  });
});
