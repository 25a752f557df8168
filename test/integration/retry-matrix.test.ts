import { afterEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { rejectionOf } from '../support/make-client.ts';
import { answer, type Behaviour, refusedBaseUrl, reset, silence } from '../support/scripted-server.ts';
import {
  settleWithStoppedTimers,
  stoppedClientFor,
  timeOutEveryAttempt,
  wireClient,
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
const COLUMNS = Object.entries(CALLS);

const errorBody = (code: string) => ({ errors: [{ code }], data: null });
const now = { 'retry-after': '0' };
const SAFE: readonly string[] = ['safe (POST)', 'safe (GET)', 'safe (PATCH)'];
const REPEATABLE: readonly string[] = [...SAFE, 'bulk with retryAmbiguous'];

const NO_JSON = 'a 200 that is no JSON';

const once = () => ONCE;
const ifRepeatable = (column: string) => (REPEATABLE.includes(column) ? ALL : ONCE);
const ifSafe = (column: string) => (SAFE.includes(column) ? ALL : ONCE);

const MATRIX: [failure: string, behaviour: Behaviour, requests: (column: string) => number][] = [
  ['429', answer(429, errorBody('too_many'), now), () => ALL],
  ['408', answer(408, errorBody('timeout')), ifRepeatable],
  ['409 request_conflict', answer(409, errorBody('request_conflict')), ifSafe],
  ['409 tracker_conflict', answer(409, errorBody('tracker_conflict')), once],
  ['503', answer(503, '<html>', { 'content-type': 'text/html' }), ifRepeatable],
  ['a reset connection', reset, ifRepeatable],
  ['400', answer(400, errorBody('validation_error')), once],
  ['a redirect', answer(302, '', { location: '/' }), once],
  [NO_JSON, answer(200, '<p>'), once],
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

test('a timeout and then a success → the result', async () => {
  const script = [silence, answer(200, { data: { trackings: [{ events: [] }] } })];
  const options = { ...OPTIONS, timeoutMs: 5_000 };
  const { client, server, untilRequested } = await stoppedClientFor(script, options);
  const results = client.trackers.results('t').then((tracking) => tracking);
  await untilRequested();
  vi.advanceTimersByTime(5_000);
  expect(await settleWithStoppedTimers(results)).toEqual({ events: [] });
  expect(server.requests).toHaveLength(2);
});
