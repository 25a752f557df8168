import { ResponseValidationError, ResultsNotReadyError, type TrackingClient } from 'tracking-client';
import { describe, expect, test } from 'vitest';
import { catchRejection, makeClient } from '../support/make-client.ts';
import * as samples from './support/samples.ts';

const INPUT = { trackingNumber: '9400115901047177598206' };
const { COURIER, PENDING_TRACKING, PER_CALL_TRACKING, TRACKER, TRACKING } = samples;
const COURIERS = [COURIER, samples.BARE_COURIER];

type Call = (client: TrackingClient) => PromiseLike<unknown>;
/** The call gets each value of `data` with each status, and always resolves to the same result. */
type Example = readonly [what: string, call: Call, statuses: number[], data: unknown[], resolves: unknown];

const create: Call = (client) => client.trackers.create(INPUT);
const list: Call = (client) => client.trackers.list();
const track: Call = (client) => client.trackers.track(INPUT);
const results: Call = (client) => client.trackers.results('t1');
const search: Call = (client) => client.tracking.search(INPUT);
const couriers: Call = (client) => client.couriers.list();
const resend: Call = (client) => client.trackers.resendWebhookEvents('t1');
const resultsOfNumber: Call = (client) => client.trackers.resultsByTrackingNumber('9400115901');
const update: Call = (client) => client.trackers.update('t1', { isSubscribed: true });
const page = { page: 1, limit: 100, hasMore: false };

const EXAMPLES: readonly Example[] = [
  ['create', create, [201, 200], [{ tracker: TRACKER }, TRACKER], TRACKER],
  ['get', (client) => client.trackers.get('t1'), [200], [{ tracker: TRACKER }, TRACKER], TRACKER],
  ['update', update, [200], [{ tracker: TRACKER }, TRACKER], TRACKER],
  ['list', list, [200], [{ trackers: [TRACKER] }, [TRACKER]], { ...page, trackers: [TRACKER] }],
  ['list of none', list, [200], [{ trackers: [] }, []], { ...page, trackers: [] }],
  ['track', track, [200, 201], [{ trackings: [TRACKING] }, TRACKING], TRACKING],
  ['results', results, [200], [{ trackings: [TRACKING] }, TRACKING], TRACKING],
  ['results with every null', results, [200], [{ trackings: [PENDING_TRACKING] }], PENDING_TRACKING],
  [
    'results of a number',
    resultsOfNumber,
    [200],
    [{ trackings: [TRACKING, TRACKING] }],
    [TRACKING, TRACKING],
  ],
  ['results of a number, none', resultsOfNumber, [200], [{ trackings: [] }], []],
  [
    'resend, a number or a text',
    resend,
    [201, 202],
    [{ summary: { totalResent: 12 } }, { summary: { totalResent: '12' } }],
    { totalResent: 12 },
  ],
  ['search', search, [201, 200], [{ trackings: [PER_CALL_TRACKING] }], [PER_CALL_TRACKING]],
  ['couriers', couriers, [200], [{ couriers: COURIERS }, COURIERS], COURIERS],
];

describe('documented responses through the client', () => {
  test.each(EXAMPLES)(
    '%s, every form and status → the result that the contract shows',
    async (_what, call, statuses, forms, resolves) => {
      for (const status of statuses)
        for (const data of forms) {
          const { client } = makeClient({ status, body: { data } });
          expect(await call(client)).toEqual(resolves);
        }
    },
  );

  test.each([
    ['success, 201', 201, samples.BULK_SUCCESS],
    ['success, 200', 200, samples.BULK_SUCCESS],
    ['partial, 207', 207, samples.BULK_PARTIAL],
    ['every item failed, 400', 400, samples.BULK_FAILED],
    ['no quota left, 403', 403, samples.BULK_REFUSED],
  ])('bulk, %s → the envelope', async (_what, status, body) => {
    const { client } = makeClient({ status, body });
    expect(await client.trackers.createBulk([INPUT, INPUT])).toEqual(body);
  });

  test('webhook history → resolves to the whole body', async () => {
    const { client } = makeClient({ body: samples.HISTORY });
    expect(await client.trackers.webhookHistory('t1')).toEqual(samples.HISTORY);
  });

  test.each([
    ['results', results],
    ['track', track],
  ])('%s, an empty list → ResultsNotReadyError: no results yet', async (_what, call) => {
    const { client } = makeClient({ body: { data: { trackings: [] } } });
    expect(await catchRejection(call(client))).toBeInstanceOf(ResultsNotReadyError);
  });

  test.each<[string, Call, unknown]>([
    ['a tracker', (client) => client.trackers.get('t1'), {}],
    ['a page', list, { trackers: [] }],
    ['bulk', (client) => client.trackers.createBulk([INPUT]), 'created'],
    ['couriers, not JSON', couriers, '<html>'],
  ])('%s without `data` → ResponseValidationError', async (_what, call, body) => {
    const { client } = makeClient({ body });
    expect(await catchRejection(call(client))).toBeInstanceOf(ResponseValidationError);
  });
});
