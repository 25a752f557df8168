import { afterEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import { QueueFullError, TimeoutError } from '../../src/errors.ts';
import type { AcquireOptions, Limiter, RateLimitFeedback } from '../../src/limiter/limiter.ts';
import { LongPauseError } from '../../src/limiter/limiter.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { API_KEY, BASE_URL, makeClient, rejectionOf, type Step } from '../support/make-client.ts';

const OK: Step = { body: { data: [] } };

afterEach(() => {
  vi.useRealTimers();
});

/** A limiter that writes down what the pipeline does with it. */
class Recorder implements Limiter {
  readonly log: string[] = [];
  readonly acquired: AcquireOptions[] = [];
  readonly settled: RateLimitFeedback[] = [];
  failure: unknown;
  failingStep: 'send' | 'settle' | undefined;

  async acquire(options: AcquireOptions) {
    this.acquired.push(options);
    this.log.push('acquire');
    if (this.failure !== undefined) throw this.failure;
    return {
      tokensLeft: 4,
      send: () => {
        if (this.failingStep === 'send') throw new Error('broken');
        this.log.push('send');
      },
      report: (feedback: RateLimitFeedback) => {
        if (this.failingStep === 'settle') throw new Error('broken');
        this.settled.push(feedback);
        this.log.push('settle');
      },
      cancel: () => {
        this.log.push('cancel');
      },
    };
  }

  snapshot() {
    return { limit: 9, inUse: 1, queued: 2, pausedUntil: null };
  }
}

function setUp(script: Step | Step[], options: TrackingClientOptions = {}) {
  const limiter = new Recorder();
  const made = makeClient(script, { rateLimit: undefined, limiter, ...options });
  return { ...made, limiter };
}

/** Lists couriers, and moves the time until the pause of a 429 is over. */
async function listInVirtualTime(client: TrackingClient): Promise<void> {
  vi.useFakeTimers();
  const call = client.couriers.list();
  await vi.advanceTimersByTimeAsync(3_000);
  await call;
}

describe('the life of a permit', () => {
  test('a call that succeeds → acquired, sent, settled', async () => {
    const { client, limiter } = setUp(OK);
    await client.couriers.list();
    expect(limiter.log).toEqual(['acquire', 'send', 'settle']);
  });

  test('a call that is tried again → a new permit for every attempt', async () => {
    const { client, limiter } = setUp([{ status: 500 }, OK]);
    await client.couriers.list();
    expect(limiter.log).toEqual(['acquire', 'send', 'settle', 'acquire', 'send', 'settle']);
  });

  test('an answer whose body breaks off → settled when its headers came', async () => {
    const broken = () =>
      new Response(new ReadableStream({ pull: (stream) => stream.error(new Error('cut')) }), { status: 200 });
    const { client, limiter } = setUp(broken, { retry: false });
    await rejectionOf(client.couriers.list());
    expect(limiter.log.slice(0, 3)).toEqual(['acquire', 'send', 'settle']);
  });

  test('no answer → sent and never settled', async () => {
    const { client, limiter } = setUp(new TypeError('fetch failed'), { retry: false });
    await rejectionOf(client.couriers.list());
    expect(limiter.log).not.toContain('settle');
    expect(limiter.log.slice(0, 2)).toEqual(['acquire', 'send']);
  });

  test('a key function that fails → the token is given back unsent', async () => {
    const { client, limiter } = setUp(OK, { apiKey: () => Promise.reject(new Error('sealed')) });
    await rejectionOf(client.couriers.list());
    expect(limiter.log).toEqual(['acquire', 'cancel']);
  });

  test('an abort between grant and send → the token is given back unsent', async () => {
    const controller = new AbortController();
    const { client, limiter, requests } = setUp(OK, {
      apiKey: () => {
        controller.abort('stop');
        return API_KEY;
      },
    });
    expect(await rejectionOf(client.couriers.list({ signal: controller.signal }))).toBe('stop');
    expect(limiter.log).toEqual(['acquire', 'cancel']);
    expect(requests).toHaveLength(0);
  });

  test('an input that breaks a rule → no token is asked for', async () => {
    const { client, limiter } = setUp(OK);
    await rejectionOf(client.trackers.get('..'));
    expect(limiter.log).toEqual([]);
  });
});

describe('what is asked', () => {
  test('a call → its bucket, limit, priority and signal', async () => {
    const { client, limiter } = setUp(OK);
    const { signal } = new AbortController();
    await client.couriers.list({ signal, priority: 'background' });
    expect(limiter.acquired).toEqual([
      {
        bucket: {
          baseUrl: BASE_URL,
          account: expect.stringMatching(/^[0-9a-f]{64}$/),
          endpoint: 'couriers.list',
        },
        limit: 1,
        priority: 'background',
        signal,
        maxLimit: undefined,
        maxWaitMs: undefined,
        maxPauseMs: 60_000,
      },
    ]);
  });

  test('rateLimit.limits → instead of the limit of the table', async () => {
    const { client, limiter } = setUp(OK, { rateLimit: { limits: { 'couriers.list': 25 } } });
    await client.couriers.list();
    expect(limiter.acquired[0]?.limit).toBe(25);
  });

  test('rateLimit.limits → what the service announces never raises the limit above it', async () => {
    const { client, limiter } = setUp(OK, { rateLimit: { limits: { 'couriers.list': 25 } } });
    await client.couriers.list();
    expect(limiter.acquired[0]?.maxLimit).toBe(25);
  });

  test.each([
    ['of an endpoint', '/trackers/bulk', {}, 'trackers.createBulk', 3, undefined],
    [
      'of an endpoint with a limit of yours',
      '/trackers/bulk',
      { 'trackers.createBulk': 7 },
      'trackers.createBulk',
      7,
      7,
    ],
    ['of no endpoint', '/reports', {}, 'request', 10, undefined],
  ] as const)(
    'a raw request to the path %s → %s: its bucket and limits',
    async (_what, path, limits, endpoint, limit, maxLimit) => {
      const { client, limiter } = setUp(OK, { rateLimit: { limits } });
      await client.request({ method: 'POST', path });
      expect(limiter.acquired).toMatchObject([{ bucket: { endpoint }, limit, maxLimit }]);
    },
  );

  test('totalTimeoutMs → at most so long in the queue', async () => {
    const { client, limiter } = setUp(OK);
    await client.couriers.list({ totalTimeoutMs: 5_000 });
    expect(limiter.acquired[0]?.maxWaitMs).toBeGreaterThan(4_000);
    expect(limiter.acquired[0]?.maxWaitMs).toBeLessThanOrEqual(5_000);
  });

  test('two keys → two accounts', async () => {
    const { client, limiter } = setUp(OK);
    await client.couriers.list();
    await client.withOptions({ apiKey: 'other' }).couriers.list();
    expect(limiter.acquired[0]?.bucket.account).not.toBe(limiter.acquired[1]?.bucket.account);
  });
});

describe('what is told', () => {
  test('an answer → its status and the limit it announced', async () => {
    const { client, limiter } = setUp({ ...OK, headers: { 'ratelimit-limit': '7' } });
    await client.couriers.list();
    expect(limiter.settled).toEqual([{ status: 200, retryAfterMs: undefined, announcedLimit: 7 }]);
  });

  test('a 429 → how long to pause', async () => {
    const { client, limiter } = setUp([
      { status: 429, body: 'slow down', headers: { 'retry-after': '2' } },
      OK,
    ]);
    await listInVirtualTime(client);
    expect(limiter.settled[0]).toEqual({ status: 429, retryAfterMs: 2_000, announcedLimit: undefined });
  });

  test('a 429 without headers → one window', async () => {
    const { client, limiter } = setUp([{ status: 429 }, OK]);
    await listInVirtualTime(client);
    expect(limiter.settled[0]?.retryAfterMs).toBe(1_000);
  });

  test('a 429 with a longer wait than is allowed → told all the same', async () => {
    const { client, limiter } = setUp({ status: 429, headers: { 'retry-after': '600' } });
    await rejectionOf(client.couriers.list());
    expect(limiter.settled[0]?.retryAfterMs).toBe(600_000);
  });

  test('a 503 with Retry-After → no pause for the others', async () => {
    const { client, limiter } = setUp([{ status: 503, headers: { 'retry-after': '0' } }, OK]);
    await client.couriers.list();
    expect(limiter.settled[0]?.retryAfterMs).toBeUndefined();
  });
});

describe('a limiter that refuses', () => {
  test('QueueFullError → the rejection, nothing is sent, no further attempt', async () => {
    const { client, limiter, requests } = setUp(OK);
    limiter.failure = new QueueFullError('full');
    expect(await rejectionOf(client.couriers.list())).toBe(limiter.failure);
    expect(limiter.log).toEqual(['acquire']);
    expect(requests).toHaveLength(0);
  });

  test('a failure of its own → the rejection, no further attempt', async () => {
    const { client, limiter } = setUp(OK);
    limiter.failure = new Error('redis is down');
    expect(await rejectionOf(client.couriers.list())).toBe(limiter.failure);
    expect(limiter.log).toEqual(['acquire']);
  });
});

describe('a limiter that says the pause is too long', () => {
  const paused = (hooks = {}) => {
    const made = setUp(OK, { retry: { maxRetryAfterMs: 5_000 }, hooks });
    made.limiter.failure = new LongPauseError(60_000);
    return made;
  };

  test('a call → RateLimitError at once, nothing is sent', async () => {
    const { client, limiter, requests } = paused();
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      name: 'RateLimitError',
      status: 429,
      attempts: 0,
      retryAfterMs: 60_000,
      message: expect.stringMatching(/^GET https:\/\/\S+\/couriers is paused by the service for 60 s more/),
    });
    expect(limiter.log).toEqual(['acquire']);
    expect(requests).toHaveLength(0);
  });

  test('a call → no hook is told of an answer that never came', async () => {
    const onRateLimit = vi.fn();
    const { client } = paused({ onRateLimit });
    await rejectionOf(client.couriers.list());
    expect(onRateLimit).not.toHaveBeenCalled();
  });
});

describe('a limiter that fails to take note', () => {
  test.each(['send', 'settle'] as const)(
    '%s throws → the answer comes all the same, sent once',
    async (step) => {
      const { client, limiter, requests } = setUp(OK);
      limiter.failingStep = step;
      await expect(client.couriers.list()).resolves.toEqual([]);
      expect(requests).toHaveLength(1);
    },
  );

  test('send throws → a warning', async () => {
    const logger = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const { client, limiter } = setUp(OK, { logger, logLevel: 'warn' });
    limiter.failingStep = 'send';
    await client.couriers.list();
    expect(logger.warn).toHaveBeenCalledExactlyOnceWith(
      '[tracking-client] The limiter failed to take note of a request; the call goes on',
    );
  });
});

describe('the queue and totalTimeoutMs', () => {
  test('no token in time → TimeoutError of that phase, with the time that was allowed', async () => {
    vi.useFakeTimers();
    const { client, requests } = makeClient(OK, { rateLimit: {} });
    await client.couriers.list();
    const rejection = rejectionOf(client.couriers.list({ totalTimeoutMs: 200 }));
    await vi.advanceTimersByTimeAsync(199);
    expect(client.rateLimits()['couriers.list'].queued).toBe(1);
    await vi.advanceTimersByTimeAsync(2);
    const error = await rejection;
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error).toMatchObject({
      phase: 'queue',
      timeoutMs: 200,
      message:
        'GET https://api.example.test/public/v1/couriers ran out of `totalTimeoutMs` (200 ms) while waiting for a rate limit token',
    });
    await vi.runAllTimersAsync();
    expect(requests).toHaveLength(1);
  });

  test('no token in time for another attempt → TimeoutError with the failure before it as its cause', async () => {
    vi.useFakeTimers();
    const { client, requests } = makeClient(
      { status: 429, headers: { 'retry-after': '0' } },
      { rateLimit: {} },
    );
    const rejection = rejectionOf(client.couriers.list({ totalTimeoutMs: 500 }));
    await vi.advanceTimersByTimeAsync(501);
    expect(await rejection).toMatchObject({
      name: 'TimeoutError',
      phase: 'queue',
      timeoutMs: 500,
      cause: { name: 'RateLimitError' },
    });
    expect(requests).toHaveLength(1);
  });

  test('a 429 whose pause is longer than what is left → TimeoutError at once, the 429 as its cause', async () => {
    const { client, requests } = makeClient(
      { status: 429, headers: { 'retry-after': '30' } },
      { rateLimit: {} },
    );
    expect(await rejectionOf(client.couriers.list({ totalTimeoutMs: 5_000 }))).toMatchObject({
      name: 'TimeoutError',
      timeoutMs: 5_000,
      cause: { name: 'RateLimitError' },
    });
    expect(requests).toHaveLength(1);
  });
});
