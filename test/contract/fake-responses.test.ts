import { createWebhookSender, type FakeTrackingServiceOptions } from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { makeFake, NUMBER, OTHER_NUMBER, refusal } from '../testing/make-fake.ts';
import { ENDPOINTS } from './support/endpoints.ts';
import { findBreaches } from './support/schemas.ts';

/** The input of a tracker, and the actions on the tracker after its creation. */
interface State {
  readonly options?: FakeTrackingServiceOptions;
  readonly input?: object;
  readonly happen?: (service: ReturnType<typeof makeFake>, trackerId: string) => unknown;
}

const EVENTS = [
  { statusMilestone: 'info_received', occurrenceDatetime: '2026-03-01T08:00:00+08:00' },
  { statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-02', location: 'Beijing' },
  { statusMilestone: 'out_for_delivery', occurrenceDatetime: '2026-03-05T07:00:00' },
] as const;

const STATES: Readonly<Record<string, State>> = {
  'created with every field': {
    input: {
      courierCode: ['us-post', 'cn-post'],
      clientTrackerId: 'order-1042',
      shipmentReference: 'basket 7',
      originCountryCode: 'CHN',
      destinationCountryCode: 'us',
      destinationPostCode: '94901',
      shippingDate: '2026-03-01',
      recipient: { name: 'Ada', email: 'ada@example.test' },
      settings: { restrictTrackingToCourierCode: true },
    },
  },
  'no results yet': {},
  'no results yet, returned as an empty list': { options: { noResults: 'empty' } },
  'with results': { happen: ({ fake }) => fake.shipment(NUMBER).addEvent(...EVENTS) },
  'with every field of a shipment': {
    happen: ({ fake }) => {
      const recipient = { name: 'Ada', address: null, postCode: '94901', city: null, subdivision: null };
      const courierEstimatedDeliveryDate = { from: '2026-03-08', to: null };
      const addOns = { aiPredictiveDeliveryDate: '2026-03-09', signedBy: 'ADA' };
      const delivery = { courierEstimatedDeliveryDate, ...addOns };
      fake.shipment(NUMBER).addEvent().update({ recipient, delivery });
    },
  },
  'delivered and stopped': { happen: ({ fake }) => fake.shipment(NUMBER).deliver().stopTracking() },
  'never found, no longer tracked': {
    happen: ({ fake }) => fake.play(NUMBER, 'never-found', { speed: Number.POSITIVE_INFINITY }),
  },
  'archived with results': {
    happen: async ({ call, fake }, trackerId) => {
      fake.shipment(NUMBER).addEvent(...EVENTS);
      await call('PATCH', `/trackers/${trackerId}`, { isSubscribed: false });
    },
  },
  'one of two trackers of a number': {
    happen: async ({ createId, fake, advance }) => {
      await createId({ courierCode: 'cn-post' });
      advance(10_000);
      fake.shipment(NUMBER).addEvent(...EVENTS);
    },
  },
  'after a push': {
    happen: async ({ fake }) => {
      fake.shipment(NUMBER).addEvent(...EVENTS);
      await createWebhookSender({ target: () => new Response(), fake }).flush();
    },
  },
};

const BODIES: Readonly<Record<string, unknown>> = {
  'POST /trackers': { trackingNumber: NUMBER },
  'POST /trackers/bulk': [{ trackingNumber: NUMBER }, { trackingNumber: OTHER_NUMBER }],
  'POST /trackers/track': { trackingNumber: NUMBER },
  'PATCH /trackers/{id}': { isSubscribed: true },
  'POST /tracking/search': { trackingNumber: NUMBER },
};
const QUERIES: Readonly<Record<string, string>> = { 'GET /trackers': '?page=1&limit=100' };

describe('every endpoint in every state', () => {
  const calls = Object.entries(STATES).flatMap(([name, state]) =>
    ENDPOINTS.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, name, state] as const),
  );
  test.each(calls)('%s, %s → keeps the contract', async (name, _state, { options = {}, input, happen }) => {
    const service = makeFake({ plans: { perCall: true }, ...options });
    const id = await service.createId(input);
    service.advance(10_000);
    await happen?.(service, id);
    const [method = '', template = ''] = name.split(' ');
    const path = template.replace('{id}', id).replace('{tn}', NUMBER) + (QUERIES[name] ?? '');
    // `makeFake` checks the response by its schema.
    const response = await service.call(method, path, BODIES[name]);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    if (response.status >= 400) expect(refusal(response)).toEqual([404, 'parcel_not_found']);
  });
});

test('a success, and one request too many → both header sets; 429 with Retry-After equal to RateLimit-Reset', async () => {
  const { call } = makeFake({ limits: {} });
  const accepted = await call('GET', '/couriers');
  const refused = await call('GET', '/couriers');
  expect([accepted.status, refused.status]).toEqual([200, 429]);
  for (const { headers } of [accepted, refused])
    expect(findBreaches('rateLimitHeaders', Object.fromEntries(headers))).toEqual([]);
  expect(refused.headers.get('retry-after')).toBe(refused.headers.get('ratelimit-reset'));
});
