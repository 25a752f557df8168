import {
  createWebhookSender,
  type FakeTrackingService,
  type FakeTrackingServiceOptions,
} from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { ENDPOINT_NAMES } from '../../src/endpoints.ts';
import { makeFake, NUMBER, refusal, sampleCalls } from '../testing/make-fake.ts';
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
      destinationCountryCode: 'US',
      destinationPostCode: '94901',
      shippingDate: '2026-03-01',
      recipient: { name: 'Ada', email: 'ada@example.test' },
      settings: { restrictTrackingToCourierCode: true },
    },
  },
  'no results yet': {},
  'no results yet, returned as 404': { options: { noResults: 'parcel_not_found' } },
  'no results yet, returned as an empty list': { options: { noResults: 'empty' } },
  'with results': { happen: ({ fake }) => fake.shipment(NUMBER).addEvent(...EVENTS) },
  'with every field of a shipment': {
    happen: ({ fake }) => {
      const recipient = { name: 'Ada', address: null, postCode: '94901', city: null, subdivision: null };
      const courierEstimatedDeliveryDate = { from: '2026-03-08', to: null };
      const addOns = { aiPredictiveDeliveryDate: { from: null, to: '2026-03-09' }, signedBy: 'ADA' };
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

describe.each(Object.entries(STATES))('a tracker, %s', (_state, { options = {}, input, happen }) => {
  test.each(ENDPOINT_NAMES)('%s → keeps the contract', async (name) => {
    const service = makeFake({ plans: { perCall: true }, ...options });
    const id = await service.createId(input);
    service.advance(10_000);
    await happen?.(service, id);
    // `makeFake` checks the response by its schema.
    const response = await service.call(...sampleCalls[name](id));
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    if (options.noResults === 'parcel_not_found' && name.startsWith('trackers.results'))
      expect(refusal(response)).toEqual([404, 'parcel_not_found']);
    else expect(response.status).toBeLessThan(300);
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

const AT_ONCE = { speed: Number.POSITIVE_INFINITY };
const SECRET = 'whsec-0123456789abcdef';

/** Sends what happens to a tracker as webhooks, and returns the bodies. */
async function push(happen: (fake: FakeTrackingService) => unknown, options: object) {
  const { fake, createId, advance } = makeFake();
  await createId({ clientTrackerId: 'order-1042', shipmentReference: 'basket 7' });
  advance(10_000);
  happen(fake);
  const bodies: unknown[] = [];
  const target = async (request: Request) => {
    const { method, headers } = request;
    expect([method, headers.get('authorization')]).toEqual(['POST', `Bearer ${SECRET}`]);
    expect(headers.get('content-type')).toMatch(/^application\/json\b/);
    bodies.push(await request.json());
    return new Response();
  };
  const report = await createWebhookSender({ target, secret: SECRET, fake, ...options }).flush();
  expect(report).toMatchObject({ items: report.accepted, lost: 0 });
  return bodies;
}

test.each<[string, (fake: FakeTrackingService) => unknown, object]>([
  ['the scenario "delivered"', (fake) => fake.play(NUMBER, 'delivered', AT_ONCE), {}],
  ['the scenario "exception"', (fake) => fake.play(NUMBER, 'exception', AT_ONCE), {}],
  ['the scenario "customs"', (fake) => fake.play(NUMBER, 'customs', AT_ONCE), {}],
  ['a proof of delivery', (fake) => fake.shipment(NUMBER).deliver().proveDelivery(), {}],
  ['many items a request', (fake) => fake.shipment(NUMBER).addEvent().deliver(), { itemsPerRequest: 10 }],
])('%s → pushes that the schemas allow', async (_what, happen, options) => {
  const bodies = await push(happen, options);
  expect(bodies).not.toEqual([]);
  expect(bodies.flatMap((body) => findBreaches('webhook', body))).toEqual([]);
});

test('a push that failed, one that was accepted and one that waits → the documented file, newest first', async () => {
  const { call, createId, fake, advance } = makeFake();
  const trackerId = await createId({ clientTrackerId: 'order-1' });
  const outcomes = [
    { status: 500, succeeded: false, responseBody: 'down' },
    { status: 200, succeeded: true, responseHeaders: { 'x-receiver': 'shop' }, url: 'https://shop.test/' },
  ];
  for (const outcome of outcomes) {
    fake.shipment(NUMBER).addEvent();
    fake.webhooks.record(fake.webhooks.take(), outcome);
    advance(3_600_000);
  }
  fake.shipment(NUMBER).addEvent(); // Its push still waits, so it is not in the file.
  const { body, headers } = await call('GET', `/trackers/${trackerId}/webhook-history/download`);
  const filename = `webhook-history-${NUMBER}-20260310.json`;
  expect(headers.get('content-disposition')).toBe(`attachment; filename="${filename}"`);
  expect(headers.get('access-control-expose-headers')).toBe('Content-Disposition');
  expect(body.metadata).toEqual({
    trackingNumber: NUMBER,
    trackerId,
    clientTrackerId: 'order-1',
    webhookUrl: 'https://shop.test/',
    lastSuccessfulPushAt: '2026-03-10T13:00:00.000Z',
    lastFailedPushAt: '2026-03-10T12:00:00.000Z',
  });
  expect(body.webhooks).toMatchObject([
    {
      status: 'success',
      pushTimestamp: '2026-03-10T13:00:00.000Z',
      responseStatusCode: '200',
      responseHeaders: { 'x-receiver': 'shop' },
    },
    {
      status: 'failed',
      pushTimestamp: '2026-03-10T12:00:00.000Z',
      responseStatusCode: '500',
      responseBody: 'down',
    },
  ]);
  const mine = await call('GET', '/trackers/order-1/webhook-history/download?searchBy=clientTrackerId');
  expect(mine.body).toEqual(body);
});
