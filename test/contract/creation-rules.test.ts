import { describe, expect, test } from 'vitest';
import { makeFake, NUMBER, OTHER_NUMBER, readCode } from '../testing/make-fake.ts';

const REUSED = 'reused';
const NEW = 'new';
const CONFLICT = 'tracker_conflict';
const MINE = { clientTrackerId: 'mine' };

/** Sends creation requests to one service; returns what each led to: a new tracker, a reused one, or an error code. */
function makeSubmit() {
  const { call } = makeFake();
  const ids = new Set<unknown>();
  const submit = async (path: string, input: object): Promise<unknown> => {
    const response = await call('POST', path, { trackingNumber: NUMBER, ...input });
    if (response.status >= 400) return readCode(response);
    const { tracker, trackings } = response.body.data;
    const { trackerId: id } = path === '/trackers' ? tracker : trackings[0].tracker;
    const outcome = ids.has(id) ? REUSED : NEW;
    ids.add(id);
    return outcome;
  };
  const archiveAll = async () => {
    for (const id of ids) await call('PATCH', `/trackers/${id}`, { isSubscribed: false });
  };
  return { submit, archiveAll };
}

describe.each(['/trackers', '/trackers/track'])(
  'POST %s, duplicate matching (docs/service.md 4.1, 4.2, 4.3)',
  (path) => {
    test.each<[string, unknown, unknown]>([
      ['shippingDate', '2026-03-01', '2026-03-02'],
      ['originCountryCode', 'CN', 'FR'],
      ['destinationCountryCode', 'US', 'CA'],
      ['destinationPostCode', '94901', '94902'],
      ['shipmentReference', 'one', 'two'],
      ['courierName', 'USPS', 'La Poste'],
      ['trackingUrl', 'https://a.test', 'https://b.test'],
      [
        'settings',
        { restrictTrackingToCourierCode: ['us-post'] },
        { restrictTrackingToCourierCode: ['fr-post'] },
      ],
      ['courierCode', ['us-post'], ['fr-post']],
    ])('the same %s → reused; another value or none → a new tracker', async (field, value, another) => {
      const { submit } = makeSubmit();
      const outcomes = [];
      for (const input of [{ [field]: value }, { [field]: value }, { [field]: another }, {}])
        outcomes.push(await submit(path, input));
      expect(outcomes).toEqual([NEW, REUSED, NEW, NEW]);
    });

    test.each<[string, string, object, object]>([
      ['a client tracker id in use, the same payload', REUSED, MINE, MINE],
      ['a client tracker id in use, another payload', CONFLICT, MINE, { ...MINE, shipmentReference: 'x' }],
      [
        'a client tracker id in use, another number',
        CONFLICT,
        MINE,
        { ...MINE, trackingNumber: OTHER_NUMBER },
      ],
      ['a new client tracker id for a known number', NEW, {}, MINE],
      ['no client tracker id for a number that has one', REUSED, MINE, {}],
      ['the number in lower case', REUSED, {}, { trackingNumber: NUMBER.toLowerCase() }],
      [
        'the same day at another time',
        REUSED,
        { shippingDate: '2026-03-01T08:00:00Z' },
        { shippingDate: '2026-03-01' },
      ],
      ['the same country in alpha-3', REUSED, { originCountryCode: 'CHN' }, { originCountryCode: 'CN' }],
      ['the couriers in another order', REUSED, { courierCode: ['a', 'b'] }, { courierCode: ['b', 'a'] }],
      ['one courier as a string', REUSED, { courierCode: 'a' }, { courierCode: ['a'] }],
      ['an empty list of couriers for none', REUSED, { courierCode: [] }, {}],
    ])('%s → %s', async (_, outcome, first, second) => {
      const { submit } = makeSubmit();
      await submit(path, first);
      expect(await submit(path, second)).toBe(outcome);
    });

    test.each<[string, object]>([
      ['the same payload', MINE],
      ['its client tracker id with another payload', { ...MINE, shipmentReference: 'x' }],
      ['its number', {}],
    ])('an archived tracker and %s → a new tracker', async (_, input) => {
      const { submit, archiveAll } = makeSubmit();
      await submit(path, MINE);
      await archiveAll();
      expect(await submit(path, input)).toBe(NEW);
    });
  },
);

describe('couriers that overlap without matching (docs/service.md 4.3, 4.6)', () => {
  const overlapping = { courierCode: ['us-post'] };

  test.each<[string, string, string, object]>([
    ['no other difference', '/trackers/track', CONFLICT, overlapping],
    ['no other difference', '/trackers', NEW, overlapping],
    ['another day', '/trackers/track', NEW, { ...overlapping, shippingDate: '2026-03-01' }],
    ['another destination', '/trackers/track', NEW, { ...overlapping, destinationCountryCode: 'US' }],
    ['another number', '/trackers/track', NEW, { ...overlapping, trackingNumber: OTHER_NUMBER }],
    ['no courier in common', '/trackers/track', NEW, { courierCode: 'cn-post' }],
  ])('%s, POST %s → %s', async (_, path, outcome, input) => {
    const { submit } = makeSubmit();
    await submit('/trackers', { courierCode: ['us-post', 'fr-post'] });
    expect(await submit(path, input)).toBe(outcome);
  });
});
