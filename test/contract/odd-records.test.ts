import { ResponseValidationError } from 'tracking-client';
import { describe, expect, test } from 'vitest';
import { at } from './support/reach.ts';
import { BULK_SUCCESS, COURIER, CREATED_ITEM, EVENT, TRACKER, TRACKING } from './support/samples.ts';
import { rejectionOf, stubClient } from './support/stub-client.ts';

const { trackingNumber: _trackingNumber, ...WITHOUT_NUMBER } = TRACKER;
const { trackerId: _trackerId, ...WITHOUT_ID } = TRACKER;
const { courierCode: _courierCode, ...COURIER_WITHOUT_CODE } = COURIER;

/** The paths of what was not as it should be, e.g. `data.trackers.1.trackingNumber`; whatever form they come in. */
function mismatchedIn(details: object): string {
  return JSON.stringify(at(details, 'mismatched') ?? []);
}

function bulkOf(items: readonly unknown[]) {
  const summary = { totalInputs: items.length, totalCreated: items.length, totalExisting: 0, totalErrors: 0 };
  return { status: 201, body: { ...BULK_SUCCESS, summary, data: items } };
}

const numbers = Array.from({ length: 100 }, (_, index) => `RR1234567${String(index).padStart(2, '0')}CN`);
const items = numbers.map((trackingNumber, index) => ({
  ...CREATED_ITEM,
  inputData: { trackingNumber },
  tracker: { ...(index === 40 ? WITHOUT_NUMBER : { ...TRACKER, trackingNumber }), trackerId: `t${index}` },
}));
const inputs = numbers.map((trackingNumber) => ({ trackingNumber }));

describe('one odd record among good ones', () => {
  test('a bulk of 100, one tracker without trackingNumber → resolves with all of them as they came', async () => {
    const { client } = stubClient(bulkOf(items));
    const result = await client.trackers.createBulk(inputs);
    expect(result.data).toEqual(items);
  });

  test('the same through createMany → 100 created, each with its trackerId', async () => {
    const { client } = stubClient(bulkOf(items));
    const run = client.trackers.createMany(inputs);
    const ids: unknown[] = [];
    for await (const { status, tracker } of run) ids.push([status, tracker?.trackerId]);
    expect(ids).toEqual(items.map(({ tracker }) => ['created', tracker.trackerId]));
    expect(run.summary()).toMatchObject({ total: 100, created: 100, unknown: 0 });
  });

  test('a bulk whose envelope has no status → createMany reports what its items say', async () => {
    const { status: _status, ...body } = bulkOf(items).body;
    const { client } = stubClient({ status: 201, body });
    const run = client.trackers.createMany(inputs);
    for await (const { status } of run) expect(status).toBe('created');
    expect(run.summary()).toMatchObject({ total: 100, created: 100 });
  });

  test.each([{}, { status: 5 }, { data: 'none' }, [], { couriers: [] }])(
    'a bulk answered with %j → rejects',
    async (body) => {
      const { client } = stubClient({ status: 201, body });
      expect(await rejectionOf(client.trackers.createBulk(inputs))).toBeInstanceOf(ResponseValidationError);
    },
  );

  test('a page with a tracker without trackingNumber → the whole page', async () => {
    const trackers = [TRACKER, WITHOUT_NUMBER];
    const { client } = stubClient({ body: { data: { trackers } } });
    expect((await client.trackers.list()).trackers).toEqual(trackers);
  });

  test('a page with a tracker without trackerId → the whole page, and named', async () => {
    const { client } = stubClient({ body: { data: { trackers: [TRACKER, WITHOUT_ID] } } });
    const { data, ...details } = await client.trackers.list().withResponse();
    expect(data.trackers).toEqual([TRACKER, WITHOUT_ID]);
    expect(mismatchedIn(details)).toContain('trackerId');
  });

  test('couriers, one without courierCode → all of them, and named', async () => {
    const { client } = stubClient({ body: { data: { couriers: [COURIER, COURIER_WITHOUT_CODE] } } });
    const { data, ...details } = await client.couriers.list().withResponse();
    expect(data).toEqual([COURIER, COURIER_WITHOUT_CODE]);
    expect(mismatchedIn(details)).toContain('courierCode');
  });

  test.each([
    ['a time that is a number', { ...TRACKING, events: [EVENT, { ...EVENT, occurrenceDatetime: 7 }] }],
    ['an isTracked that is text', { ...TRACKING, tracker: { ...TRACKER, isTracked: 'yes' } }],
    ['a milestone that is a number', { ...TRACKING, shipment: { statusMilestone: 3 } }],
    ['statistics that are a list', { ...TRACKING, statistics: [] }],
  ])('results with %s → as they came, and named', async (_what, tracking) => {
    const { client } = stubClient({ body: { data: { trackings: [tracking] } } });
    const { data, ...details } = await client.trackers.results('t1').withResponse();
    expect(data).toEqual(tracking);
    expect(mismatchedIn(details)).not.toBe('[]');
  });

  test('nothing odd → nothing is named', async () => {
    const { client } = stubClient({ body: { data: { trackings: [TRACKING] } } });
    const details = await client.trackers.results('t1').withResponse();
    expect(at(details, 'mismatched')).toEqual([]);
  });

  test('an odd record → one warning', async () => {
    const lines: string[] = [];
    const warn = (message: string, fields?: unknown) => lines.push(message + JSON.stringify(fields));
    const silent = () => {};
    const logger = { debug: silent, info: silent, warn, error: silent };
    const answer = { body: { data: { trackers: [TRACKER, WITHOUT_NUMBER] } } };
    const { client } = stubClient(answer, { logger, logLevel: 'debug' });
    await client.trackers.list();
    expect(lines.filter((line) => line.includes('trackingNumber'))).toHaveLength(1);
  });
});

describe('an answer that is none', () => {
  test.each([
    ['data missing', {}],
    ['data null', { data: null }],
    ['a single tracker without its id', { data: { tracker: WITHOUT_ID } }],
    ['a payload of another kind', { data: { couriers: [COURIER] } }],
    ['not JSON', '<html></html>'],
  ])('%s → rejects with ResponseValidationError', async (_what, body) => {
    const { client } = stubClient({ body });
    expect(await rejectionOf(client.trackers.get('t1'))).toBeInstanceOf(ResponseValidationError);
  });

  test("one odd field with invalidResponse: 'throw' → rejects", async () => {
    const answer = { body: { data: { trackers: [TRACKER, { ...TRACKER, isTracked: 'yes' }] } } };
    const { client } = stubClient(answer, { invalidResponse: 'throw' });
    expect(await rejectionOf(client.trackers.list())).toBeInstanceOf(ResponseValidationError);
  });
});
