import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { QuotaExceededError, RateLimitError } from '../../src/errors.ts';
import { makeClient, rejectionOf, type Step } from '../support/make-client.ts';

const LIST: Step = { body: { data: { couriers: [] } } };
const LONG_PAUSE: Step = { status: 429, headers: { 'retry-after': '3600' }, body: { errors: [] } };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('a pause longer than `maxRetryAfterMs`', () => {
  test('the next call of the same endpoint → rejects at once, nothing sent', async () => {
    const { client, requests } = makeClient([LONG_PAUSE, LIST], { rateLimit: undefined });
    await rejectionOf(client.couriers.list());
    const error = await rejectionOf(client.couriers.list());
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ retryAfterMs: 3_600_000, attempts: 0 });
    expect(requests).toHaveLength(1);
  });

  test('calls that wait already → reject with the call that met it, nothing sent', async () => {
    const { client, requests } = makeClient([LONG_PAUSE, LIST], { rateLimit: undefined });
    const errors = await Promise.all([1, 2, 3].map(() => rejectionOf(client.couriers.list())));
    expect(errors.every((error) => error instanceof RateLimitError)).toBe(true);
    expect(requests).toHaveLength(1);
  });

  test('another endpoint → sent as ever', async () => {
    const { client } = makeClient([LONG_PAUSE, { body: { data: { trackers: [] } } }], {
      rateLimit: undefined,
    });
    await rejectionOf(client.couriers.list());
    await expect(client.trackers.list()).resolves.toMatchObject({ trackers: [] });
  });

  test('once it is nearly over → the next call waits for its end and is sent', async () => {
    const { client, requests } = makeClient([LONG_PAUSE, LIST], { rateLimit: undefined });
    await rejectionOf(client.couriers.list());
    await vi.advanceTimersByTimeAsync(3_590_000);
    const waiting = client.couriers.list().then((couriers) => couriers.length);
    await vi.advanceTimersByTimeAsync(9000);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2000);
    await expect(waiting).resolves.toBe(0);
  });
});

describe('a limit of the caller', () => {
  const announcing = (limit: string): Step => ({ ...LIST, headers: { 'ratelimit-limit': limit } });

  test('the service announces more → the limit stays', async () => {
    const { client } = makeClient(announcing('10'), { rateLimit: { limits: { 'couriers.list': 5 } } });
    await client.couriers.list();
    expect(client.rateLimits()['couriers.list'].limit).toBe(5);
  });

  test('the service announces less → the limit falls', async () => {
    const { client } = makeClient(announcing('2'), { rateLimit: { limits: { 'couriers.list': 5 } } });
    await client.couriers.list();
    expect(client.rateLimits()['couriers.list'].limit).toBe(2);
  });
});

describe('totalTimeoutMs', () => {
  test('the event loop is late after a back-off → TimeoutError, no further request', async () => {
    const { client, requests } = makeClient([{ status: 503 }, LIST], { retry: { minDelayMs: 100 } });
    const failing = rejectionOf(client.couriers.list({ totalTimeoutMs: 200 }));
    vi.spyOn(Math, 'random').mockReturnValue(0.9);
    await vi.advanceTimersByTimeAsync(0);
    const late = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1000);
    await vi.advanceTimersByTimeAsync(150);
    late.mockRestore();
    expect(await failing).toMatchObject({ name: 'TimeoutError', phase: 'backoff' });
    expect(requests).toHaveLength(1);
  });
});

describe('a reason phrase', () => {
  test.each([
    ['All is well', 'All is well'],
    ['Gr\u{1f600}n', ''],
  ])('%j, by withResponse → %j: one that a Response refuses is left out', async (phrase, shown) => {
    const answer = () => {
      const response = new Response('{"data":{"couriers":[]}}', {
        headers: { 'content-type': 'application/json' },
      });
      return Object.defineProperty(response, 'statusText', { value: phrase });
    };
    const { client } = makeClient(answer);
    const { response } = await client.couriers.list().withResponse();
    expect(response.statusText).toBe(shown);
  });
});

describe('a 429 with a code', () => {
  test('a code that is not about a quota → waited out like any 429', async () => {
    const refused: Step = { status: 429, body: { errors: [{ code: 'request_conflict' }] } };
    const { client, requests } = makeClient([refused, LIST]);
    const listing = client.couriers.list().then((couriers) => couriers.length);
    await vi.advanceTimersByTimeAsync(1000);
    await expect(listing).resolves.toBe(0);
    expect(requests).toHaveLength(2);
  });

  test('quota_limit_reached → QuotaExceededError, not sent again', async () => {
    const { client, requests } = makeClient({
      status: 429,
      body: { errors: [{ code: 'quota_limit_reached' }] },
    });
    expect(await rejectionOf(client.couriers.list())).toBeInstanceOf(QuotaExceededError);
    expect(requests).toHaveLength(1);
  });
});

describe('a queue that is full', () => {
  const full = { rateLimit: { maxQueue: 0 } };

  test.each([
    [503, 'ServerError'],
    [429, 'RateLimitError'],
  ])('when a call answered with %d is tried again → its %s', async (status, name) => {
    const { client, requests } = makeClient({ status, headers: { 'x-request-id': 'req-1' } }, full);
    const failing = rejectionOf(client.couriers.list());
    await vi.advanceTimersByTimeAsync(0);
    expect(await failing).toMatchObject({ name, requestId: 'req-1' });
    expect(requests).toHaveLength(1);
  });

  test('before anything was sent → QueueFullError', async () => {
    const { client } = makeClient(LIST, full);
    await client.couriers.list();
    expect(await rejectionOf(client.couriers.list())).toMatchObject({ name: 'QueueFullError' });
  });
});
