import { NotFoundError, type PollOptions, ResultsNotReadyError } from 'tracking-client';
import { describe, expect, test } from 'vitest';
import { advance, contractFake, DAY_MS, NUMBER, virtualTime } from './support/contract-fake.ts';
import { at } from './support/reach.ts';
import { EVENT, SHIPMENT, STATISTICS, TRACKER } from './support/samples.ts';
import {
  readInBackground,
  type StubAnswer,
  type StubRequest,
  stubClient,
  watch,
} from './support/stub-client.ts';

const MINUTE_MS = 60_000;
const NO_DATA: StubAnswer = { status: 404, body: { errors: [{ code: 'parcel_not_found' }], data: null } };
const EMPTY: StubAnswer = { body: { data: { trackings: [] } } };
const POLL: PollOptions = { initialDelayMs: 0, intervalMs: MINUTE_MS };

function isResults({ path }: StubRequest): boolean {
  return path.endsWith('/results');
}

/** The service's truth about a number without results: none, and a record that says whether it still looks. */
function serviceWithoutResults(isTracked: (atMs: number) => boolean, noData = NO_DATA) {
  virtualTime();
  const startMs = performance.now();
  return stubClient((request) => {
    if (isResults(request)) return noData;
    return { body: { data: { tracker: { ...TRACKER, isTracked: isTracked(request.atMs - startMs) } } } };
  });
}

const STOPPED_RECORD = { ...TRACKER, isTracked: false };

describe('a number that never gets results', () => {
  test.each([
    ['404 parcel_not_found', NO_DATA],
    ['an empty list', EMPTY],
  ])(
    'results %s, tracker isTracked: false → poll ends: stopped, no tracking, the record',
    async (_form, noData) => {
      const { client } = serviceWithoutResults(() => false, noData);
      const reading = readInBackground(client.trackers.poll('t1', POLL));
      await advance(5 * MINUTE_MS);
      expect(reading).toMatchObject({ hasEnded: true, error: undefined });
      expect(reading.items.at(-1)).toMatchObject({
        stopped: true,
        tracking: undefined,
        newEvents: [],
        tracker: STOPPED_RECORD,
      });
    },
  );

  test('it stops after an hour → the poll goes on until then, and ends within three polls', async () => {
    const { client } = serviceWithoutResults((atMs) => atMs < 60 * MINUTE_MS);
    const reading = readInBackground(client.trackers.poll('t1', POLL));
    await advance(59 * MINUTE_MS);
    expect(reading.hasEnded).toBe(false);
    await advance(4 * MINUTE_MS);
    expect(reading.hasEnded).toBe(true);
  });

  test('isTracked: false → waitUntilStopped rejects with ResultsNotReadyError, its tracker says why', async () => {
    const { client } = serviceWithoutResults(() => false);
    const waiting = watch(client.trackers.waitUntilStopped('t1', POLL));
    await advance(5 * MINUTE_MS);
    expect(waiting.state).toBe('rejected');
    expect(waiting.value).toBeInstanceOf(ResultsNotReadyError);
    expect(at(waiting.value, 'tracker')).toMatchObject(STOPPED_RECORD);
  });

  test('isTracked: false → pollMany ends with one stopped update a tracker', async () => {
    const { client } = serviceWithoutResults(() => false);
    const reading = readInBackground(client.trackers.pollMany(['t1', 't2', 't3'], POLL));
    await advance(5 * MINUTE_MS);
    expect(reading.hasEnded).toBe(true);
    const stopped = reading.items.filter((update) => update.stopped);
    expect(stopped.map(({ id }) => id).sort()).toEqual(['t1', 't2', 't3']);
  });

  test('still tracked → goes on, and asks for the record at most every second empty poll', async () => {
    const { client, requests } = serviceWithoutResults(() => true);
    const reading = readInBackground(client.trackers.poll('t1', POLL));
    await advance(19 * MINUTE_MS);
    const polls = requests.filter(isResults).length;
    const records = requests.length - polls;
    expect(polls).toBe(20);
    expect(reading).toMatchObject({ hasEnded: false, items: { length: 20 } });
    expect(records).toBeGreaterThanOrEqual(1);
    expect(records).toBeLessThanOrEqual(10);
  });

  test('searchBy clientTrackerId → the record is asked for in the same way', async () => {
    const { client, requests } = serviceWithoutResults(() => false);
    readInBackground(client.trackers.poll('order-1', { ...POLL, searchBy: 'clientTrackerId' }));
    await advance(5 * MINUTE_MS);
    const record = requests.find((request) => !isResults(request));
    expect(record).toMatchObject({ path: '/trackers/order-1', query: { searchBy: 'clientTrackerId' } });
  });

  test('maxPerSecond 2 → results and records together keep to it', async () => {
    const { client, requests } = serviceWithoutResults(() => true);
    const ids = Array.from({ length: 10 }, (_, index) => `t${index}`);
    readInBackground(client.trackers.pollMany(ids, { ...POLL, maxPerSecond: 2 }));
    await advance(10 * MINUTE_MS);
    const times = requests.map(({ atMs }) => atMs);
    const isCrowded = times.some(
      (time, index) => (times[index + 2] ?? Number.POSITIVE_INFINITY) - time < 999,
    );
    expect(requests.length).toBeGreaterThan(100);
    expect(isCrowded).toBe(false);
  });

  test('the record itself fails → the poll goes on', async () => {
    virtualTime();
    const { client } = stubClient((request) => (isResults(request) ? NO_DATA : { status: 500, body: {} }));
    const reading = readInBackground(client.trackers.poll('t1', POLL));
    await advance(3 * MINUTE_MS);
    expect(reading).toMatchObject({ hasEnded: false, error: undefined });
  });

  test('the record is gone: 404 tracker_not_found → the poll ends with NotFoundError', async () => {
    virtualTime();
    const gone = { status: 404, body: { errors: [{ code: 'tracker_not_found' }], data: null } };
    const { client } = stubClient((request) => (isResults(request) ? NO_DATA : gone));
    const reading = readInBackground(client.trackers.poll('t1', POLL));
    await advance(5 * MINUTE_MS);
    expect(reading.hasEnded).toBe(true);
    expect(reading.error).toBeInstanceOf(NotFoundError);
  });
});

describe('a number with results', () => {
  const tracking = { tracker: TRACKER, shipment: SHIPMENT, events: [EVENT], statistics: STATISTICS };

  test('every poll brings results → the record is never asked for', async () => {
    virtualTime();
    const { client, requests } = stubClient({ body: { data: { trackings: [tracking] } } });
    readInBackground(client.trackers.poll('t1', POLL));
    await advance(10 * MINUTE_MS);
    expect(requests.every(isResults)).toBe(true);
  });

  test('results of a stopped tracker → one update with them, stopped', async () => {
    virtualTime();
    const stopped = { ...tracking, tracker: STOPPED_RECORD };
    const { client } = stubClient({ body: { data: { trackings: [stopped] } } });
    const reading = readInBackground(client.trackers.poll('t1', POLL));
    await advance(MINUTE_MS);
    expect(reading).toMatchObject({ hasEnded: true, items: [{ stopped: true, tracking: stopped }] });
  });
});

describe('the fake: a number that never gets results', () => {
  async function neverFound() {
    const service = contractFake();
    const id = await service.createFetched();
    service.fake.play(NUMBER, 'never-found', { speed: Number.POSITIVE_INFINITY });
    return { ...service, id };
  }

  async function archivedWithoutData() {
    const service = contractFake();
    const id = await service.createFetched();
    await service.client.trackers.update(id, { isSubscribed: false });
    return { ...service, id };
  }

  const GIVEN_UP = [
    ['the play "never-found"', neverFound],
    ['archived without data', archivedWithoutData],
  ] as const;

  test.each(GIVEN_UP)('%s → results stay 404 parcel_not_found', async (_name, reach) => {
    const { call, id } = await reach();
    await advance(30 * DAY_MS);
    const { status, body } = await call('GET', `/trackers/${id}/results`);
    expect([status, at(body, 'errors', 0, 'code')]).toEqual([404, 'parcel_not_found']);
  });

  test.each(GIVEN_UP)('%s → isTracked: false on the record', async (_name, reach) => {
    const { client, id } = await reach();
    expect(await client.trackers.get(id)).toMatchObject({ isTracked: false });
  });

  test.each(GIVEN_UP)('%s → the number has no results either', async (_name, reach) => {
    const { call } = await reach();
    const { status, body } = await call('GET', `/trackers/search/${NUMBER}/results`);
    const isNone = status === 404 || JSON.stringify(body) === '{"data":{"trackings":[]}}';
    expect(isNone).toBe(true);
  });

  test.each(GIVEN_UP)('%s → poll ends', async (_name, reach) => {
    const { client, id } = await reach();
    const reading = readInBackground(client.trackers.poll(id, POLL));
    await advance(5 * MINUTE_MS);
    expect(reading.hasEnded).toBe(true);
    expect(reading.items.at(-1)).toMatchObject({ stopped: true, tracking: undefined });
  });
});
