import { describe, expect, test } from 'vitest';
import { NotFoundError, ResultsNotReadyError } from '../../src/errors.ts';
import { TRACKER } from '../contract/support/samples.ts';
import type { StubResponse } from '../support/make-client.ts';
import {
  EMPTY,
  NOT_FOUND,
  NOT_READY,
  pass,
  polledService,
  record,
  results,
  startPoll,
} from './polled-service.ts';

const POLL = { intervalMs: 1000 };
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
    expect(reading.items).toEqual([
      { tracking: undefined, newEvents: [], keys: [], poll: 1, stopped: false, tracker: undefined },
      { tracking: undefined, newEvents: [], keys: [], poll: 2, stopped: true, tracker: STOPPED },
    ]);
    expect(listKinds(requests)).toEqual(['results', 'results', 'record']);
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

  test('results without isTracked → the tracker is read', async () => {
    const response: StubResponse = { body: { data: { trackings: [{ events: [{ eventId: 'a' }] }] } } };
    const { client, requests } = polledService(() => response, isStopped);
    const waiting = client.trackers.waitUntilStopped('t', POLL);
    await pass(2000);
    expect(await waiting).toEqual({ events: [{ eventId: 'a' }] });
    expect(listKinds(requests)).toEqual(['results', 'results', 'record']);
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
    expect(warn.mock.calls).toEqual([[expect.stringContaining('Could not read a tracker'), fields]]);
    await pass(1000);
    expect(reading.end).toEqual({});
  });

  test('a tracker that no longer exists → the stream rejects with NotFoundError', async () => {
    const { reading } = startPoll(() => NOT_READY, {}, { respondWithRecord: () => NOT_FOUND });
    await pass(2000);
    expect(reading.end?.error).toBeInstanceOf(NotFoundError);
  });

  test('searchBy → sent with both requests', async () => {
    const { client, requests } = polledService(() => EMPTY, isStopped);
    const options = { ...POLL, searchBy: 'clientTrackerId' as const };
    const waiting = client.trackers.waitUntilStopped('order/1', options).catch(() => {});
    await pass(2000);
    await waiting;
    expect(requests).toHaveLength(3);
    for (const seen of requests)
      expect(seen).toMatchObject({ id: 'order/1', query: '?searchBy=clientTrackerId' });
  });

  test('waitUntilStopped, isTracked: false → rejects with ResultsNotReadyError that has the tracker', async () => {
    const { client } = polledService(() => NOT_READY, isStopped);
    const outcome = expect(client.trackers.waitUntilStopped('t-1', POLL)).rejects.toMatchObject({
      name: 'ResultsNotReadyError',
      message: 'The service has stopped tracking `t-1` and has no results for it',
      code: 'parcel_not_found',
      status: 404,
      tracker: STOPPED,
      callId: expect.any(String),
      endpoint: 'trackers.results',
      cause: expect.any(ResultsNotReadyError),
    });
    await pass(2000);
    await outcome;
  });
});
