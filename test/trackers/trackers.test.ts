import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../src/index.ts';
import type { TrackerInput } from '../../src/schemas/tracker.ts';
import { COURIER, PER_CALL_TRACKING, TRACKER, TRACKING } from '../support/calls.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';

const input = { trackingNumber: 'LA680658838NL' };
const lookUps = [PER_CALL_TRACKING, PER_CALL_TRACKING];

describe('envelopes, in the shown and in a bare form', () => {
  test.each<[method: string, call: (client: TrackingClient) => unknown, data: unknown[], result: unknown]>([
    ['create', ({ trackers }) => trackers.create(input), [{ tracker: TRACKER }, TRACKER], TRACKER],
    ['get', ({ trackers }) => trackers.get('t'), [{ tracker: TRACKER }, TRACKER], TRACKER],
    [
      'update',
      ({ trackers }) => trackers.update('t', { isSubscribed: false }),
      [{ tracker: TRACKER }, TRACKER],
      TRACKER,
    ],
    [
      'results',
      ({ trackers }) => trackers.results('t'),
      [{ trackings: [TRACKING, { events: [] }] }, [TRACKING], TRACKING],
      TRACKING,
    ],
    [
      'track',
      ({ trackers }) => trackers.track(input),
      [{ trackings: [TRACKING] }, [TRACKING], TRACKING],
      TRACKING,
    ],
    ['couriers', ({ couriers }) => couriers.list(), [{ couriers: [COURIER] }, [COURIER]], [COURIER]],
    ['search', ({ tracking }) => tracking.search(input), [{ trackings: lookUps }, lookUps], lookUps],
  ])('%s → the record, the first tracking, or the list', async (_, call, forms, result) => {
    for (const data of forms) expect(await call(makeClient({ body: { data } }).client)).toEqual(result);
  });
});

describe('resend', () => {
  test.each([
    [{ data: { summary: { totalResent: 3, queued: 1 } } }, { totalResent: 3, queued: 1 }],
    [{ data: { summary: null } }, {}],
    [{ data: [] }, {}],
  ])('%j → %j', async (body, result) => {
    const { client } = makeClient({ status: 201, body });
    expect(await client.trackers.resendWebhookEvents('t')).toEqual(result);
  });

  test.each([{}, null, { data: { summary: 'done' } }, { data: { summary: { totalResent: {} } } }])(
    "%j → resolves without a total, also with invalidResponse 'throw'",
    async (body) => {
      const answer = { status: 201, body: JSON.stringify(body) };
      const { client, requests } = makeClient(answer, { invalidResponse: 'throw' });
      expect((await client.trackers.resendWebhookEvents('t')).totalResent).toBeUndefined();
      expect(requests).toHaveLength(1);
    },
  );
});

describe('input', () => {
  test('every field, and one that no rule knows → sent as given', async () => {
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

  test.each<[what: string, call: (client: TrackingClient) => PromiseLike<unknown>, message: string]>([
    [
      'a broken rule',
      ({ trackers }) => trackers.create({ trackingNumber: '123456789' }),
      'Expected `trackingNumber` to be a real tracking number, got a plain ascending run of digits',
    ],
    [
      'a field that JSON cannot hold',
      ({ trackers }) => trackers.create({ ...input, ...{ big: 5n } }),
      'Expected `input` to be a JSON value, got an object',
    ],
    [
      'one bad item of a bulk',
      ({ trackers }) => trackers.createBulk([input, { trackingNumber: 'x' }]),
      'Expected `items[1].trackingNumber` to have 5 to 50 characters, got a string of 1 character',
    ],
    [
      'a broken rule of a paid look-up',
      ({ tracking }) => tracking.search({ trackingNumber: 'x' }),
      'Expected `trackingNumber` to have 5 to 50 characters, got a string of 1 character',
    ],
  ])('%s → RequestValidationError that names it, nothing is sent', async (_, call, message) => {
    const { client, requests } = makeClient({ body: { data: TRACKER } });
    const error = await rejectionOf(call(client));
    expect(error).toMatchObject({ name: 'RequestValidationError', code: 'validation_error', message });
    expect(requests).toHaveLength(0);
  });
});
