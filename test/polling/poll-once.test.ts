import { describe, expect, test, vi } from 'vitest';
import { TRACKER } from '../contract/support/samples.ts';
import { catchRejection, type StubResponse } from '../support/make-client.ts';
import {
  BROKEN,
  EMPTY,
  failure,
  makePriorityLimiter,
  NOT_FOUND,
  NOT_READY,
  nothingNew,
  pass,
  polledService,
  record,
  results,
  startPollMany,
} from './polled-service.ts';

const HOUR_MS = 3_600_000;
const toKey = (eventId: string) => `tracking/events:${TRACKER.trackerId}:${eventId}`;
const withoutRecord = (...eventIds: string[]): StubResponse => ({
  body: { data: { trackings: [{ events: eventIds.map((eventId) => ({ eventId })) }] } },
});
const listKinds = (requests: readonly { readonly kind: string }[]) => requests.map(({ kind }) => kind);

describe('pollOnce', () => {
  test('results → one request at once, and the update of poll', async () => {
    const { client, requests } = polledService(() => results(['a', 'a', 'b']));
    expect(await client.trackers.pollOnce('t')).toEqual({
      tracking: { tracker: TRACKER, events: [{ eventId: 'a' }, { eventId: 'a' }, { eventId: 'b' }] },
      newEvents: [{ eventId: 'a' }, { eventId: 'b' }],
      keys: [toKey('a'), toKey('b')],
      poll: 1,
      stopped: false,
      tracker: TRACKER,
      readAt: new Date().toISOString(),
    });
    expect(requests).toMatchObject([{ kind: 'results', startedAt: 0 }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('knownKeys → their events are not new', async () => {
    const { client } = polledService(() => results(['a', 'b']));
    const update = await client.trackers.pollOnce('t', { knownKeys: new Set([toKey('a'), toKey('gone')]) });
    expect(update).toMatchObject({ newEvents: [{ eventId: 'b' }], keys: [toKey('b')] });
  });

  test('two calls → no memory: the same events are new twice', async () => {
    const { client } = polledService(() => results(['a']));
    const poll = async () => (await client.trackers.pollOnce('t')).keys;
    expect([await poll(), await poll()]).toEqual([[toKey('a')], [toKey('a')]]);
  });

  test('isTracked: false → stopped', async () => {
    const { client } = polledService(() => results(['a'], false));
    expect(await client.trackers.pollOnce('t')).toMatchObject({ stopped: true });
  });

  test.each([
    ['404 parcel_not_found', NOT_READY, undefined],
    ['an empty list', EMPTY, undefined],
    ['results without isTracked', withoutRecord('a'), { events: [{ eventId: 'a' }] }],
  ])('%s → the first call reads the record', async (_, response, tracking) => {
    const { client, requests } = polledService(() => response);
    const update = await client.trackers.pollOnce('t');
    expect(update).toMatchObject({ stopped: false, tracker: TRACKER });
    expect(update.tracking).toEqual(tracking);
    expect(listKinds(requests)).toEqual(['results', 'record']);
  });

  test('no results, and a record that says stopped → the results are read once more', async () => {
    const { client, requests } = polledService((poll) => (poll === 1 ? NOT_READY : withoutRecord('late')), {
      respondWithRecord: () => record(false),
    });
    const update = await client.trackers.pollOnce('t');
    expect(update).toMatchObject({
      stopped: true,
      newEvents: [{ eventId: 'late' }],
      tracker: { isTracked: false },
    });
    expect(listKinds(requests)).toEqual(['results', 'record', 'results']);
  });

  test('a record that cannot be read → the results, and a warning', async () => {
    const respondWithRecord = () => ({ status: 500 });
    const { client, warn } = polledService(() => withoutRecord('a'), { respondWithRecord });
    const update = await client.trackers.pollOnce('t');
    expect(update).toMatchObject({ newEvents: [{ eventId: 'a' }], stopped: false, tracker: undefined });
    expect(warn.mock.calls).toEqual([
      [
        expect.stringContaining('Could not read the record of a tracker'),
        expect.objectContaining({ id: 't' }),
      ],
    ]);
  });

  test.each([
    ['tracker_not_found', NOT_FOUND, 'NotFoundError'],
    ['500', BROKEN, 'ServerError'],
    ['a refused key', failure(401, 'auth_invalid_api_key'), 'AuthenticationError'],
    ['an unreadable response', { body: 'x' }, 'ResponseValidationError'],
  ])('%s → rejects with this error, and logs nothing', async (_, response, name) => {
    const { client, warn } = polledService(() => response);
    expect(await catchRejection(client.trackers.pollOnce('t'))).toMatchObject({ name });
    expect(warn).not.toHaveBeenCalled();
  });

  test('a wrong isTracked → rejects with a ResponseValidationError', async () => {
    const wrong = { trackings: [{ tracker: { ...TRACKER, isTracked: 'no' }, events: [] }] };
    const { client } = polledService(() => ({ body: { data: wrong } }));
    const error = await catchRejection(client.trackers.pollOnce('t'));
    expect(error).toMatchObject({
      name: 'ResponseValidationError',
      issues: [{ path: ['tracker', 'isTracked'] }],
    });
  });
});

describe('readAt', () => {
  const DATE = 'Sat, 21 Nov 2026 19:09:00 GMT';
  const READ_AT = '2026-11-21T19:09:00.000Z';
  const dated = (response: StubResponse, date: string): StubResponse => ({ ...response, headers: { date } });

  test.each([
    ['results', results(['a'])],
    ['404 parcel_not_found', NOT_READY],
    ['an empty list', EMPTY],
  ])('%s → the Date header of the response', async (_, response) => {
    const { client } = polledService(() => dated(response, DATE), { latencyMs: 5000 });
    const polling = client.trackers.pollOnce('t');
    await pass(5000);
    expect(await polling).toMatchObject({ readAt: READ_AT });
  });

  test.each([
    ['of two servers, the later one first', `Sat, 21 Nov 2026 19:10:30 GMT, ${DATE}`],
    ['of two servers, the earlier one first', `${DATE}, Sat, 21 Nov 2026 19:10:30 GMT`],
    ['in the form of RFC 850', 'Saturday, 21-Nov-26 19:09:00 GMT'],
  ])('a Date header %s → the earliest time', async (_, date) => {
    const { client } = polledService(() => dated(results([]), date));
    expect(await client.trackers.pollOnce('t')).toMatchObject({ readAt: READ_AT });
  });

  test.each([
    ['no Date header', results(['a'])],
    ['no Date header, no results', NOT_READY],
    ['a Date header that is a word', dated(results(['a']), 'soon')],
    ['a Date header that is a number', dated(results(['a']), '2026')],
    ['an empty Date header', dated(NOT_READY, '')],
  ])('%s → the time before the request', async (_, response) => {
    const { client } = polledService(() => response, { latencyMs: 5000 });
    vi.setSystemTime('2026-11-21T19:09:00.250Z');
    const polling = client.trackers.pollOnce('t');
    await pass(5000);
    expect(await polling).toMatchObject({ readAt: '2026-11-21T19:09:00.250Z' });
  });

  test('results that are read twice → the time of the second response', async () => {
    const respondTo = (poll: number) =>
      poll === 1 ? dated(NOT_READY, DATE) : dated(results([], false), 'Sat, 21 Nov 2026 19:09:03 GMT');
    const { client } = polledService(respondTo, { respondWithRecord: () => record(false) });
    expect(await client.trackers.pollOnce('t')).toMatchObject({ readAt: '2026-11-21T19:09:03.000Z' });
  });

  test('a stream → each update has the time of its own response', async () => {
    const { reading } = startPollMany(
      (poll) => dated(poll === 1 ? NOT_READY : results([]), `Sat, 21 Nov 2026 19:09:0${poll} GMT`),
      ['t'],
    );
    await pass(2000);
    const seconds = reading.items.map(({ readAt }) => readAt);
    expect(seconds).toEqual(['2026-11-21T19:09:01.000Z', '2026-11-21T19:09:02.000Z']);
  });
});

describe('options of pollOnce', () => {
  test('request options → used for each request', async () => {
    const { client, requests } = polledService(() => NOT_READY);
    await client.trackers.pollOnce('order/1', { searchBy: 'clientTrackerId', retry: false, timeoutMs: 5000 });
    expect(requests).toMatchObject([
      { kind: 'results', id: 'order/1', query: '?searchBy=clientTrackerId' },
      { kind: 'record', id: 'order/1', query: '?searchBy=clientTrackerId' },
    ]);
  });

  test.each([
    [undefined, 'background'],
    ['interactive', 'interactive'],
  ] as const)('priority %s → %s', async (priority, sent) => {
    const { priorities, limiter } = makePriorityLimiter();
    const { client } = polledService(nothingNew, { limiter, rateLimit: undefined });
    await client.trackers.pollOnce('t', { priority });
    expect(priorities).toEqual([sent]);
  });

  test('an abort during the request → rejects with the reason', async () => {
    const { client } = polledService(nothingNew, { latencyMs: HOUR_MS });
    const controller = new AbortController();
    const rejection = catchRejection(client.trackers.pollOnce('t', { signal: controller.signal }));
    await pass(1000);
    controller.abort('enough');
    expect(await rejection).toBe('enough');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a request that times out → rejects with a TimeoutError after one request', async () => {
    const { client, requests } = polledService(nothingNew, { latencyMs: HOUR_MS, retry: undefined });
    const rejection = catchRejection(client.trackers.pollOnce('t', { timeoutMs: 1000 }));
    await pass(1000);
    expect(await rejection).toMatchObject({ name: 'TimeoutError' });
    expect(requests).toHaveLength(1);
  });

  test.each([
    ['intervalMs', 5000, /^Unknown option `intervalMs`; known options: /],
    ['knownKeys', 'a', /^Expected `knownKeys` to be an iterable of strings, got a string/],
    ['searchBy', 'number', /^Expected `searchBy` to be/],
    ['timeoutMs', -1, /^Expected `timeoutMs` to be/],
  ])('%s: %s → rejects with a ConfigurationError, and sends nothing', async (name, value, message) => {
    const { client, requests } = polledService(nothingNew);
    const error = await catchRejection(client.trackers.pollOnce('t', { [name]: value }));
    expect(error).toMatchObject({ name: 'ConfigurationError', message: expect.stringMatching(message) });
    expect(requests).toEqual([]);
  });

  test.each(['', '..', '%2e%2e'])('id %j → rejects with a RequestValidationError', async (id) => {
    const { client } = polledService(nothingNew);
    const error = await catchRejection(client.trackers.pollOnce(id));
    expect(error).toMatchObject({
      name: 'RequestValidationError',
      message: expect.stringMatching(/^Expected `id`/),
    });
  });
});
