import { describe, expect, test } from 'vitest';
import { networkFailure, type StubResponse } from '../../support/make-client.ts';
import { BROKEN, makeIds, NOT_READY, nothingNew, pass, startPoll, startPollMany } from '../polled-service.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The real limiter and the default retries. */
const REAL = { rateLimit: undefined, retry: undefined };

const waitFor = (seconds: number, status = 503): StubResponse => ({
  status,
  body: '',
  headers: { 'retry-after': `${seconds}` },
});

describe('one poll a minute, 40 minutes, as many failing trackers as slots → each other tracker is polled 36 times', () => {
  interface Failing {
    readonly trackers: number;
    /** Trackers that keep failing, and the slots. */
    readonly failing: number;
    readonly latencyMs?: number;
    readonly response?: StubResponse;
    readonly record?: StubResponse;
  }

  test.each<[string, Failing]>([
    ['requests that hang', { trackers: 100, failing: 10, latencyMs: HOUR_MS }],
    ['a 504 after 25 seconds', { trackers: 20, failing: 2, latencyMs: 25_000, response: { status: 504 } }],
    ['503 with a Retry-After of 30 seconds', { trackers: 20, failing: 2, response: waitFor(30) }],
    [
      '429 with a Retry-After of an hour for the record',
      { trackers: 20, failing: 2, response: NOT_READY, record: waitFor(3600, 429) },
    ],
  ])(
    '%s',
    async (_, { trackers, failing, latencyMs = 50, response = nothingNew(), record = nothingNew() }) => {
      const [failingIds, otherIds] = [makeIds(trackers).slice(0, failing), makeIds(trackers).slice(failing)];
      const { listStarts } = startPollMany(
        (_poll, id) => (failingIds.includes(id) ? response : nothingNew()),
        makeIds(trackers),
        { intervalMs: MINUTE_MS, concurrency: failing, maxConsecutiveErrors: Number.POSITIVE_INFINITY },
        {
          ...REAL,
          latencyMs: (_poll, id) => (failingIds.includes(id) ? latencyMs : 50),
          respondWithRecord: () => record,
        },
      );
      await pass(40 * MINUTE_MS);
      expect(Math.min(...otherIds.map((id) => listStarts(id).length))).toBeGreaterThanOrEqual(36);
    },
  );
});

describe('retries of a poll', () => {
  test.each<[string, number, StubResponse | Error, object]>([
    ['a request that times out after one second', HOUR_MS, nothingNew(), { timeoutMs: 1000 }],
    ['a response with 500 after 10 seconds', 10_000, BROKEN, {}],
    ['a connection that breaks after 10 seconds', 10_000, networkFailure('ECONNRESET'), {}],
    ['a connection that cannot be made in 10 seconds', 10_000, networkFailure('UND_ERR_CONNECT_TIMEOUT'), {}],
  ])('%s → not sent again before the next poll', async (_, latencyMs, response, options) => {
    const { reading, listStarts } = startPoll(
      (poll) => (poll === 1 ? response : nothingNew()),
      { intervalMs: MINUTE_MS, ...options },
      { retry: undefined, latencyMs: (poll) => (poll === 1 ? latencyMs : 0) },
    );
    await pass(2 * MINUTE_MS);
    expect(listStarts()).toEqual([MINUTE_MS, 2 * MINUTE_MS]);
    expect(reading.items.map(({ poll }) => poll)).toEqual([2]);
  });

  test.each([
    [4, { items: [{ poll: 1 }], end: undefined }],
    [5, { items: [], end: { error: { name: 'TrackingError' } } }],
  ])('%d failures that come at once → four retries in the same poll', async (failures, outcome) => {
    const options = { intervalMs: HOUR_MS, maxConsecutiveErrors: 1 };
    const respondTo = (poll: number) => (poll <= failures ? BROKEN : nothingNew());
    const { reading, polls } = startPoll(respondTo, options, { retry: undefined });
    await pass(HOUR_MS + MINUTE_MS);
    expect(polls).toHaveLength(5);
    expect(reading).toMatchObject(outcome);
  });

  test.each([
    ['of the client', { retry: { retries: 1 } }, {}],
    ['of the poll', { retry: undefined }, { retry: { retries: 1 } }],
  ])('retries %s → this number of retries is used', async (_, client, poll) => {
    const options = { intervalMs: MINUTE_MS, maxConsecutiveErrors: 1, ...poll };
    const { polls } = startPoll(() => BROKEN, options, client);
    await pass(2 * MINUTE_MS);
    expect(polls).toHaveLength(2);
  });
});

describe('Retry-After', () => {
  test('429 with an hour → the poll waits, and does not count as failed', async () => {
    const respondTo = (poll: number) => (poll === 1 ? waitFor(3600, 429) : nothingNew());
    const { reading } = startPoll(respondTo, { maxConsecutiveErrors: 1 }, REAL);
    await pass(HOUR_MS + 3000);
    expect(reading.items[0]).toMatchObject({ poll: 1 });
    expect(reading.end).toBeUndefined();
  });

  test('503 with a time of many years → the next poll after the longest interval', async () => {
    const respondTo = (poll: number) => (poll === 1 ? waitFor(1e12) : nothingNew());
    const { listStarts } = startPoll(respondTo, { initialDelayMs: 0, intervalMs: MINUTE_MS }, REAL);
    await pass(2 ** 31 - 1);
    expect(listStarts()).toEqual([0, 2 ** 31 - 1]);
  });

  test('429 with a longer time than maxRetryAfterMs → the next poll comes after that time', async () => {
    const respondTo = (poll: number) => (poll === 1 ? waitFor(150, 429) : nothingNew());
    const options = { initialDelayMs: 0, intervalMs: MINUTE_MS, retry: { maxRetryAfterMs: 1000 } };
    const { listStarts } = startPoll(respondTo, options, REAL);
    await pass(3 * MINUTE_MS - 1);
    expect(listStarts()).toEqual([0, 150_000]);
  });
});
