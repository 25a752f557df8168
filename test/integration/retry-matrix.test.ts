import { afterEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { API_KEY, rejectionOf } from '../support/make-client.ts';
import { answer, type Behaviour, refusedBaseUrl, reset, silence } from '../support/scripted-server.ts';
import {
  settleWithStoppedTimers,
  stoppedClientFor,
  timeOutEveryAttempt,
  wireClient,
  wireClientFor,
} from '../support/wire-client.ts';

const RETRIES = 2;
const ONCE = 1;
const ALL = 1 + RETRIES;

const input = { trackingNumber: 'LA680658838NL' };
type Call = (client: TrackingClient) => PromiseLike<unknown>;
const CALLS = {
  'safe (POST)': (client) => client.trackers.create(input),
  'safe (GET)': (client) => client.trackers.results('t'),
  'safe (PATCH)': (client) => client.trackers.update('t', { isSubscribed: false }),
  bulk: (client) => client.trackers.createBulk([input]),
  'bulk with retryAmbiguous': (client) => client.trackers.createBulk([input], { retryAmbiguous: true }),
  billed: (client) => client.tracking.search(input),
  replay: (client) => client.trackers.resendWebhookEvents('t'),
} satisfies Record<string, Call>;
type Column = keyof typeof CALLS;
const COLUMNS = Object.entries(CALLS);

const errorBody = (code: string) => ({ errors: [{ code }], data: null });
const now = { 'retry-after': '0' };
const SAFE: readonly string[] = ['safe (POST)', 'safe (GET)', 'safe (PATCH)'];
const REPEATABLE: readonly string[] = [...SAFE, 'bulk with retryAmbiguous'];

const NO_JSON = 'a 200 that is no JSON';

const MATRIX: [failure: string, behaviour: Behaviour, requests: (column: string) => number][] = [
  ['429', answer(429, errorBody('too_many'), now), () => ALL],
  [
    '429 in plain text',
    answer(429, 'Too Many Requests', { ...now, 'content-type': 'text/plain' }),
    () => ALL,
  ],
  ['408', answer(408, errorBody('timeout')), (column) => (REPEATABLE.includes(column) ? ALL : ONCE)],
  [
    '409 request_conflict',
    answer(409, errorBody('request_conflict')),
    (column) => (SAFE.includes(column) ? ALL : ONCE),
  ],
  ['409 tracker_conflict', answer(409, errorBody('tracker_conflict')), () => ONCE],
  ['500', answer(500, errorBody('processing_error')), (column) => (REPEATABLE.includes(column) ? ALL : ONCE)],
  [
    '503',
    answer(503, '<html>', { 'content-type': 'text/html' }),
    (column) => (REPEATABLE.includes(column) ? ALL : ONCE),
  ],
  ['a reset connection', reset, (column) => (REPEATABLE.includes(column) ? ALL : ONCE)],
  ['400', answer(400, errorBody('validation_error')), () => ONCE],
  ['401', answer(401, errorBody('auth_invalid_api_key')), () => ONCE],
  ['403', answer(403, errorBody('forbidden')), () => ONCE],
  ['404', answer(404, errorBody('tracker_not_found')), () => ONCE],
  ['422', answer(422, errorBody('no_active_subscription')), () => ONCE],
  ['a redirect', answer(302, '', { location: '/' }), () => ONCE],
  [NO_JSON, answer(200, '<p>'), () => ONCE],
];

const OPTIONS: TrackingClientOptions = { retry: { retries: RETRIES } };

afterEach(() => {
  vi.useRealTimers();
});

describe.each(MATRIX)('%s', (failure, behaviour, expected) => {
  test.each(COLUMNS)('%s → as many requests on the wire as its class allows', async (column, call) => {
    const { client, server } = await stoppedClientFor(behaviour, OPTIONS);
    // A resend takes any success for one.
    const isAccepted = failure === NO_JSON && column === 'replay';
    await settleWithStoppedTimers(isAccepted ? call(client) : rejectionOf(call(client)));
    expect(server.requests).toHaveLength(expected(column));
  });
});

describe('a timeout', () => {
  test.each(COLUMNS)('%s → as many requests on the wire as its class allows', async (column, call) => {
    const { client, server } = await stoppedClientFor(silence, OPTIONS);
    const error = await timeOutEveryAttempt(server, rejectionOf(call(client)));
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'headers' });
    expect(server.requests).toHaveLength(REPEATABLE.includes(column) ? ALL : ONCE);
  });
});

describe('a refused connection', () => {
  test.each(COLUMNS)('%s → tried again: nothing can have been carried out', async (_column, call) => {
    let attempts = 0;
    const onRequest = () => {
      attempts += 1;
    };
    const client = wireClient(await refusedBaseUrl(), { ...OPTIONS, hooks: { onRequest } });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const error = await settleWithStoppedTimers(rejectionOf(call(client)));
    expect(error).toMatchObject({ name: 'ConnectionError', neverSent: true });
    expect(attempts).toBe(ALL);
  });
});

describe('recovery', () => {
  const OK: Record<Column, Behaviour> = {
    'safe (POST)': answer(201, {
      data: {
        tracker: {
          trackerId: 't',
          trackingNumber: 'A',
          isTracked: true,
          isSubscribed: true,
          createdAt: '2026-03-01T11:09:00.000Z',
        },
      },
    }),
    'safe (GET)': answer(200, { data: { trackings: [{ events: [] }] } }),
    'safe (PATCH)': answer(200, {
      data: {
        tracker: {
          trackerId: 't',
          trackingNumber: 'A',
          isTracked: true,
          isSubscribed: true,
          createdAt: '2026-03-01T11:09:00.000Z',
        },
      },
    }),
    bulk: answer(201, { status: 'success' }),
    'bulk with retryAmbiguous': answer(201, { status: 'success' }),
    billed: answer(201, { data: { trackings: [] } }),
    replay: answer(201, { data: { summary: { totalResent: 1 } } }),
  };

  test.each(COLUMNS)('%s: 429 and then a success → the result, after two requests', async (column, call) => {
    // `COLUMNS` holds the entries of `CALLS`, so its names are columns.
    const script = [answer(429, 'slow down', now), OK[column as Column]];
    const { client, server } = await stoppedClientFor(script, OPTIONS);
    await expect(settleWithStoppedTimers<unknown>(call(client))).resolves.toBeDefined();
    expect(server.requests).toHaveLength(2);
  });

  test('5xx and 429 in turns → both use up the one budget', async () => {
    const refuse = answer(429, 'slow down', now);
    const fail = answer(500, 'oops');
    const { client, server } = await stoppedClientFor([fail, refuse, fail, OK['safe (GET)']], OPTIONS);
    const error = await settleWithStoppedTimers(rejectionOf(client.trackers.results('t')));
    expect(error).toMatchObject({ name: 'ServerError', attempts: 3 });
    expect(server.requests).toHaveLength(3);
  });

  test('a timeout and then a success → the result', async () => {
    const script = [silence, OK['safe (GET)']];
    const { client, server, untilRequested } = await stoppedClientFor(script, {
      ...OPTIONS,
      timeoutMs: 5_000,
    });
    const results = client.trackers.results('t').then((tracking) => tracking);
    await untilRequested();
    vi.advanceTimersByTime(5_000);
    expect(await settleWithStoppedTimers(results)).toEqual({ events: [] });
    expect(server.requests).toHaveLength(2);
  });

  test('every attempt → key and body as in the first', async () => {
    const script = [reset, answer(500, ''), OK['safe (POST)']];
    const { client, server } = await stoppedClientFor(script, OPTIONS);
    await settleWithStoppedTimers(client.trackers.create(input));
    expect(server.requests.map(({ body }) => body)).toEqual(Array(3).fill(JSON.stringify(input)));
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(3).fill(`Bearer ${API_KEY}`),
    );
  });
});

describe('waits', () => {
  test.each([429, 503])(
    '%d with a Retry-After longer than maxRetryAfterMs → rejects at once',
    async (status) => {
      const { client, server } = await wireClientFor(
        answer(status, 'later', { 'retry-after': '3600' }),
        OPTIONS,
      );
      expect(await rejectionOf(client.trackers.results('t'))).toMatchObject({
        name: status === 429 ? 'RateLimitError' : 'ServerError',
        retryAfterMs: 3_600_000,
        attempts: 1,
      });
      expect(server.requests).toHaveLength(1);
    },
  );

  test.each([429, 503])('%d with a Retry-After of 1 s → the next request no sooner', async (status) => {
    const arrivals: number[] = [];
    const at =
      (behaviour: Behaviour): Behaviour =>
      (response, request) => {
        arrivals.push(performance.now());
        behaviour(response, request);
      };
    const ok = answer(200, { data: { trackings: [{ events: [] }] } });
    const later = answer(status, 'later', { 'retry-after': '1' });
    const { client } = await wireClientFor([at(later), at(ok)], OPTIONS);
    await client.trackers.results('t');
    const [first = Number.NaN, second = Number.NaN] = arrivals;
    expect(second - first).toBeGreaterThanOrEqual(990);
  });
});
