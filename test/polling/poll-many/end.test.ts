import { describe, expect, test, vi } from 'vitest';
import type { Tracking } from '../../../src/index.ts';
import { TRACKER } from '../../contract/support/samples.ts';
import { catchRejection, type StubResponse } from '../../support/make-client.ts';
import {
  EMPTY,
  NOT_READY,
  nothingNew,
  pass,
  polledService,
  record,
  results,
  startPoll,
} from '../polled-service.ts';

const END = { done: true, value: undefined };

const toBody = (...trackings: object[]): StubResponse => ({ body: { data: { trackings } } });
/** The responses for a tracker that has no news yet. */
const NO_NEWS: [what: string, response: StubResponse][] = [
  ['404 parcel_not_found', NOT_READY],
  ['an empty list', EMPTY],
  ['results without events', nothingNew()],
  ['results whose events are missing', toBody({ tracker: TRACKER })],
  ['results with null for events', toBody({ tracker: TRACKER, events: null })],
  // The default `invalidResponse: 'keep'` keeps a field of a wrong form, and sets no default for the fields beside it.
  [
    'results without events, and a wrong form',
    toBody({ tracker: TRACKER, shipment: { statusMilestone: 5 } }),
  ],
];
/** The responses for a tracker that was given up before its first event, and what the error has of the response. */
const GIVEN_UP: [what: string, respondTo: (poll: number) => StubResponse, details: object][] = [
  ['404 parcel_not_found', () => NOT_READY, { status: 404, code: 'parcel_not_found' }],
  ['an empty list', () => EMPTY, { status: 200, body: { data: { trackings: [] } } }],
  ['results without events', (poll) => results([], poll < 3), { status: 200, body: results([], false).body }],
  [
    'results without events and without a tracker',
    () => toBody({ events: [] }),
    { status: 200, body: { data: { trackings: [{ events: [] }] } } },
  ],
];

describe('the end of poll', () => {
  test('until → the stream ends after the update for which it returns true', async () => {
    const until = vi.fn(({ events }: Tracking) => events.length > 1);
    const { reading, polls } = startPoll((poll) => results(['a', 'b'].slice(0, poll - 1)), { until });
    await pass(10_000);
    expect(reading.items.at(-1)).toMatchObject({ newEvents: [{ eventId: 'b' }], stopped: false });
    expect(polls).toHaveLength(3);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each(NO_NEWS)('%s, then an event → until is first called with this event', async (_, noNews) => {
    const until = vi.fn(() => true);
    const { reading, polls } = startPoll((poll) => (poll < 4 ? noNews : results(['a'])), { until });
    await pass(10_000);
    expect(until.mock.calls).toMatchObject([[{ events: [{ eventId: 'a' }] }]]);
    expect(reading.items.map(({ newEvents }) => newEvents.length)).toEqual([0, 0, 0, 1]);
    expect([polls.length, reading.end]).toEqual([4, {}]);
  });

  test('until throws → the stream rejects with its error, and no timer is left', async () => {
    const until = () => {
      throw new Error('mine');
    };
    const { reading } = startPoll(() => results(['a']), { until });
    await pass(1000);
    expect(reading.end?.error).toEqual(new Error('mine'));
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until returns a promise → the stream rejects with a ConfigurationError, and nothing is unhandled', async () => {
    const until = () => Promise.reject(new Error('mine'));
    // @ts-expect-error -- `until` must return true or false
    const { reading } = startPoll(() => results(['a']), { until });
    await pass(1000);
    const message = 'Expected `until` to return true or false, got a Promise';
    expect(reading.end?.error).toMatchObject({ name: 'ConfigurationError', message });
  });

  test.each([
    ['the wait for the next poll', 500, []],
    ['a request', 1500, [1000]],
  ])('return() during %s → the stream ends at once, without a timer', async (_, atMs, starts) => {
    const { client, polls, listStarts } = polledService(nothingNew, { latencyMs: 60_000 });
    const stream = client.trackers.poll('tracker-1', { intervalMs: 1000 });
    const pending = stream.next();
    await pass(atMs);
    expect(await stream.return()).toEqual(END);
    expect(vi.getTimerCount()).toBe(0);
    expect(await pending).toEqual(END);
    expect(await stream.next()).toEqual(END);
    await pass(10_000);
    expect(listStarts()).toEqual(starts);
    expect(polls.every(({ endedAt }) => endedAt === undefined)).toBe(true);
  });

  test.each([
    ['before it begins', 0, []],
    ['during the first wait', 500, []],
    ['during a request', 1200, [1000]],
    ['during a later wait', 1700, [1000]],
  ])('an abort %s → rejects with the reason, without a timer or a warning', async (_, atMs, starts) => {
    const controller = new AbortController();
    const reason = new Error('enough');
    if (atMs === 0) controller.abort(reason);
    const options = { signal: controller.signal };
    const { reading, listStarts, warn } = startPoll(nothingNew, options, { latencyMs: 400 });
    await pass(atMs);
    controller.abort(reason);
    await pass(0);
    expect(reading.end?.error).toBe(reason);
    await pass(10_000);
    expect(listStarts()).toEqual(starts);
    expect(vi.getTimerCount()).toBe(0);
    expect(warn).not.toHaveBeenCalled();
  });

  test('an abort between two reads → the next read rejects with the reason', async () => {
    const { client } = polledService(nothingNew);
    const controller = new AbortController();
    const stream = client.trackers.poll('tracker-1', { initialDelayMs: 0, signal: controller.signal });
    await stream.next();
    controller.abort('a reason that is no error');
    await expect(stream.next()).rejects.toBe('a reason that is no error');
    expect(await stream.next()).toEqual(END);
  });
});

describe('waitUntilStopped', () => {
  test('isTracked turns false → resolves to those results', async () => {
    const { client } = polledService((poll) => results(['a', 'b'].slice(0, poll), poll < 2));
    const waiting = client.trackers.waitUntilStopped('tracker-1', { intervalMs: 1000 });
    await pass(2000);
    expect(await waiting).toMatchObject({
      tracker: { isTracked: false },
      events: [{ eventId: 'a' }, { eventId: 'b' }],
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until → resolves to the results for which it returns true', async () => {
    const { client } = polledService((poll) => results(['a', 'b', 'c'].slice(0, poll)));
    const until = ({ events }: Tracking) => events.length === 2;
    const waiting = client.trackers.waitUntilStopped('tracker-1', { intervalMs: 1000, until });
    await pass(2000);
    expect((await waiting).events).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each(NO_NEWS)('%s, then an event → until decides from this event on', async (_, noNews) => {
    const { client } = polledService((poll) => (poll < 3 ? noNews : results(['a'])));
    const options = { intervalMs: 1000, until: () => true };
    const waiting = client.trackers.waitUntilStopped('tracker-1', options);
    await pass(3000);
    expect((await waiting).events).toEqual([{ eventId: 'a' }]);
  });

  test.each(GIVEN_UP)(
    '%s, and no longer tracked → rejects with a complete ResultsNotReadyError',
    async (_, respondTo, details) => {
      const { client } = polledService(respondTo, { respondWithRecord: () => record(false) });
      const rejection = catchRejection(client.trackers.waitUntilStopped('t-1', { intervalMs: 1000 }));
      await pass(10_000);
      expect(await rejection).toMatchObject({
        name: 'ResultsNotReadyError',
        message: 'The service has stopped tracking `t-1` and has no results for it',
        tracker: { ...TRACKER, isTracked: false },
        callId: expect.any(String),
        endpoint: 'trackers.results',
        attempts: 1,
        cause: { name: 'ResultsNotReadyError' },
        ...details,
      });
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  test('maxDurationMs runs out → TimeoutError that names maxDurationMs', async () => {
    const { client } = polledService(nothingNew);
    const options = { intervalMs: 1000, maxDurationMs: 2500 };
    const outcome = expect(client.trackers.waitUntilStopped('tracker-1', options)).rejects.toMatchObject({
      name: 'TimeoutError',
      timeoutMs: 2500,
      message:
        'The service was still tracking `tracker-1` after 2500 ms (`maxDurationMs`); wait again, or raise `maxDurationMs`',
    });
    await pass(2500);
    await outcome;
  });
});
