import { describe, expect, test } from 'vitest';
import { NotFoundError } from '../../../src/errors.ts';
import { TRACKER } from '../../contract/support/samples.ts';
import type { StubResponse } from '../../support/make-client.ts';
import { BROKEN, EMPTY, NOT_FOUND, NOT_READY, pass, record, results, startPoll } from '../polled-service.ts';

const STOPPED = { ...TRACKER, isTracked: false };
const isStopped = { respondWithRecord: () => record(false) };
const listKinds = (requests: readonly { readonly kind: string }[]) => requests.map(({ kind }) => kind);

describe('a tracker without results', () => {
  test.each([
    ['404 parcel_not_found', NOT_READY],
    ['an empty list', EMPTY],
  ])('%s, and a tracker with isTracked: false → the last update, with the tracker', async (_form, empty) => {
    const { reading, requests } = startPoll(() => empty, {}, isStopped);
    await pass(5000);
    expect(reading.end).toEqual({});
    const nothing = { tracking: undefined, newEvents: [], keys: [], readAt: expect.any(String) };
    expect(reading.items).toEqual([
      { ...nothing, poll: 1, stopped: false, tracker: undefined },
      { ...nothing, poll: 2, stopped: true, tracker: STOPPED },
    ]);
    expect(listKinds(requests)).toEqual(['results', 'results', 'record', 'results']);
  });

  test('a tracker with isTracked: true → polling goes on, and every second empty poll reads the tracker again', async () => {
    const { reading } = startPoll(() => NOT_READY);
    await pass(4000);
    const isTracked = reading.items.map(({ tracker }) => tracker?.isTracked);
    expect(isTracked).toEqual([undefined, true, undefined, true]);
  });

  test('results between empty polls → the count of empty polls starts at 0 again', async () => {
    const { requests } = startPoll((poll) => (poll % 2 === 0 ? results(['a']) : EMPTY), {}, isStopped);
    await pass(8000);
    expect(listKinds(requests)).not.toContain('record');
  });

  test('a tracker that cannot be read → a warning with its id, and polling goes on', async () => {
    const { reading, warn } = startPoll(
      () => NOT_READY,
      { maxConsecutiveErrors: 1 },
      { respondWithRecord: (request) => (request === 1 ? { status: 500 } : record(false)) },
    );
    await pass(3000);
    expect(reading.items.map(({ stopped }) => stopped)).toEqual([false, false, false]);
    const call = { endpoint: 'trackers.get', method: 'GET', path: '/trackers/{trackerId}' };
    const fields = { ...call, id: 'tracker-1', reason: expect.stringContaining('500') };
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('Could not read the record of a tracker'), fields],
    ]);
    await pass(1000);
    expect(reading.end).toEqual({});
  });

  test('503 with a Retry-After for the record → results are polled, the record is read when that time is over', async () => {
    const later = { status: 503, body: '', headers: { 'retry-after': '5' } };
    const { listStarts, requests } = startPoll(
      () => NOT_READY,
      {},
      { respondWithRecord: (request) => (request === 1 ? later : record(true)) },
    );
    await pass(8000);
    expect(listStarts()).toEqual([1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]);
    const records = requests.filter(({ kind }) => kind === 'record').map(({ startedAt }) => startedAt);
    expect(records).toEqual([2000, 7000]);
  });

  test('a tracker that no longer exists → the stream rejects with NotFoundError', async () => {
    const { reading } = startPoll(() => NOT_READY, {}, { respondWithRecord: () => NOT_FOUND });
    await pass(2000);
    expect(reading.end?.error).toBeInstanceOf(NotFoundError);
  });
});

describe('a record that says stopped', () => {
  const withoutRecord = (...eventIds: string[]): StubResponse => ({
    body: { data: { trackings: [{ events: eventIds.map((eventId) => ({ eventId })) }] } },
  });

  test.each([
    ['no results before', EMPTY],
    ['results before', withoutRecord('a')],
  ])(
    '%s → the results are read once more, and the last update has the events that came with the stop',
    async (_, before) => {
      const respondTo = (poll: number) => (poll <= 2 ? before : withoutRecord('a', 'late'));
      const { reading } = startPoll(respondTo, { knownKeys: ['tracking/events:tracker-1:a'] }, isStopped);
      await pass(5000);
      expect(reading.end).toEqual({});
      expect(reading.items.at(-1)).toMatchObject({
        poll: 2,
        stopped: true,
        newEvents: [{ eventId: 'late' }],
      });
    },
  );

  test('the second read of the results fails → the poll has failed, and the next poll reads everything again', async () => {
    const respondTo = (poll: number) => (poll === 3 ? BROKEN : poll < 3 ? NOT_READY : withoutRecord('late'));
    const { reading, requests, warn } = startPoll(respondTo, {}, isStopped);
    await pass(5000);
    expect(listKinds(requests)).toEqual([
      ...['results', 'results', 'record', 'results'],
      ...['results', 'record', 'results'],
    ]);
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('The service is not available'), expect.anything()],
    ]);
    expect(reading.items.at(-1)).toMatchObject({ poll: 3, stopped: true, newEvents: [{ eventId: 'late' }] });
    expect(reading.end).toEqual({});
  });

  test('the second read of the results says tracked again → polling goes on', async () => {
    const respondTo = (poll: number) => (poll <= 2 ? NOT_READY : results(['a']));
    const { reading } = startPoll(respondTo, {}, isStopped);
    await pass(3000);
    expect(reading.items.map(({ stopped }) => stopped)).toEqual([false, false, false]);
    expect(reading.end).toBeUndefined();
  });
});

describe('isTracked of a wrong type', () => {
  const WRONG = ['false', 0, {}, []];
  const withIsTracked = (isTracked: unknown): StubResponse => ({
    body: { data: { trackings: [{ tracker: { ...TRACKER, isTracked }, events: [] }] } },
  });
  const failed = {
    name: 'TrackingError',
    message: expect.stringMatching(/^Polling `tracker-1` has ended after 5 errors in a row.*isTracked/),
    cause: { name: 'ResponseValidationError', endpoint: expect.any(String), callId: expect.any(String) },
  };

  test.each(WRONG)(
    '%j in the results → each poll fails, and the polling ends with an error',
    async (value) => {
      const { reading, polls } = startPoll(() => withIsTracked(value));
      await pass(10_000);
      expect(reading).toMatchObject({ items: [], end: { error: failed } });
      expect(polls).toHaveLength(5);
    },
  );

  test.each(WRONG)(
    '%j in the record → each poll from the second on fails, and the polling ends',
    async (value) => {
      const wrong = { body: { data: { tracker: { ...TRACKER, isTracked: value } } } };
      const { reading, polls } = startPoll(() => NOT_READY, {}, { respondWithRecord: () => wrong });
      await pass(10_000);
      expect(reading).toMatchObject({ items: [{ poll: 1 }], end: { error: failed } });
      expect(polls).toHaveLength(6);
    },
  );

  test.each([null, undefined])(
    '%s → counts as lacking, and every second poll reads the record',
    async (value) => {
      const { reading, requests } = startPoll(() => withIsTracked(value));
      await pass(4000);
      expect(reading.items.map(({ tracker }) => tracker?.isTracked ?? 'lacking')).toEqual([
        'lacking',
        true,
        'lacking',
        true,
      ]);
      expect(listKinds(requests).filter((kind) => kind === 'record')).toHaveLength(2);
    },
  );
});
