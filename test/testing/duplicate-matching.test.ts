import { describe, expect, it } from 'vitest';
import { makeFake, OTHER_NUMBER, refusal, type WireResponse } from './make-fake.ts';

const REUSED = 'reused';
const NEW = 'new';
const CONFLICT = 'tracker_conflict';

/** Sends a creation request, and tells whether a tracker was reused or created, or the code of the error. */
async function submit(service: ReturnType<typeof makeFake>, verb: 'create' | 'track', input: object = {}) {
  const before = service.fake.trackers.length;
  const [, code] = refusal(await service[verb](input));
  return code ?? (service.fake.trackers.length > before ? NEW : REUSED);
}

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
      const fake = makeFake();
      const trackerId = await fake.createId(value);
      expect(readTracker(await fake[verb](value)).trackerId).toBe(trackerId);
      expect(await submit(fake, verb, another)).toBe(NEW);
      expect(await submit(fake, verb)).toBe(NEW);
      expect(fake.fake.trackers).toHaveLength(3);
    },
  );

  it.each<[string, string, object, object]>([
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
  ])('%s → %s', async (_, outcome, first, second) => {
    const fake = makeFake();
    await fake.create(first);
    expect(await submit(fake, verb, second)).toBe(outcome);
  });

  it.each<[string, object]>([
    ['the same payload', MINE],
    ['its client tracker id with another payload', { ...MINE, shipmentReference: 'x' }],
    ['its number', {}],
  ])('an archived tracker and %s → a new tracker', async (_, input) => {
    const fake = makeFake();
    await fake.call('PATCH', `/trackers/${await fake.createId(MINE)}`, { isSubscribed: false });
    expect(await submit(fake, verb, input)).toBe(NEW);
  });
});

describe('couriers that overlap without matching', () => {
  const overlapping = { courierCode: ['us-post'] };

  it.each<[string, string, 'create' | 'track', object]>([
    ['track', CONFLICT, 'track', overlapping],
    ['create', NEW, 'create', overlapping],
    ['track with another day', NEW, 'track', { ...overlapping, shippingDate: '2026-03-01' }],
    ['track with another destination', NEW, 'track', { ...overlapping, destinationCountryCode: 'US' }],
    ['track of another number', NEW, 'track', { ...overlapping, trackingNumber: OTHER_NUMBER }],
    ['track with nothing in common', NEW, 'track', { courierCode: 'cn-post' }],
  ])('%s → %s', async (_, outcome, verb, input) => {
    const fake = makeFake();
    await fake.create({ courierCode: ['us-post', 'fr-post'] });
    expect(await submit(fake, verb, input)).toBe(outcome);
  });
});
