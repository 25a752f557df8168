import {
  AuthenticationError,
  ConflictError,
  InvalidRequestError,
  NoActiveSubscriptionError,
  NotFoundError,
  PermissionDeniedError,
  QuotaExceededError,
  RateLimitError,
  ResponseValidationError,
  ResultsNotReadyError,
  ServerError,
  ShippingDateOutdatedError,
  type TrackingClient,
} from 'tracking-client';
import { describe, expect, test } from 'vitest';
import * as samples from './support/samples.ts';
import { rejectionOf, stubClient } from './support/stub-client.ts';

const INPUT = { trackingNumber: '9400115901047177598206' };
const { COURIER, PER_CALL_TRACKING, TRACKER, TRACKING } = samples;

interface Example {
  readonly form: string;
  readonly call: (client: TrackingClient) => PromiseLike<unknown>;
  readonly status?: number;
  readonly body: unknown;
  readonly resolves: unknown;
}

function forms(
  name: string,
  call: Example['call'],
  resolves: unknown,
  answers: Readonly<Record<string, { readonly status?: number; readonly body: unknown }>>,
): Example[] {
  return Object.entries(answers).map(([form, answer]) => ({
    form: `${name}: ${form}`,
    call,
    resolves,
    ...answer,
  }));
}

const page = { page: 1, limit: 100, hasMore: false };

const EXAMPLES: readonly Example[] = [
  ...forms('create', (client) => client.trackers.create(INPUT), TRACKER, {
    'shown, 201': { status: 201, body: { data: { tracker: TRACKER } } },
    'shown, 200': { body: { data: { tracker: TRACKER } } },
    bare: { status: 201, body: { data: TRACKER } },
  }),
  ...forms('get', (client) => client.trackers.get('t1'), TRACKER, {
    shown: { body: { data: { tracker: TRACKER } } },
    bare: { body: { data: TRACKER } },
  }),
  ...forms('update', (client) => client.trackers.update('t1', { isSubscribed: true }), TRACKER, {
    shown: { body: { data: { tracker: TRACKER } } },
    bare: { body: { data: TRACKER } },
  }),
  ...forms(
    'list',
    (client) => client.trackers.list(),
    { ...page, trackers: [TRACKER] },
    {
      shown: { body: { data: { trackers: [TRACKER] } } },
      bare: { body: { data: [TRACKER] } },
    },
  ),
  ...forms(
    'list of none',
    (client) => client.trackers.list(),
    { ...page, trackers: [] },
    {
      shown: { body: { data: { trackers: [] } } },
      bare: { body: { data: [] } },
    },
  ),
  ...forms('track', (client) => client.trackers.track(INPUT), TRACKING, {
    'shown, 200': { body: { data: { trackings: [TRACKING] } } },
    'shown, 201': { status: 201, body: { data: { trackings: [TRACKING] } } },
    bare: { body: { data: TRACKING } },
  }),
  ...forms('results', (client) => client.trackers.results('t1'), TRACKING, {
    shown: { body: { data: { trackings: [TRACKING] } } },
    bare: { body: { data: TRACKING } },
  }),
  ...forms('results with every null', (client) => client.trackers.results('t1'), samples.PENDING_TRACKING, {
    shown: { body: { data: { trackings: [samples.PENDING_TRACKING] } } },
  }),
  ...forms(
    'results of a number',
    (client) => client.trackers.resultsByTrackingNumber('9400115901'),
    [TRACKING, TRACKING],
    {
      'shown, two trackers': { body: { data: { trackings: [TRACKING, TRACKING] } } },
    },
  ),
  ...forms('results of a number', (client) => client.trackers.resultsByTrackingNumber('9400115901'), [], {
    'shown, none': { body: { data: { trackings: [] } } },
  }),
  ...forms(
    'resend',
    (client) => client.trackers.resendWebhookEvents('t1'),
    { totalResent: 12 },
    {
      'a number, as shown': { status: 201, body: { data: { summary: { totalResent: 12 } } } },
      'a string, as declared': { status: 201, body: { data: { summary: { totalResent: '12' } } } },
      'any 2xx': { status: 202, body: { data: { summary: { totalResent: 12 } } } },
    },
  ),
  ...forms('history', (client) => client.trackers.webhookHistory('t1'), samples.HISTORY, {
    shown: { body: samples.HISTORY },
  }),
  ...forms('search', (client) => client.tracking.search(INPUT), [PER_CALL_TRACKING], {
    'shown, 201': { status: 201, body: { data: { trackings: [PER_CALL_TRACKING] } } },
    'shown, 200': { body: { data: { trackings: [PER_CALL_TRACKING] } } },
  }),
  ...forms('couriers', (client) => client.couriers.list(), [COURIER, samples.BARE_COURIER], {
    shown: { body: { data: { couriers: [COURIER, samples.BARE_COURIER] } } },
    bare: { body: { data: [COURIER, samples.BARE_COURIER] } },
  }),
  ...forms('bulk', (client) => client.trackers.createBulk([INPUT, INPUT]), samples.BULK_SUCCESS, {
    'success, 201': { status: 201, body: samples.BULK_SUCCESS },
    'success, 200': { body: samples.BULK_SUCCESS },
  }),
  ...forms('bulk', (client) => client.trackers.createBulk([INPUT, INPUT]), samples.BULK_PARTIAL, {
    'partial, 207': { status: 207, body: samples.BULK_PARTIAL },
  }),
  ...forms('bulk', (client) => client.trackers.createBulk([INPUT, INPUT]), samples.BULK_FAILED, {
    'every item failed, 400': { status: 400, body: samples.BULK_FAILED },
  }),
  ...forms('bulk', (client) => client.trackers.createBulk([INPUT]), samples.BULK_REFUSED, {
    'no quota left, 403': { status: 403, body: samples.BULK_REFUSED },
  }),
];

describe('documented answers through the client', () => {
  test.each(EXAMPLES)('$form → what the contract shows', async ({ call, status = 200, body, resolves }) => {
    const { client } = stubClient({ status, body });
    expect(await call(client)).toEqual(resolves);
  });

  test.each([
    ['results, an empty list', (client: TrackingClient) => client.trackers.results('t1')],
    ['track, an empty list', (client: TrackingClient) => client.trackers.track(INPUT)],
  ])('%s → ResultsNotReadyError: no results yet', async (_form, call) => {
    const { client } = stubClient({ body: { data: { trackings: [] } } });
    expect(await rejectionOf(call(client))).toBeInstanceOf(ResultsNotReadyError);
  });

  test('an unknown field and an unknown milestone → kept', async () => {
    const odd = {
      ...TRACKING,
      shipment: { ...samples.SHIPMENT, statusMilestone: 'teleported' },
      insurance: 1,
    };
    const { client } = stubClient({ body: { data: { trackings: [odd] } } });
    expect(await client.trackers.results('t1')).toEqual(odd);
  });

  test('only what service.md shows of a tracker → resolves', async () => {
    const tracker = { trackerId: 't1', trackingNumber: 'RR123456785CN', isTracked: true };
    const { client } = stubClient({ body: { data: { tracker } } });
    expect(await client.trackers.get('t1')).toEqual(tracker);
  });

  test('an add-on that the account lacks → absent, never null', async () => {
    const { client } = stubClient({ body: { data: { trackings: [TRACKING] } } });
    const { shipment } = await client.trackers.results('t1');
    expect(shipment?.delivery).not.toHaveProperty('aiPredictiveDeliveryDate');
  });

  test.each([
    ['a tracker', (client: TrackingClient) => client.trackers.get('t1'), {}],
    ['a page', (client: TrackingClient) => client.trackers.list(), { trackers: [] }],
    ['bulk', (client: TrackingClient) => client.trackers.createBulk([INPUT]), 'created'],
    ['couriers, not JSON', (client: TrackingClient) => client.couriers.list(), '<html>'],
  ])('%s without `data` → ResponseValidationError', async (_what, call, body) => {
    const { client } = stubClient({ body });
    expect(await rejectionOf(call(client))).toBeInstanceOf(ResponseValidationError);
  });
});

describe('documented errors through the client', () => {
  test.each([
    [400, 'validation_error', InvalidRequestError],
    [400, 'missing_mandatory_field', InvalidRequestError],
    [400, 'parsing_error', InvalidRequestError],
    [400, 'shipping_date_outdated', ShippingDateOutdatedError],
    [422, 'shipping_date_outdated', ShippingDateOutdatedError],
    [400, 'tracker_conflict', ConflictError],
    [409, 'request_conflict', ConflictError],
    [404, 'tracker_not_found', NotFoundError],
    [404, 'parcel_not_found', ResultsNotReadyError],
    [400, 'tracker_not_updatable', InvalidRequestError],
    [422, 'no_active_subscription', NoActiveSubscriptionError],
    [403, 'quota_limit_reached', QuotaExceededError],
    [405, 'quota_limit_reached', QuotaExceededError],
    [403, 'bulk_create_limit_exceeded', QuotaExceededError],
    [400, 'auth_missing_header', AuthenticationError],
    [400, 'auth_invalid_header', AuthenticationError],
    [401, 'auth_invalid_api_key', AuthenticationError],
    [403, 'some_future_code', PermissionDeniedError],
    [500, 'processing_error', ServerError],
  ])('%i %s → its error class, with the code', async (status, code, errorClass) => {
    const { client } = stubClient({ status, body: { errors: [{ code, message: 'no' }], data: null } });
    const error = await rejectionOf(client.trackers.results('t1'));
    expect(error).toBeInstanceOf(errorClass);
    expect(error).toMatchObject({ status, code, errors: [{ code, message: 'no' }] });
  });

  test('an error without a message → its code alone', async () => {
    const { client } = stubClient({
      status: 404,
      body: { errors: [{ code: 'tracker_not_found' }], data: null },
    });
    expect(await rejectionOf(client.trackers.get('t1'))).toMatchObject({ code: 'tracker_not_found' });
  });

  test('429 in plain text → RateLimitError with the Retry-After', async () => {
    const headers = { 'content-type': 'text/plain', 'retry-after': '120' };
    const { client } = stubClient({ status: 429, body: 'Too many requests', headers });
    const error = await rejectionOf(client.couriers.list());
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ retryAfterMs: 120_000 });
  });

  test('502 in HTML → ServerError', async () => {
    const answer = {
      status: 502,
      body: '<html>Bad gateway</html>',
      headers: { 'content-type': 'text/html' },
    };
    expect(await rejectionOf(stubClient(answer).client.trackers.get('t1'))).toBeInstanceOf(ServerError);
  });

  test.each([
    [401, AuthenticationError],
    [429, RateLimitError],
    [503, ServerError],
  ])(
    'a bulk envelope with status error on %i → a failure of the request, no result',
    async (status, errorClass) => {
      const body = { ...samples.BULK_REFUSED, error: { code: 'some_future_code', message: 'no' } };
      const { client } = stubClient({ status, body });
      expect(await rejectionOf(client.trackers.createBulk([INPUT]))).toBeInstanceOf(errorClass);
    },
  );

  test('x-request-id → is on the error, for support', async () => {
    const body = { errors: [{ code: 'tracker_not_found' }], data: null };
    const { client } = stubClient({ status: 404, body, headers: { 'x-request-id': 'req-7' } });
    expect(await rejectionOf(client.trackers.get('t1'))).toMatchObject({ requestId: 'req-7' });
  });
});
