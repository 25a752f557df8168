import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { RetryInfo } from '../../../src/observability/hooks.ts';
import type { TrackingClientOptions } from '../../../src/options.ts';
import { TRACKER } from '../../contract/support/samples.ts';
import { makeClient, networkFailure, type Step, type StubResponse } from '../../support/make-client.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';

const OK: StubResponse = { body: { data: { couriers: [] } } };
const failing = (status: number, retryAfter?: string): StubResponse => ({
  status,
  body: '',
  headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
});

let draw = vi.spyOn(Math, 'random');
beforeEach(() => {
  vi.useFakeTimers();
  // The smallest random number: p-retry waits 500 ms, then 1, 2, 4 and 8 s.
  draw = vi.spyOn(Math, 'random').mockReturnValue(0);
});
/** Lists couriers in virtual time; returns the time of each request and the arguments of `onRetry`. */
async function run(script: Step | Step[], options: TrackingClientOptions = {}) {
  const sentAt: number[] = [];
  const toldMs: (number | undefined)[] = [];
  const waitsMs: number[] = [];
  const startedAt = performance.now();
  const { client, requests } = makeClient(script, {
    hooks: {
      onRequest: () => sentAt.push(performance.now() - startedAt),
      onRetry: ({ retryAfterMs, waitMs }: RetryInfo) => {
        toldMs.push(retryAfterMs);
        waitsMs.push(waitMs);
      },
    },
    ...options,
  });
  const outcome = await settleInVirtualTime(() =>
    client.couriers
      .list()
      .withResponse()
      .then(
        ({ attempts }) => ({ attempts, error: undefined }),
        (error: unknown) => ({ attempts: undefined, error }),
      ),
  );
  return { ...outcome, requests, toldMs, waitsMs, sentAt, endedAt: performance.now() - startedAt };
}

describe('the wait before a repeat', () => {
  test.each([
    [0, [0, 500, 1_500, 3_500, 7_500, 11_500, 15_500]],
    [0.5, [0, 750, 2_250, 5_250, 11_250, 17_250, 23_250]],
  ])(
    'a random number of %d → waits that double each time, up to a cap of 4 to 8 s',
    async (drawn, moments) => {
      draw.mockReturnValue(drawn);
      const { sentAt } = await run({ status: 500 }, { retry: { retries: 6 } });
      expect(sentAt).toEqual(moments);
    },
  );

  test('maxBackoffMs of 1 s → waits of 0.5 to 1 s at most', async () => {
    const { sentAt } = await run({ status: 500 }, { retry: { retries: 4, maxBackoffMs: 1_000 } });
    expect(sentAt).toEqual([0, 500, 1_000, 1_500, 2_000]);
  });

  test('thirty calls that fail together → hardly two of them wait equally long before the sixth attempt', async () => {
    draw.mockRestore();
    const waits = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const { sentAt } = await run({ status: 500 }, { retry: { retries: 6 } });
        return (sentAt[6] ?? 0) - (sentAt[5] ?? 0);
      }),
    );
    expect(new Set(waits.map(Math.round)).size).toBeGreaterThan(25);
  });

  const waits: [what: string, step: Step, options: TrackingClientOptions, sentAt: number[]][] = [
    ['503 with 3 s', failing(503, '3'), {}, [0, 3_001]],
    ['503 with less than the back-off', failing(503, '0.2'), {}, [0, 500]],
    [
      '503 with reset headers, which count only with a 429',
      { status: 503, headers: { 'ratelimit-reset': '9' } },
      {},
      [0, 500],
    ],
    ['429 with 2 s', failing(429, '2'), {}, [0, 2_001]],
    ['429 with 0', failing(429, '0'), {}, [0, 500]],
    ['429 without any header', { status: 429, body: 'Too Many Requests' }, {}, [0, 1_001]],
    ['429 with exactly maxRetryAfterMs', failing(429, '60'), {}, [0, 60_001]],
    [
      '429 with half an hour, which is allowed',
      failing(429, '1800'),
      { retry: { maxRetryAfterMs: 3_600_000 } },
      [0, 1_800_001],
    ],
    ['a failure of the network', networkFailure('ECONNRESET'), {}, [0, 500]],
  ];
  test.each(waits)(
    '%s → the longer of back-off and Retry-After, which is rounded up by a millisecond',
    async (_what, step, options, sentAt) => {
      expect((await run([step, OK], options)).sentAt).toEqual(sentAt);
    },
  );

  test('timers that fire up to a millisecond early → the retry still waits for the whole Retry-After', async () => {
    const startedAt = Date.now();
    vi.spyOn(performance, 'now').mockImplementation(() => 0.9999 * (Date.now() - startedAt));
    const { sentAt } = await run([failing(503, '5'), OK]);
    expect(sentAt).toHaveLength(2);
    expect(sentAt[1]).toBeGreaterThanOrEqual(5_000);
  });

  test('a Retry-After of the first failure → does not delay the retry after the second failure', async () => {
    const { sentAt } = await run([failing(503, '3'), networkFailure('ECONNRESET'), OK]);
    expect(sentAt).toEqual([0, 3_001, 4_001]);
  });

  test('failures with and without Retry-After → onRetry gets the delay or undefined, and the whole wait', async () => {
    const { toldMs, waitsMs } = await run([failing(503), failing(503, '3'), failing(429), OK]);
    expect(toldMs).toEqual([undefined, 3_000, 1_000]);
    expect(waitsMs).toEqual([500, 3_000, 2_000]);
  });

  test('any failures → every wait is at least as long as onRetry says', async () => {
    draw.mockRestore();
    const { sentAt, waitsMs } = await run([
      failing(503),
      failing(503, '1.7'),
      failing(429, '9'),
      failing(500),
      OK,
    ]);
    expect(waitsMs).toHaveLength(4);
    for (const [index, waitMs] of waitsMs.entries()) {
      const waitedMs = (sentAt[index + 1] ?? 0) - (sentAt[index] ?? 0);
      expect(waitedMs).toBeGreaterThanOrEqual(waitMs);
      expect(waitedMs).toBeLessThan(waitMs + 3);
    }
  });
});

describe('the end of retries', () => {
  test.each([
    ['nothing', undefined, 5],
    ['retries: 2', { retries: 2 }, 3],
    ['retries: 0', { retries: 0 }, 1],
    ['false', false, 1],
  ] as const)('retry option %s → the last error; number of requests: $2', async (_what, retry, requests) => {
    const result = await run({ status: 500 }, { retry });
    expect(result.error).toMatchObject({ name: 'ServerError', attempts: requests });
    expect(result.requests).toHaveLength(requests);
  });

  test('5xx and 429 in turns → they share one retry budget', async () => {
    const { error, requests } = await run([failing(500), failing(429, '0'), failing(502), failing(503)], {
      retry: { retries: 2 },
    });
    expect(error).toMatchObject({ name: 'ServerError', status: 502, attempts: 3 });
    expect(requests).toHaveLength(3);
  });

  test('429s only → RateLimitError with the last delay, and no wait after the last attempt', async () => {
    const { error, sentAt, endedAt, toldMs } = await run(failing(429, '5'), { retry: { retries: 2 } });
    expect(error).toMatchObject({ name: 'RateLimitError', attempts: 3, retryAfterMs: 5_000 });
    expect(sentAt).toEqual([0, 5_001, 10_002]);
    expect(endedAt).toBe(10_002);
    expect(toldMs).toEqual([5_000, 5_000]);
  });

  test.each([
    [429, 'RateLimitError'],
    [503, 'ServerError'],
  ])('%d with a Retry-After above maxRetryAfterMs → %s at once, no onRetry', async (status, name) => {
    const { error, endedAt, requests, toldMs } = await run([failing(status, '61'), OK]);
    expect(error).toMatchObject({ name, retryAfterMs: 61_000, attempts: 1 });
    expect(requests).toHaveLength(1);
    expect(endedAt).toBe(0);
    expect(toldMs).toEqual([]);
  });
});

describe('totalTimeoutMs', () => {
  test.each(['5', '4'])(
    'a Retry-After of %s s, with 4 s left → TimeoutError at once, the failure as its cause, no onRetry',
    async (retryAfter) => {
      const { error, requests, endedAt, toldMs } = await run(failing(503, retryAfter), {
        totalTimeoutMs: 4_000,
      });
      expect(error).toMatchObject({
        name: 'TimeoutError',
        phase: 'backoff',
        timeoutMs: 4_000,
        message:
          'GET https://api.example.test/public/v1/couriers timed out after 4000 ms (`totalTimeoutMs`) while waiting to try again',
        cause: { name: 'ServerError', status: 503 },
      });
      expect(requests).toHaveLength(1);
      expect(endedAt).toBe(0);
      expect(toldMs).toEqual([]);
    },
  );

  test('a Retry-After shorter than the rest of totalTimeoutMs → the call waits and succeeds', async () => {
    expect(await run([failing(503, '3'), OK], { totalTimeoutMs: 4_000 })).toMatchObject({ attempts: 2 });
  });

  test('totalTimeoutMs would end during a back-off → TimeoutError at once, with the failure as its cause', async () => {
    const { error, requests, endedAt } = await run({ status: 500 }, { totalTimeoutMs: 1_200 });
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'backoff', cause: { status: 500 } });
    expect(requests).toHaveLength(2);
    expect(endedAt).toBe(500);
  });

  test('totalTimeoutMs ends during a later attempt → TimeoutError without a cause', async () => {
    const { error, sentAt, endedAt } = await run([failing(503, '3'), () => new Promise(() => {})], {
      totalTimeoutMs: 4_000,
    });
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'headers', timeoutMs: 4_000 });
    expect(error).not.toHaveProperty('cause');
    expect(sentAt).toEqual([0, 3_001]);
    expect(endedAt).toBe(4_000);
  });
});

test('a retry → the same body and headers as the first request', async () => {
  const { client, requests } = makeClient([{ status: 500 }, { body: { data: { tracker: TRACKER } } }]);
  const options = { headers: { 'x-tenant': 'a' } };
  await settleInVirtualTime(() => client.trackers.create({ trackingNumber: 'LA680658838NL' }, options));
  const [first, second] = requests;
  expect(second?.body).toBe('{"trackingNumber":"LA680658838NL"}');
  expect(second?.body).toBe(first?.body);
  expect([...(second?.headers ?? [])]).toEqual([...(first?.headers ?? [])]);
});
