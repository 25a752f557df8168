import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../src/index.ts';
import type { TrackerInput } from '../../src/schemas/tracker.ts';
import { COURIER, PER_CALL_TRACKING, TRACKER, TRACKING } from '../contract/support/samples.ts';
import { EVERY_CALL } from '../support/calls.ts';
import { catchRejection, makeClient } from '../support/make-client.ts';

const input = { trackingNumber: 'LA680658838NL' };
const lookUps = [PER_CALL_TRACKING, PER_CALL_TRACKING];
type Call = (client: TrackingClient) => PromiseLike<unknown>;

describe('bodies of responses', () => {
  const trackers = [{ data: { tracker: TRACKER } }, { data: TRACKER }, TRACKER];
  const results = [{ data: { trackings: [TRACKING, {}] } }, { data: [TRACKING] }, { data: TRACKING }];
  const couriers = [{ data: { couriers: [COURIER] } }, { data: [COURIER] }];
  const searches = [{ data: { trackings: lookUps } }, { data: lookUps }];
  const create: Call = (client) => client.trackers.create(input);
  const update: Call = (client) => client.trackers.update('t', { isSubscribed: false });
  const get: Call = (client) => client.trackers.get('t');
  const list: Call = (client) => client.couriers.list();
  const getResults: Call = (client) => client.trackers.results('t');
  const track: Call = (client) => client.trackers.track(input);
  const search: Call = (client) => client.tracking.search(input);
  const createBulk: Call = (client) => client.trackers.createBulk([input]);

  test.each<[method: string, call: Call, bodies: unknown[], result: unknown]>([
    ['create', create, trackers, TRACKER],
    ['get', get, trackers, TRACKER],
    ['update', update, trackers, TRACKER],
    ['results', getResults, results, TRACKING],
    ['track', track, results, TRACKING],
    ['couriers', list, couriers, [COURIER]],
    ['search', search, searches, lookUps],
    ['createBulk without a status', createBulk, [{ data: [] }], { data: [] }],
  ])('%s, every known form → the record, the first results, or the list', async (_, call, bodies, result) => {
    for (const body of bodies) expect(await call(makeClient({ body }).client)).toEqual(result);
  });

  const noResults = [{ data: {} }, { data: { tracking: { events: [] } } }];
  const noBulk = ['null', [], {}, { status: 5, data: {} }];
  const resultForm =
    'without `data.trackings`, `data.tracker`, `data.shipment`, `data.events` or `data.statistics`';

  test.each<[method: string, call: Call, bodies: unknown[], expected: string]>([
    ['get', get, [{ data: null, trackerId: 't' }, { data: { tracker: null } }], 'to be an object, got null'],
    ['results', getResults, noResults, resultForm],
    ['createBulk', createBulk, noBulk, '`status` or `data[]`'],
  ])('%s, a body of another kind → an error with the expected kind', async (_, call, bodies, expected) => {
    for (const body of bodies) {
      const error = await catchRejection(call(makeClient({ body }).client));
      const message = expect.stringContaining(expected);
      expect(error).toMatchObject({ name: 'ResponseValidationError', message });
    }
  });

  // The status of a resend is enough.
  test.each(EVERY_CALL.filter(([name]) => name !== 'trackers.resendWebhookEvents'))(
    '%s, JSON without its result → ResponseValidationError',
    async (_name, { call }) => {
      for (const body of [null, [], 'data', 5, {}, { errors: [] }, { data: 5 }, { data: 'ok' }]) {
        const error = await catchRejection(call(makeClient({ body: JSON.stringify(body) }).client));
        expect(error).toMatchObject({ name: 'ResponseValidationError', status: 200 });
      }
    },
  );
});

describe('resend', () => {
  const oddSummaries = [
    null,
    'done',
    ...['12 of 20', 'about 12', '1 2', '', {}, null].map((totalResent) => ({ totalResent })),
  ];

  test.each([
    [
      { totalResent: 3, queued: 1 },
      { totalResent: 3, queued: 1 },
    ],
    [{ totalResent: '12' }, { totalResent: 12 }],
    [{}, {}],
  ])('summary %j → %j', async (summary, result) => {
    const { client } = makeClient({ status: 201, body: { data: { summary } } });
    expect(await client.trackers.resendWebhookEvents('t')).toEqual(result);
  });

  test.each(oddSummaries)("summary %j → resolves without a total, also with 'throw'", async (summary) => {
    const { client } = makeClient({ body: { data: { summary } } }, { invalidResponse: 'throw' });
    expect((await client.trackers.resendWebhookEvents('t')).totalResent).toBeUndefined();
  });
});

describe('input', () => {
  test('every field, and an unknown field → sent unchanged', async () => {
    const full: TrackerInput & { addedLater: number } = {
      trackingNumber: 'la680658838nl',
      courierCode: ['fr-post', 'us-post'],
      clientTrackerId: 'order-1',
      shipmentReference: 'ref',
      originCountryCode: 'CN',
      destinationCountryCode: 'FRA',
      destinationPostCode: '75001',
      shippingDate: '2999-01-01T10:00:00+02:00',
      courierName: 'La Poste',
      trackingUrl: 'https://example.test',
      orderNumber: '1042',
      title: 'Shoes',
      recipient: { email: 'a@b.test', name: 'A' },
      settings: { restrictTrackingToCourierCode: ['fr-post'] },
      addedLater: 1,
    };
    const { client, requests } = makeClient({ body: { data: TRACKER } });
    await client.trackers.create(full);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual(full);
  });

  test.each<[what: string, call: Call, message: string]>([
    [
      'a broken rule',
      ({ trackers }) => trackers.create({ trackingNumber: '123456789' }),
      "Expected `trackingNumber` to be a real tracking number and not an ascending run of digits, got '123456789'",
    ],
    [
      'a field that JSON cannot hold',
      ({ trackers }) => trackers.create({ ...input, ...{ big: 5n } }),
      '`input` cannot be written as JSON; remove any BigInt and any circular reference',
    ],
    [
      'one bad item of a bulk',
      ({ trackers }) => trackers.createBulk([input, { trackingNumber: 'x' }]),
      "Expected `items[1].trackingNumber` to have 5 to 50 characters, got 'x'",
    ],
    [
      'a broken rule of a paid look-up',
      ({ tracking }) => tracking.search({ trackingNumber: 'x' }),
      "Expected `trackingNumber` to have 5 to 50 characters, got 'x'",
    ],
  ])('%s → RequestValidationError that names it, nothing is sent', async (_, call, message) => {
    const { client, requests } = makeClient({ body: { data: TRACKER } });
    const error = await catchRejection(call(client));
    expect(error).toMatchObject({ name: 'RequestValidationError', code: 'validation_error', message });
    expect(requests).toHaveLength(0);
  });
});
