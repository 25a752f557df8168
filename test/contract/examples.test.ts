import type { TrackingClient } from 'tracking-client';
import { parseWebhook } from 'tracking-client/webhooks';
import { describe, expect, test } from 'vitest';
import { makeClient } from '../support/make-client.ts';
import * as samples from './support/samples.ts';

const INPUT = { trackingNumber: '9400115901047177598206' };
const { BULK_FAILED, BULK_PARTIAL, BULK_REFUSED, BULK_SUCCESS, HISTORY, TRACKER, TRACKING } = samples;
const { ENVELOPED_WEBHOOK, EVENTS_ITEM, FLAT_WEBHOOK, PENDING_TRACKING, PER_CALL_TRACKING, PROOF_ITEM } =
  samples;
const COURIERS = [samples.COURIER, samples.BARE_COURIER];

type Call = (client: TrackingClient) => PromiseLike<unknown>;

const createBulk: Call = (client) => client.trackers.createBulk([INPUT, INPUT]);
const results: Call = (client) => client.trackers.results('t1');
const resultsOfNumber: Call = (client) => client.trackers.resultsByTrackingNumber('9400115901');
const page = { page: 1, limit: 100, hasMore: false };

test.each<[what: string, call: Call, statuses: number[], body: unknown, resolves: unknown]>([
  ['create', ({ trackers }) => trackers.create(INPUT), [201, 200], { tracker: TRACKER }, TRACKER],
  ['get', ({ trackers }) => trackers.get('t1'), [200], { tracker: TRACKER }, TRACKER],
  [
    'update',
    ({ trackers }) => trackers.update('t1', { isSubscribed: true }),
    [200],
    { tracker: TRACKER },
    TRACKER,
  ],
  [
    'list',
    ({ trackers }) => trackers.list(),
    [200],
    { trackers: [TRACKER] },
    { ...page, trackers: [TRACKER] },
  ],
  ['track', ({ trackers }) => trackers.track(INPUT), [200, 201], { trackings: [TRACKING] }, TRACKING],
  ['results', results, [200], { trackings: [TRACKING] }, TRACKING],
  ['results with every null', results, [200], { trackings: [PENDING_TRACKING] }, PENDING_TRACKING],
  ['results of a number', resultsOfNumber, [200], { trackings: [TRACKING, TRACKING] }, [TRACKING, TRACKING]],
  ['results of a number, none', resultsOfNumber, [200], { trackings: [] }, []],
  [
    'search',
    ({ tracking }) => tracking.search(INPUT),
    [201, 200],
    { trackings: [PER_CALL_TRACKING] },
    [PER_CALL_TRACKING],
  ],
  ['couriers', ({ couriers }) => couriers.list(), [200], { couriers: COURIERS }, COURIERS],
])(
  '%s, the documented data with each status → its records',
  async (_what, call, statuses, data, resolves) => {
    for (const status of statuses)
      expect(await call(makeClient({ status, body: { data } }).client)).toEqual(resolves);
  },
);

test.each<[what: string, call: Call, statuses: number[], body: unknown]>([
  ['bulk, success', createBulk, [201, 200], BULK_SUCCESS],
  ['bulk, partial', createBulk, [207], BULK_PARTIAL],
  ['bulk, every item failed', createBulk, [400], BULK_FAILED],
  ['bulk, no quota left', createBulk, [403], BULK_REFUSED],
  ['webhook history', ({ trackers }) => trackers.webhookHistory('t1'), [200], HISTORY],
])('%s → the whole body', async (_what, call, statuses, body) => {
  for (const status of statuses) expect(await call(makeClient({ status, body }).client)).toEqual(body);
});

describe('documented webhooks through the parser', () => {
  const { trackerId, clientTrackerId, events } = FLAT_WEBHOOK;
  const unavailable = { ...PROOF_ITEM, data: { status: 'unavailable', courier: 'us-post', content: null } };
  const empty = { ...EVENTS_ITEM, shipment: samples.EMPTY_SHIPMENT, events: [samples.BARE_EVENT] };

  test.each<[what: string, body: unknown, message: object]>([
    ['enveloped events', JSON.stringify(ENVELOPED_WEBHOOK), { kind: 'events', ...EVENTS_ITEM }],
    ['a shipment with every null', { trackings: [empty] }, { kind: 'events', ...empty }],
    ['flat', FLAT_WEBHOOK, { kind: 'events', tracker: { trackerId, clientTrackerId }, events }],
    ['a proof that was found', { trackings: [PROOF_ITEM] }, { kind: 'proofOfDelivery', ...PROOF_ITEM }],
    ['an unavailable proof', { trackings: [unavailable] }, { kind: 'proofOfDelivery', ...unavailable }],
  ])('%s → one message with every field', (_what, body, message) => {
    expect(parseWebhook(body)).toMatchObject({ messages: [message], rejected: [], mismatched: [] });
  });
});
