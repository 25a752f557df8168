import { createWebhookSender, type FakeTrackingServiceOptions } from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { STATUSES_NAMED_TWICE } from './exceptions.ts';
import { advance, contractFake, HOUR_MS, NUMBER, OTHER_NUMBER } from './support/contract-fake.ts';
import { ENDPOINTS, ERROR_STATUSES } from './support/endpoints.ts';
import { at } from './support/reach.ts';
import { contractReceiver, SECRET } from './support/receiver.ts';
import { breachesOf } from './support/schemas.ts';

type Service = ReturnType<typeof contractFake>;

/** Something that brings a fake into a state; each returns the tracker that is asked about. */
interface State {
  readonly options?: FakeTrackingServiceOptions;
  readonly reach: (service: Service) => Promise<string>;
}

const EVENTS = [
  { statusMilestone: 'info_received', occurrenceDatetime: '2026-03-01T08:00:00+08:00' },
  { statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-02', location: 'Beijing' },
  { statusMilestone: 'out_for_delivery', occurrenceDatetime: '2026-03-05T07:00:00' },
] as const;

async function archived({ createdWith, events }: { createdWith: Service; events: boolean }): Promise<string> {
  const { client, createFetched, fake } = createdWith;
  const id = await createFetched();
  if (events) fake.shipment(NUMBER).addEvent(...EVENTS);
  await client.trackers.update(id, { isSubscribed: false });
  return id;
}

const STATES: Readonly<Record<string, State>> = {
  'just created': {
    reach: async ({ client }) => (await client.trackers.create({ trackingNumber: NUMBER })).trackerId,
  },
  'created with every field': {
    reach: ({ createFetched }) =>
      createFetched({
        courierCode: ['us-post', 'cn-post'],
        clientTrackerId: 'order-1042',
        shipmentReference: 'basket 7',
        originCountryCode: 'CHN',
        destinationCountryCode: 'us',
        destinationPostCode: '94901',
        shippingDate: '2026-03-01',
        recipient: { name: 'Ada', email: 'ada@example.test' },
        settings: { restrictTrackingToCourierCode: true },
      }),
  },
  'no results yet': { reach: ({ createFetched }) => createFetched() },
  'no results yet, told as an empty list': {
    options: { noResults: 'empty' },
    reach: ({ createFetched }) => createFetched(),
  },
  'with results': {
    reach: async ({ createFetched, fake }) => {
      const id = await createFetched();
      fake.shipment(NUMBER).addEvent(...EVENTS);
      return id;
    },
  },
  'with every field of a shipment': {
    reach: async ({ createFetched, fake }) => {
      const id = await createFetched();
      const recipient = { name: 'Ada', address: null, postCode: '94901', city: null, subdivision: null };
      const courierEstimatedDeliveryDate = { from: '2026-03-08', to: null };
      const delivery = {
        courierEstimatedDeliveryDate,
        aiPredictiveDeliveryDate: '2026-03-09',
        signedBy: 'ADA',
      };
      fake.shipment(NUMBER).addEvent().update({ recipient, delivery });
      return id;
    },
  },
  delivered: {
    reach: async ({ createFetched, fake }) => {
      const id = await createFetched();
      fake
        .shipment(NUMBER)
        .addEvent(...EVENTS)
        .deliver()
        .proveDelivery();
      return id;
    },
  },
  'delivered and stopped': {
    reach: async ({ createFetched, fake }) => {
      const id = await createFetched();
      fake.shipment(NUMBER).deliver().stopTracking();
      return id;
    },
  },
  'never found, given up': {
    reach: async ({ createFetched, fake }) => {
      const id = await createFetched();
      fake.play(NUMBER, 'never-found', { speed: Number.POSITIVE_INFINITY });
      return id;
    },
  },
  ...Object.fromEntries(
    (['delivered', 'exception', 'customs'] as const).map((play): [string, State] => [
      `the play "${play}" at its end`,
      {
        options: { play, speed: 1000 },
        reach: async ({ createFetched }) => {
          const id = await createFetched();
          await advance(HOUR_MS);
          return id;
        },
      },
    ]),
  ),
  'archived with results': { reach: (createdWith) => archived({ createdWith, events: true }) },
  'archived without results': { reach: (createdWith) => archived({ createdWith, events: false }) },
  'subscribed again': {
    reach: async (service) => {
      const id = await archived({ createdWith: service, events: true });
      await service.client.trackers.update(id, { isSubscribed: true });
      service.fake.shipment(NUMBER).addEvent();
      return id;
    },
  },
  'one of two trackers of a number': {
    reach: async ({ createFetched, fake }) => {
      await createFetched({ courierCode: 'cn-post' });
      const id = await createFetched({ courierCode: 'us-post' });
      fake.shipment(NUMBER).addEvent(...EVENTS);
      return id;
    },
  },
  'after a push': {
    reach: async ({ createFetched, fake }) => {
      const id = await createFetched();
      fake.shipment(NUMBER).addEvent(...EVENTS);
      await createWebhookSender({ target: contractReceiver().target, secret: SECRET, fake }).flush();
      return id;
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
  test.each(calls)('%s, %s → keeps the contract', async (name, _state, { options = {}, reach }) => {
    const service = contractFake({ plans: { perCall: true }, ...options });
    const id = await reach(service);
    const [method = '', template = ''] = name.split(' ');
    const path = template.replace('{id}', id).replace('{tn}', NUMBER) + (QUERIES[name] ?? '');
    const { status, headers, body } = await service.call(method, path, BODIES[name]);
    // The bodies are held against the schemas by `contractFake` itself.
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(headers.get('x-request-id')).toMatch(/./);
    const code = at(body, 'errors', 0, 'code');
    if (status >= 400) expect([code, ERROR_STATUSES[String(code)]]).toEqual(['parcel_not_found', [status]]);
  });
});

describe('errors', () => {
  const create = ['POST', '/trackers', { trackingNumber: NUMBER }] as const;
  const noKey = { authorization: '' };

  interface Refusal {
    readonly options?: FakeTrackingServiceOptions;
    readonly call: readonly [method: string, path: string, body?: unknown, headers?: HeadersInit];
    readonly code: string;
  }

  const REFUSALS: Readonly<Record<string, Refusal>> = {
    'no key': { call: [...create, noKey], code: 'auth_missing_header' },
    'a key without Bearer': { call: [...create, { authorization: 'secret' }], code: 'auth_invalid_header' },
    'an unknown key': {
      options: { apiKeys: ['right'] },
      call: [...create, { authorization: 'Bearer wrong' }],
      code: 'auth_invalid_api_key',
    },
    'an unknown tracker': { call: ['GET', '/trackers/none'], code: 'tracker_not_found' },
    'results of an unknown tracker': { call: ['GET', '/trackers/none/results'], code: 'tracker_not_found' },
    'no tracking number': { call: ['POST', '/trackers', {}], code: 'missing_mandatory_field' },
    'a tracking number of 4': {
      call: ['POST', '/trackers', { trackingNumber: 'ABCD' }],
      code: 'validation_error',
    },
    'four couriers': {
      call: ['POST', '/trackers', { trackingNumber: NUMBER, courierCode: ['a', 'b', 'c', 'd'] }],
      code: 'validation_error',
    },
    'an old shipping date': {
      call: ['POST', '/trackers', { trackingNumber: NUMBER, shippingDate: '2025-01-01' }],
      code: 'shipping_date_outdated',
    },
    'no per-call plan': {
      call: ['POST', '/tracking/search', { trackingNumber: NUMBER }],
      code: 'no_active_subscription',
    },
    'a quota of none': {
      options: { plans: { perShipment: { quota: 0 } } },
      call: create,
      code: 'quota_limit_reached',
    },
    'bulk, a quota of none': {
      options: { plans: { perShipment: { quota: 0 } } },
      call: ['POST', '/trackers/bulk', [{ trackingNumber: NUMBER }]],
      code: 'quota_limit_reached',
    },
    'bulk, no item': { call: ['POST', '/trackers/bulk', []], code: 'validation_error' },
    'bulk, every item failed': { call: ['POST', '/trackers/bulk', [{}]], code: 'processing_error' },
    'a page without its limit': { call: ['GET', '/trackers?page=1'], code: 'missing_mandatory_field' },
    'a page of 501': { call: ['GET', '/trackers?page=1&limit=501'], code: 'validation_error' },
  };

  test.each(Object.entries(REFUSALS))(
    '%s → its documented code and status',
    async (_name, { options, call, code }) => {
      const service = contractFake(options);
      const { status, body } = await service.call(...call);
      expect(at(body, 'errors', 0, 'code') ?? at(body, 'error', 'code')).toBe(code);
      expect(ERROR_STATUSES[code] ?? [400, 403, 422]).toContain(status);
    },
  );
});

describe('bulk', () => {
  test.each([
    ['all new', [{ trackingNumber: OTHER_NUMBER }], STATUSES_NAMED_TWICE.bulkSuccess.statuses, 'success'],
    ['one refused', [{ trackingNumber: OTHER_NUMBER }, {}], [207], 'partial'],
    ['all refused', [{}, {}], [400], 'error'],
  ])('%s → its status, in both places', async (_name, items, statuses, word) => {
    const { status, body } = await contractFake().call('POST', '/trackers/bulk', items);
    expect(statuses).toContain(status);
    expect(at(body, 'status')).toBe(word);
  });
});

test('a success, and one request too many → both header sets; 429 with Retry-After equal to RateLimit-Reset', async () => {
  const { call } = contractFake({ limits: {} });
  const taken = await call('GET', '/couriers');
  const refused = await call('GET', '/couriers');
  expect([taken.status, refused.status]).toEqual([200, 429]);
  for (const { headers } of [taken, refused])
    expect(breachesOf('rate-limit-headers', Object.fromEntries(headers))).toEqual([]);
  expect(refused.headers.get('retry-after')).toBe(refused.headers.get('ratelimit-reset'));
});
