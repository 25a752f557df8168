import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RateLimitError, ServerError } from '../../src/errors.ts';
import type { RetryInfo } from '../../src/observability/hooks.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { type Answer, makeClient, networkFailure, rejectionOf, type Step } from '../support/make-client.ts';

const OK: Answer = { body: { data: { couriers: [] } } };
const TOO_MANY = (retryAfter: string): Answer => ({
  status: 429,
  body: '',
  headers: { 'retry-after': retryAfter },
});

beforeEach(() => {
  vi.useFakeTimers({ now: 1_750_000_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Lists couriers, moves the time until the call is over, and tells how long each wait was. */
async function run(script: Step[], options: TrackingClientOptions = {}) {
  const sentAt: number[] = [];
  const delays: number[] = [];
  const { client, requests } = makeClient(script, {
    retry: { minDelayMs: 100, maxDelayMs: 1_000 },
    hooks: {
      onRequest: () => sentAt.push(performance.now()),
      onRetry: (info: RetryInfo) => delays.push(info.delayMs),
    },
    ...options,
  });
  const startedAt = performance.now();
  const call = client.couriers.list().withResponse();
  const settled = call.then(
    ({ attempts }) => ({ attempts, error: undefined }),
    (error: unknown) => ({ attempts: undefined, error }),
  );
  await vi.runAllTimersAsync();
  const { attempts, error } = await settled;
  return { attempts, error, requests, delays, sentAt: sentAt.map((at) => at - startedAt) };
}

describe('back-off', () => {
  test('failures → each wait up to twice the one before, with full jitter', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const { sentAt, attempts } = await run([
      { status: 500 },
      networkFailure('ECONNRESET'),
      { status: 503 },
      OK,
    ]);
    expect(attempts).toBe(4);
    expect(sentAt).toEqual([0, 50, 150, 350]);
  });

  test('more failures than retries → the last error, after 1 + retries requests', async () => {
    const { error, requests } = await run([{ status: 500 }], { retry: { retries: 2, minDelayMs: 1 } });
    expect(error).toMatchObject({ name: 'ServerError', attempts: 3 });
    expect(requests).toHaveLength(3);
  });

  test('retry: false → one request', async () => {
    const { error, requests } = await run([{ status: 500 }], { retry: false });
    expect(error).toMatchObject({ name: 'ServerError', attempts: 1 });
    expect(requests).toHaveLength(1);
  });

  test('every request of a call → the same body and headers', async () => {
    vi.useRealTimers();
    const { client, requests } = makeClient([
      { status: 500 },
      { body: { data: { tracker: { trackerId: 't', trackingNumber: 'A', isTracked: true } } } },
    ]);
    await client.trackers.create({ trackingNumber: 'LA680658838NL' }, { headers: { 'x-tenant': 'a' } });
    const [first, second] = requests;
    expect(first?.body).toBe('{"trackingNumber":"LA680658838NL"}');
    expect(second?.body).toBe(first?.body);
    expect([...(second?.headers ?? [])]).toEqual([...(first?.headers ?? [])]);
  });
});

describe('Retry-After', () => {
  test('429 with 2 s → the next attempt after 2 s', async () => {
    const { sentAt, delays } = await run([TOO_MANY('2'), OK]);
    expect(sentAt).toEqual([0, 2_000]);
    expect(delays).toEqual([2_000]);
  });

  test('429 with 0 → the next attempt at once', async () => {
    expect((await run([TOO_MANY('0'), OK])).sentAt).toEqual([0, 0]);
  });

  test('429 without any header → one window', async () => {
    expect((await run([{ status: 429, body: 'Too Many Requests' }, OK])).sentAt).toEqual([0, 1_000]);
  });

  test('503 with 3 s → the next attempt after 3 s, not after the back-off', async () => {
    expect((await run([{ status: 503, headers: { 'retry-after': '3' } }, OK])).sentAt).toEqual([0, 3_000]);
  });

  test('503 with reset headers only, which say nothing about it → the back-off', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const headers = { 'ratelimit-reset': '9' };
    expect((await run([{ status: 503, headers }, OK])).sentAt).toEqual([0, 50]);
  });

  test('429 with exactly maxRetryAfterMs → waited for', async () => {
    expect((await run([TOO_MANY('60'), OK])).sentAt).toEqual([0, 60_000]);
  });

  test.each([429, 503])(
    '%d with more than maxRetryAfterMs → rejects at once with the delay',
    async (status) => {
      const { error, requests, sentAt } = await run([{ status, headers: { 'retry-after': '61' } }, OK]);
      expect(error).toBeInstanceOf(status === 429 ? RateLimitError : ServerError);
      expect(error).toMatchObject({ retryAfterMs: 61_000, attempts: 1 });
      expect(requests).toHaveLength(1);
      expect(sentAt).toEqual([0]);
    },
  );
});

describe('the cap of 429s', () => {
  test('429s → use up no back-off', async () => {
    const script = [TOO_MANY('0'), { status: 500 }, TOO_MANY('0'), { status: 500 }, TOO_MANY('0'), OK];
    const { attempts } = await run(script, { retry: { retries: 2, minDelayMs: 0 } });
    expect(attempts).toBe(6);
  });

  test('back-offs → use up no 429', async () => {
    const script = [{ status: 500 }, { status: 500 }, TOO_MANY('0'), OK];
    const { attempts } = await run(script, { retry: { maxRateLimitRetries: 1, minDelayMs: 0 } });
    expect(attempts).toBe(4);
  });

  test('5xx and 429 mixed, back-offs used up → the last error', async () => {
    const script = [{ status: 500 }, TOO_MANY('0'), { status: 502 }, TOO_MANY('0'), { status: 503 }];
    const { error, requests } = await run(script, { retry: { retries: 2, minDelayMs: 0 } });
    expect(error).toMatchObject({ name: 'ServerError', status: 503, attempts: 5 });
    expect(requests).toHaveLength(5);
  });

  test('more 429s than maxRateLimitRetries → RateLimitError', async () => {
    const { error, requests } = await run([TOO_MANY('0')], { retry: { maxRateLimitRetries: 4 } });
    expect(error).toMatchObject({ name: 'RateLimitError', attempts: 5, retryAfterMs: 0 });
    expect(requests).toHaveLength(5);
  });

  test('20 of them by default → the 21st request succeeds', async () => {
    const { attempts } = await run([...Array(20).fill(TOO_MANY('0')), OK]);
    expect(attempts).toBe(21);
  });

  test('retry: false → a 429 rejects at once', async () => {
    const { error, requests } = await run([TOO_MANY('0')], { retry: false });
    expect(error).toBeInstanceOf(RateLimitError);
    expect(requests).toHaveLength(1);
  });
});

describe('totalTimeoutMs', () => {
  test('a wait longer than what is left → TimeoutError at once, the failure as its cause', async () => {
    const { error, requests } = await run([{ status: 503, headers: { 'retry-after': '5' } }], {
      totalTimeoutMs: 4_000,
    });
    expect(error).toMatchObject({
      name: 'TimeoutError',
      phase: 'backoff',
      timeoutMs: 4_000,
      message:
        'GET https://api.example.test/public/v1/couriers ran out of `totalTimeoutMs` (4000 ms) while waiting to try again',
      cause: { name: 'ServerError', status: 503 },
    });
    expect(requests).toHaveLength(1);
  });

  test('a wait exactly as long as what is left → TimeoutError at once', async () => {
    const { error, delays } = await run([{ status: 503, headers: { 'retry-after': '4' } }], {
      totalTimeoutMs: 4_000,
    });
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'backoff' });
    expect(delays).toEqual([]);
  });

  test('a wait shorter than what is left → waited for', async () => {
    const { attempts } = await run([{ status: 503, headers: { 'retry-after': '3' } }, OK], {
      totalTimeoutMs: 4_000,
    });
    expect(attempts).toBe(2);
  });

  test('it ends in an attempt → TimeoutError, and no further attempt', async () => {
    const { error, requests } = await run([() => new Promise(() => {})], { totalTimeoutMs: 4_000 });
    expect(error).toMatchObject({
      name: 'TimeoutError',
      phase: 'headers',
      timeoutMs: 4_000,
      message:
        'GET https://api.example.test/public/v1/couriers ran out of `totalTimeoutMs` (4000 ms) while waiting for an answer',
    });
    expect(requests).toHaveLength(1);
  });

  test('it ends in a later attempt → the attempt gets only what is left', async () => {
    const slow = () => new Promise<Response>(() => {});
    const { error, sentAt } = await run([{ status: 503, headers: { 'retry-after': '3' } }, slow], {
      totalTimeoutMs: 4_000,
    });
    expect(error).toMatchObject({ name: 'TimeoutError', timeoutMs: 4_000 });
    expect(sentAt).toEqual([0, 3_000]);
  });

  test('it ends in a later attempt → no cause: the failure before it was answered', async () => {
    const slow = () => new Promise<Response>(() => {});
    const { error } = await run([{ status: 503 }, slow], { totalTimeoutMs: 4_000 });
    expect(error).toMatchObject({ name: 'TimeoutError' });
    expect(error).not.toHaveProperty('cause');
  });

  test('its timer fires a moment early → still no further attempt', async () => {
    const { client, requests } = makeClient(() => new Promise<Response>(() => {}), { totalTimeoutMs: 4_000 });
    const rejection = rejectionOf(client.couriers.list());
    const realNow = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => realNow() - 2);
    await vi.runAllTimersAsync();
    expect(await rejection).toMatchObject({ name: 'TimeoutError', timeoutMs: 4_000 });
    expect(requests).toHaveLength(1);
  });
});

describe('timeoutMs', () => {
  const never = () => new Promise<Response>(() => {});

  test('no answer in time → a new attempt, each with the whole time', async () => {
    const { error, requests } = await run([never], {
      timeoutMs: 2_000,
      retry: { retries: 1, minDelayMs: 0 },
    });
    expect(error).toMatchObject({
      name: 'TimeoutError',
      phase: 'headers',
      timeoutMs: 2_000,
      message:
        'GET https://api.example.test/public/v1/couriers ran out of `timeoutMs` (2000 ms) while waiting for an answer',
    });
    expect(requests).toHaveLength(2);
  });

  test.each([
    ['couriers.list', 30_000],
    ['tracking.search', 90_000],
    ['trackers.track', 90_000],
    ['a raw request to the path of trackers.track', 90_000],
    ['a raw request to another path', 30_000],
  ])('%s without options → %d ms', async (name, ms) => {
    const { client } = makeClient(never, { retry: false });
    const input = { trackingNumber: 'LA680658838NL' };
    const call = {
      'couriers.list': () => client.couriers.list(),
      'tracking.search': () => client.tracking.search(input),
      'trackers.track': () => client.trackers.track(input),
      'a raw request to the path of trackers.track': () =>
        client.request({ method: 'POST', path: '/trackers/track' }),
      'a raw request to another path': () => client.request({ method: 'POST', path: '/reports' }),
    }[name];
    const settled = vi.fn();
    call?.().catch(settled);
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(settled).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ name: 'TimeoutError', timeoutMs: ms }),
    );
  });

  test('the body takes too long → TimeoutError of that phase', async () => {
    const stalled = () =>
      new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{')) }), {
        headers: { 'content-type': 'application/json' },
      });
    const { error } = await run([stalled], { timeoutMs: 2_000, retry: false });
    expect(error).toMatchObject({
      name: 'TimeoutError',
      phase: 'body',
      message: expect.stringContaining('reading the answer'),
    });
  });

  test('a fetch that ignores its signal and answers too late → that answer counts for nothing', async () => {
    const answered: number[] = [];
    const late = () =>
      new Promise<Response>((resolve) => {
        setTimeout(() => resolve(new Response('{}', { status: 500 })), 3_000);
      });
    const { attempts } = await run(
      [late, () => new Promise((resolve) => setTimeout(() => resolve(Response.json({ data: [] })), 1_500))],
      {
        timeoutMs: 2_000,
        retry: { minDelayMs: 0 },
        hooks: { onResponse: (info) => answered.push(info.attempt) },
      },
    );
    expect(attempts).toBe(2);
    expect(answered).toEqual([2]);
  });

  test('a fetch that ignores its signal and answers too late → the next attempt still waits for its headers', async () => {
    const late = () =>
      new Promise<Response>((resolve) => {
        setTimeout(() => resolve(Response.json({ data: [] })), 3_000);
      });
    const script = [late, () => new Promise<Response>(() => {})];
    const { error } = await run(script, { timeoutMs: 2_000, retry: { retries: 1, minDelayMs: 0 } });
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'headers' });
  });

  test('after any outcome → no timer is left', async () => {
    await run([OK]);
    await run([{ status: 404 }]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
