import { ResponseValidationError, ResultsNotReadyError, type TrackingClient } from 'tracking-client';
import { describe, expect, test } from 'vitest';
import { makeClient, rejectionOf } from '../support/make-client.ts';
import * as samples from './support/samples.ts';

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
    const { client } = makeClient({ status, body });
    expect(await call(client)).toEqual(resolves);
  });

  test.each([
    ['results, an empty list', (client: TrackingClient) => client.trackers.results('t1')],
    ['track, an empty list', (client: TrackingClient) => client.trackers.track(INPUT)],
  ])('%s → ResultsNotReadyError: no results yet', async (_form, call) => {
    const { client } = makeClient({ body: { data: { trackings: [] } } });
    expect(await rejectionOf(call(client))).toBeInstanceOf(ResultsNotReadyError);
  });

  test.each([
    ['a tracker', (client: TrackingClient) => client.trackers.get('t1'), {}],
    ['a page', (client: TrackingClient) => client.trackers.list(), { trackers: [] }],
    ['bulk', (client: TrackingClient) => client.trackers.createBulk([INPUT]), 'created'],
    ['couriers, not JSON', (client: TrackingClient) => client.couriers.list(), '<html>'],
  ])('%s without `data` → ResponseValidationError', async (_what, call, body) => {
    const { client } = makeClient({ body });
    expect(await rejectionOf(call(client))).toBeInstanceOf(ResponseValidationError);
  });
});
