import { describe, expect, test, vi } from 'vitest';
import type { ResultsManyOptions } from '../../src/index.ts';
import type { TrackerIds } from '../../src/polling/results-many.ts';
import { TRACKER } from '../contract/support/samples.ts';
import { networkFailure, type StubResponse } from '../support/make-client.ts';
import {
  BROKEN,
  EMPTY,
  failure,
  makeIds,
  NOT_FOUND,
  NOT_READY,
  nothingNew,
  pass,
  polledService,
  read,
  results,
} from './polled-service.ts';

const HOUR_MS = 3_600_000;
const NO_ACCESS = failure(401, 'auth_invalid_api_key');

type ServiceParameters = Parameters<typeof polledService>;

/** Reads the results of some trackers in the background. */
function start(
  respondTo: ServiceParameters[0],
  ids: TrackerIds,
  options: ResultsManyOptions = {},
  serviceOptions: ServiceParameters[1] = {},
) {
  const service = polledService(respondTo, serviceOptions);
  const stream = service.client.trackers.resultsMany(ids, options);
  return { ...service, stream, reading: read(stream) };
}

const listItems = ({ items }: { readonly items: readonly { readonly id: string }[] }) =>
  items.map(({ id }) => id);

/** A source that counts how many ids were read, and whether it was closed. */
function countedIds(count = Number.POSITIVE_INFINITY) {
  const state = { read: 0, isClosed: false };
  function* generate() {
    try {
      for (; state.read < count; ) yield `tracker-${state.read++}`;
    } finally {
      state.isClosed = true;
    }
  }
  return { state, ids: generate() };
}

describe('the items', () => {
  test('results → the id, the results, whether tracking has stopped, and when they were sent', async () => {
    const dated = { headers: { date: 'Sat, 21 Nov 2026 19:09:00 GMT' } };
    const { reading, requests } = start(
      (_poll, id) => ({ ...results(['a'], id !== 'stopped'), ...dated }),
      ['tracked', 'stopped'],
    );
    await pass(0);
    const readAt = '2026-11-21T19:09:00.000Z';
    expect(reading).toEqual({
      items: [
        { id: 'tracked', tracking: expect.objectContaining({ tracker: TRACKER }), stopped: false, readAt },
        {
          id: 'stopped',
          tracking: expect.objectContaining({ events: [{ eventId: 'a' }] }),
          stopped: true,
          readAt,
        },
      ],
      end: {},
    });
    expect(requests).toHaveLength(2);
  });

  test.each([
    ['404 parcel_not_found', NOT_READY],
    ['an empty list', EMPTY],
  ])('%s → no results, no error, and one request', async (_, response) => {
    const { reading, requests } = start(() => response, ['a']);
    await pass(0);
    const item = { id: 'a', tracking: undefined, stopped: false, readAt: new Date().toISOString() };
    expect(reading).toEqual({ items: [item], end: {} });
    expect(requests).toHaveLength(1);
  });

  test('results without isTracked → not stopped, and one request', async () => {
    const response: StubResponse = { body: { data: { trackings: [{ events: [{ eventId: 'a' }] }] } } };
    const { reading, requests } = start(() => response, ['a']);
    await pass(0);
    expect(reading.items).toMatchObject([{ id: 'a', stopped: false, tracking: { events: [{}] } }]);
    expect(requests).toHaveLength(1);
  });

  test.each<[string, StubResponse | Error, string]>([
    ['a tracker that is not found', NOT_FOUND, 'NotFoundError'],
    ['500', BROKEN, 'ServerError'],
    ['422', failure(422, 'validation_error'), 'InvalidRequestError'],
    ["a firewall's 403 without a code", { status: 403, body: '<html></html>' }, 'PermissionDeniedError'],
    ['a connection that breaks', networkFailure('ECONNRESET'), 'ConnectionError'],
    ['JSON of another form', { body: { hello: 'world' } }, 'ResponseValidationError'],
    [
      'an isTracked that is a text',
      { body: { data: { trackings: [{ tracker: { ...TRACKER, isTracked: 'no' }, events: [] }] } } },
      'ResponseValidationError',
    ],
  ])('%s → the error of this id, and the others have their results', async (_, response, name) => {
    const { reading } = start((_poll, id) => (id === 'b' ? response : nothingNew()), ['a', 'b', 'c']);
    await pass(0);
    expect(listItems(reading).toSorted()).toEqual(['a', 'b', 'c']);
    expect(reading.items.filter(({ error }) => error !== undefined)).toMatchObject([
      { id: 'b', error: { name } },
    ]);
    expect(reading.end).toEqual({});
  });

  test.each([
    ['an empty text', ''],
    ['a path', '..'],
    ['a number', 5 as never],
    ['undefined', undefined as never],
  ])('an id that is %s → the error of this id, without a request', async (_, id) => {
    const { reading, polls } = start(nothingNew, [id, 'a']);
    await pass(0);
    const error = expect.objectContaining({ name: 'RequestValidationError' });
    expect(reading.items).toContainEqual({ id, error });
    expect(listItems(reading)).toContain('a');
    expect(polls.map((poll) => poll.id)).toEqual(['a']);
  });

  test('the same id twice → two items', async () => {
    const { reading } = start(nothingNew, ['a', 'a']);
    await pass(0);
    expect(listItems(reading)).toEqual(['a', 'a']);
  });

  test('no ids → the end, without a request', async () => {
    const { reading, polls } = start(nothingNew, []);
    await pass(0);
    expect(reading).toEqual({ items: [], end: {} });
    expect(polls).toEqual([]);
  });
});

describe('an id whose request hangs', () => {
  const latencyMs = (_poll: number, id: string) => (id === 'tracker-0' ? HOUR_MS : 100);

  test('among 100 → the others come at once, and its timeout last', async () => {
    const { reading, requests } = start(nothingNew, makeIds(100), {}, { latencyMs, retry: undefined });
    await pass(1500);
    expect(listItems(reading)).toEqual(makeIds(100).slice(1));
    await pass(30_000);
    expect(reading.items.at(-1)).toMatchObject({ id: 'tracker-0', error: { name: 'TimeoutError' } });
    expect(reading.end).toEqual({});
    expect(requests).toHaveLength(100);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('concurrency 2 → the other slot reads all others', async () => {
    const { reading } = start(nothingNew, makeIds(5), { concurrency: 2 }, { latencyMs });
    await pass(400);
    expect(listItems(reading)).toEqual(makeIds(5).slice(1));
  });
});

describe('how far ids are read', () => {
  test('a reader that stops → no more requests than concurrency', async () => {
    const { state, ids } = countedIds();
    const { client, polls } = polledService(nothingNew);
    const stream = client.trackers.resultsMany(ids, { concurrency: 3 });
    await stream.next();
    await pass(HOUR_MS);
    expect(polls.length).toBeLessThanOrEqual(4);
    expect(state.read).toBeLessThanOrEqual(4);
    await stream.return();
    expect(state.isClosed).toBe(true);
  });

  test('no reader → nothing is read or sent', async () => {
    const { state, ids } = countedIds();
    const { client, polls } = polledService(nothingNew);
    client.trackers.resultsMany(ids);
    await pass(HOUR_MS);
    expect([state.read, polls]).toEqual([0, []]);
  });

  test('concurrency by default → ten requests at a time', async () => {
    const { polls } = start(nothingNew, makeIds(50), {}, { latencyMs: 1000 });
    await pass(999);
    expect(polls).toHaveLength(10);
    await pass(1);
    expect(polls).toHaveLength(20);
  });

  test('ids that cannot be valid, without end → read as far as the loop reads', async () => {
    const state = { read: 0 };
    function* generate() {
      for (;;) {
        state.read += 1;
        yield '..';
      }
    }
    const { client } = polledService(nothingNew);
    const stream = client.trackers.resultsMany(generate());
    expect(await stream.next()).toMatchObject({ value: { id: '..' } });
    expect(state.read).toBeLessThanOrEqual(11);
    await stream.return();
  });

  test('an asynchronous source that is slow → the results do not wait for the next id', async () => {
    async function* generate() {
      yield 'a';
      await new Promise((resolve) => setTimeout(resolve, 1000));
      yield 'b';
    }
    const { reading } = start(nothingNew, generate());
    await pass(0);
    expect(listItems(reading)).toEqual(['a']);
    await pass(1000);
    expect(listItems(reading)).toEqual(['a', 'b']);
    expect(reading.end).toEqual({});
  });

  test('a source that throws → the results of the ids before it, then its error', async () => {
    const broken = new Error('mine');
    function* generate() {
      yield* ['a', 'b'];
      throw broken;
    }
    const { reading } = start(nothingNew, generate(), {}, { latencyMs: 100 });
    await pass(100);
    expect(listItems(reading)).toEqual(['a', 'b']);
    expect(reading.end).toEqual({ error: broken });
  });

  test('the limit of the service → no more than 10 requests in any second, and no 429', async () => {
    const { reading, listStarts } = start(nothingNew, makeIds(40), {}, { rateLimit: undefined });
    await pass(10_000);
    expect(reading.items).toHaveLength(40);
    const starts = listStarts();
    for (const [index, startedAt] of starts.entries())
      expect((starts[index + 10] ?? Number.POSITIVE_INFINITY) - startedAt).toBeGreaterThan(999);
  });
});

describe('the end of a run', () => {
  test.each([
    [401, 'auth_invalid_api_key', 'AuthenticationError'],
    [403, 'forbidden', 'PermissionDeniedError'],
    [403, 'quota_limit_reached', 'QuotaExceededError'],
    [429, 'quota_limit_reached', 'QuotaExceededError'],
    [422, 'no_active_subscription', 'NoActiveSubscriptionError'],
  ])('%d %s → the results before it, then this error, and no further request', async (status, code, name) => {
    const { state, ids } = countedIds();
    const respondTo = (_poll: number, id: string) =>
      id === 'tracker-2' ? failure(status, code) : nothingNew();
    const { reading, polls } = start(respondTo, ids, { concurrency: 1 });
    await pass(HOUR_MS);
    expect(listItems(reading)).toEqual(['tracker-0', 'tracker-1']);
    expect(reading.end?.error).toMatchObject({ name, code });
    expect(polls).toHaveLength(3);
    expect(state).toEqual({ read: 3, isClosed: true });
  });

  test('a failure of the account while another request hangs → ends at once, and aborts that request', async () => {
    const latencyMs = (_poll: number, id: string) => (id === 'a' ? HOUR_MS : 100);
    const { reading } = start(
      (_poll, id) => (id === 'b' ? NO_ACCESS : nothingNew()),
      ['a', 'b'],
      {},
      { latencyMs },
    );
    await pass(100);
    expect(reading.end?.error).toMatchObject({ name: 'AuthenticationError' });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an abort → rejects with the reason, and leaves no timer', async () => {
    const controller = new AbortController();
    const { state, ids } = countedIds();
    const { signal } = controller;
    const { reading } = start(nothingNew, ids, { signal }, { latencyMs: HOUR_MS });
    await pass(500);
    controller.abort('enough');
    await pass(0);
    expect(reading.end).toEqual({ error: 'enough' });
    expect(state.isClosed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a signal that has aborted → rejects, and sends nothing', async () => {
    const { reading, polls } = start(nothingNew, ['a'], { signal: AbortSignal.abort('enough') });
    await pass(0);
    expect(reading.end).toEqual({ error: 'enough' });
    expect(polls).toEqual([]);
  });

  test('leaving the loop → requests under way are aborted, the source is closed, no timer', async () => {
    const { state, ids } = countedIds();
    const latencyMs = (_poll: number, id: string) => (id === 'tracker-0' ? 0 : HOUR_MS);
    const { client, polls } = polledService(nothingNew, { latencyMs });
    for await (const { id } of client.trackers.resultsMany(ids)) {
      expect(id).toBe('tracker-0');
      break;
    }
    const sent = polls.length;
    await pass(HOUR_MS);
    expect(state.isClosed).toBe(true);
    expect(polls).toHaveLength(sent);
    expect(polls.filter(({ endedAt }) => endedAt !== undefined)).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the requests', () => {
  test('searchBy, timeoutMs and headers → used for each request', async () => {
    const options = { searchBy: 'clientTrackerId', timeoutMs: 500 } as const;
    const { reading, requests } = start(nothingNew, ['order/1', 'order/2'], options, { latencyMs: 1000 });
    await pass(500);
    expect(requests).toMatchObject([
      { id: 'order/1', query: '?searchBy=clientTrackerId' },
      { id: 'order/2', query: '?searchBy=clientTrackerId' },
    ]);
    expect(reading.items).toMatchObject([
      { error: { name: 'TimeoutError' } },
      { error: { name: 'TimeoutError' } },
    ]);
  });

  test.each<[string, StubResponse | Error, number]>([
    ['a failure that comes at once', BROKEN, 2],
    ['a 429 that asks for half an hour', { status: 429, headers: { 'retry-after': '1800' } }, 2],
    ['a 503 that asks for a minute', { status: 503, headers: { 'retry-after': '60' } }, 1],
  ])('%s → as many requests as in a poll', async (_, response, requests) => {
    const { polls, reading } = start(
      (poll) => (poll === 1 ? response : nothingNew()),
      ['a'],
      {},
      { retry: undefined, rateLimit: undefined },
    );
    await pass(HOUR_MS);
    expect(polls).toHaveLength(requests);
    expect(reading.items[0]?.error === undefined).toBe(requests === 2);
  });

  test('failed requests, with retries → no line in the log, because each error is in its item', async () => {
    const { warn, info, reading } = start(() => BROKEN, makeIds(5), {}, { retry: undefined });
    await pass(60_000);
    expect(reading.items).toHaveLength(5);
    expect([warn.mock.calls, info.mock.calls]).toEqual([[], []]);
  });
});

describe('options', () => {
  test.each([
    ['concurrency', 0, /^Expected `concurrency` to be/],
    ['intervalMs', 5000, /^Unknown option `intervalMs`; known options: /],
    ['searchBy', 'number', /^Expected `searchBy` to be/],
    ['signal', new AbortController(), /^Expected `signal` to be an AbortSignal/],
  ])('%s: %s → a ConfigurationError at once', (name, value, message) => {
    const { client } = polledService(nothingNew);
    expect(() => client.trackers.resultsMany(['a'], { [name]: value })).toThrow(message);
  });

  test.each([
    ['a text', 'abc'],
    ['a promise of a list', Promise.resolve(['a'])],
    ['undefined', undefined as never],
  ])('ids that are %s → a ConfigurationError at once', (_, ids) => {
    const { client } = polledService(nothingNew);
    // @ts-expect-error -- no list of ids
    expect(() => client.trackers.resultsMany(ids)).toThrow(
      /^Expected `ids` to be an iterable|^`ids` is a Promise; await it/,
    );
  });
});
