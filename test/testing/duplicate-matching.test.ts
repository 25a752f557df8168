import { describe, expect, it } from 'vitest';
import { makeFake, OTHER_NUMBER, refusal, type WireResponse } from './make-fake.ts';

/** The status alone shows whether a tracker is reused or new. */
const TOLD_APART = { existingStatus: 200 } as const;
const REUSED = [200, undefined];
const NEW = [201, undefined];
const CONFLICT = [400, 'tracker_conflict'];

/** A value and another one for each of the nine fields of docs/service.md 4.2. */
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
const MINE = { clientTrackerId: 'mine' };

describe.each([['create'], ['track']] as const)('%s', (verb) => {
  const readTracker = ({ body }: WireResponse) => body.data.tracker ?? body.data.trackings[0].tracker;

  it.each(FIELDS)(
    'the same %s → reused; another value or none → a new tracker',
    async (_, value, another) => {
      const fake = makeFake(TOLD_APART);
      const trackerId = await fake.createId(value);
      const same = await fake[verb](value);
      expect([refusal(same), readTracker(same).trackerId]).toEqual([REUSED, trackerId]);
      expect(refusal(await fake[verb](another))).toEqual(NEW);
      expect(refusal(await fake[verb]())).toEqual(NEW);
      expect(fake.fake.trackers).toHaveLength(3);
    },
  );

  it.each<[string, unknown, object, object]>([
    ['a client tracker id in use, the same payload', REUSED, MINE, MINE],
    ['a client tracker id in use, another payload', CONFLICT, MINE, { ...MINE, shipmentReference: 'x' }],
    [
      'a client tracker id in use for another number',
      CONFLICT,
      MINE,
      { ...MINE, trackingNumber: OTHER_NUMBER },
    ],
    ['a new client tracker id for a known number, because the search goes by that id', NEW, {}, MINE],
    ['no client tracker id for a number that has one, because the search goes by number', REUSED, MINE, {}],
    [
      'the same day at another time',
      REUSED,
      { shippingDate: '2026-03-01T08:00:00Z' },
      { shippingDate: '2026-03-01' },
    ],
    ['the same country in alpha-3', REUSED, { originCountryCode: 'CHN' }, { originCountryCode: 'cn' }],
    ['the couriers in another order', REUSED, { courierCode: ['a', 'b'] }, { courierCode: ['b', 'a'] }],
    ['one courier as a string', REUSED, { courierCode: 'a' }, { courierCode: ['a'] }],
    ['an empty list of couriers for none', REUSED, { courierCode: [] }, {}],
  ])('%s → status and error code %j', async (_, outcome, first, second) => {
    const fake = makeFake(TOLD_APART);
    await fake.create(first);
    expect(refusal(await fake[verb](second))).toEqual(outcome);
  });

  it.each<[string, object]>([
    ['the same payload', MINE],
    ['its client tracker id with another payload', { ...MINE, shipmentReference: 'x' }],
    ['its number', {}],
  ])('an archived tracker and %s → a new tracker', async (_, input) => {
    const fake = makeFake(TOLD_APART);
    await fake.call('PATCH', `/trackers/${await fake.createId(MINE)}`, { isSubscribed: false });
    expect(refusal(await fake[verb](input))).toEqual(NEW);
  });
});

describe('couriers that overlap without matching', () => {
  const overlapping = { courierCode: ['us-post'] };

  it.each<[string, unknown, 'create' | 'track', object]>([
    ['track', CONFLICT, 'track', overlapping],
    ['create', NEW, 'create', overlapping],
    ['track with another day', NEW, 'track', { ...overlapping, shippingDate: '2026-03-01' }],
    ['track with another destination', NEW, 'track', { ...overlapping, destinationCountryCode: 'US' }],
    ['track of another number', NEW, 'track', { ...overlapping, trackingNumber: OTHER_NUMBER }],
    ['track with nothing in common', NEW, 'track', { courierCode: 'cn-post' }],
  ])('%s → status and error code %j', async (_, outcome, verb, input) => {
    const fake = makeFake();
    await fake.create({ courierCode: ['us-post', 'fr-post'] });
    expect(refusal(await fake[verb](input))).toEqual(outcome);
  });
});
