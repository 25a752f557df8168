import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { NotFoundError, ResultsNotReadyError } from '../../src/errors.ts';
import { TRACKER } from '../support/calls.ts';
import { type Answer, makeClient, toResponse } from '../support/make-client.ts';
import { EMPTY, idsOf, NOT_FOUND, NOT_READY, pass, read, record, results } from './polled-service.ts';

/** A service in virtual time whose results and whose records are told apart. */
function serviceOf(resultsOf: (poll: number) => Answer, recordOf: (request: number) => Answer, options = {}) {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const requests: { readonly kind: 'results' | 'record'; readonly url: string; readonly atMs: number }[] = [];
  const { client } = makeClient(
    ({ url }) => {
      const kind = new URL(url).pathname.endsWith('/results') ? 'results' : 'record';
      requests.push({ kind, url, atMs: performance.now() });
      const count = requests.filter((request) => request.kind === kind).length;
      return toResponse(kind === 'results' ? resultsOf(count) : recordOf(count));
    },
    { retry: false, ...options },
  );
  return { client, requests, kinds: () => requests.map(({ kind }) => kind) };
}

const POLL = { intervalMs: 1000 };
const STOPPED = { ...TRACKER, isTracked: false };

describe('a tracker without results', () => {
  test.each([
    ['404 parcel_not_found', NOT_READY],
    ['an empty list', EMPTY],
  ])('%s, and the record says isTracked: false → the last update, with the record', async (_form, empty) => {
    const { client, kinds } = serviceOf(
      () => empty,
      () => record(false),
    );
    const reading = read(client.trackers.poll('t', POLL));
    await pass(5000);
    expect(reading.end).toEqual({});
    expect(reading.items).toEqual([
      { tracking: undefined, newEvents: [], poll: 1, stopped: false, tracker: undefined },
      { tracking: undefined, newEvents: [], poll: 2, stopped: true, tracker: STOPPED },
    ]);
    expect(kinds()).toEqual(['results', 'results', 'record']);
  });

  test('the record says isTracked: true → goes on, and asks again at every second empty poll', async () => {
    const { client, kinds } = serviceOf(
      () => NOT_READY,
      () => record(true),
    );
    const reading = read(client.trackers.poll('t', POLL));
    await pass(6000);
    expect(reading.items.map(({ tracker }) => tracker?.isTracked)).toEqual([
      undefined,
      true,
      undefined,
      true,
      undefined,
      true,
    ]);
    expect(kinds().filter((kind) => kind === 'record')).toHaveLength(3);
  });

  test('results in between → the count of empty polls starts anew', async () => {
    const { client, kinds } = serviceOf(
      (poll) => (poll % 2 === 0 ? results(['a']) : EMPTY),
      () => record(false),
    );
    read(client.trackers.poll('t', POLL));
    await pass(8000);
    expect(kinds()).not.toContain('record');
  });

  test('results that do not say whether it is tracked → the record does', async () => {
    const { client, kinds } = serviceOf(
      () => ({ body: { data: { trackings: [{ events: [{ eventId: 'a' }] }] } } }),
      () => record(false),
    );
    const waiting = client.trackers.waitUntilStopped('t', POLL);
    await pass(2000);
    expect(await waiting).toEqual({ events: [{ eventId: 'a' }] });
    expect(kinds()).toEqual(['results', 'results', 'record']);
  });

  test('the record can not be read → a warning that names the tracker, and the poll goes on', async () => {
    const warn = vi.fn();
    const logger = { debug() {}, info() {}, warn, error() {} };
    const { client } = serviceOf(
      () => NOT_READY,
      (request) => (request === 1 ? { status: 500 } : record(false)),
      { logger, logLevel: 'warn' },
    );
    const reading = read(client.trackers.poll('t', { ...POLL, maxConsecutiveErrors: 1 }));
    await pass(3000);
    expect(reading.items.map(({ stopped }) => stopped)).toEqual([false, false, false]);
    expect(warn.mock.calls).toEqual([
      [
        expect.stringContaining('could not be read'),
        {
          endpoint: 'trackers.get',
          method: 'GET',
          path: '/trackers/{trackerId}',
          id: 't',
          reason: expect.stringContaining('500'),
        },
      ],
    ]);
    await pass(1000);
    expect(reading.end).toEqual({});
  });

  test('the record is gone → the poll ends with NotFoundError', async () => {
    const { client } = serviceOf(
      () => NOT_READY,
      () => NOT_FOUND,
    );
    const reading = read(client.trackers.poll('t', POLL));
    await pass(2000);
    expect(reading.end?.error).toBeInstanceOf(NotFoundError);
  });

  test('searchBy → the record is asked for in the same way', async () => {
    const { client, requests } = serviceOf(
      () => EMPTY,
      () => record(false),
    );
    read(client.trackers.poll('order/1', { ...POLL, searchBy: 'clientTrackerId' }));
    await pass(2000);
    expect(requests[2]?.url).toMatch(/\/trackers\/order%2F1\?searchBy=clientTrackerId$/);
  });

  test('pollMany with maxPerSecond → results and records together keep to it', async () => {
    const { client, requests, kinds } = serviceOf(
      () => NOT_READY,
      () => record(true),
    );
    read(client.trackers.pollMany(idsOf(6), { intervalMs: 5000, initialDelayMs: 0, maxPerSecond: 2 }));
    await pass(30_000);
    expect(kinds()).toContain('record');
    const gaps = requests.slice(1).map(({ atMs }, index) => atMs - (requests[index]?.atMs ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(499);
  });
});

describe('waitUntilStopped of a tracker that never gets results', () => {
  test('isTracked: false → rejects with ResultsNotReadyError whose tracker says why', async () => {
    const { client } = serviceOf(
      () => NOT_READY,
      () => record(false),
    );
    const outcome = expect(client.trackers.waitUntilStopped('t-1', POLL)).rejects.toMatchObject({
      name: 'ResultsNotReadyError',
      message: 'The service has stopped tracking `t-1`, and there are no results of it',
      code: 'parcel_not_found',
      status: 404,
      tracker: STOPPED,
      cause: expect.any(ResultsNotReadyError),
    });
    await pass(2000);
    await outcome;
  });
});
