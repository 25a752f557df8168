import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../../../src/client.ts';
import { sleep } from '../../../src/common/clock.ts';
import { TrackingError } from '../../../src/errors.ts';
import type { AcquireOptions, Limiter, ResponseFacts } from '../../../src/limiter/limiter.ts';
import type { TrackingClientOptions } from '../../../src/options.ts';
import {
  API_KEY,
  BASE_URL,
  catchRejection,
  makeClient,
  type Step,
  type StubResponse,
} from '../../support/make-client.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';

const OK: Step = { body: { data: [] } };
const LONG_PAUSE: Step = { status: 429, headers: { 'retry-after': '3600' }, body: { errors: [] } };

beforeEach(() => {
  vi.useFakeTimers();
});
/** A limiter that grants every call and records how the pipeline uses the permits. */
class Recorder implements Limiter {
  readonly spansProcesses = false;
  readonly maxQueue = Number.POSITIVE_INFINITY;
  readonly log: string[] = [];
  readonly acquired: AcquireOptions[] = [];
  readonly reported: ResponseFacts[] = [];

  async acquire(options: AcquireOptions) {
    this.acquired.push(options);
    this.log.push('acquire');
    return {
      tokensLeft: 4,
      send: () => {
        this.log.push('send');
      },
      noteResponse: (response: ResponseFacts) => {
        this.reported.push(response);
        this.log.push('report');
      },
      settlePause: () => {},
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
  return { ...makeClient(script, { rateLimit: undefined, limiter, ...options }), limiter };
}

test('a signal that aborts while a permit is granted → the hook aroundAttempt is not called', async () => {
  const controller = new AbortController();
  const aroundAttempt = vi.fn();
  const { client, limiter } = setUp(OK, { hooks: { aroundAttempt } });
  const { acquire } = limiter;
  limiter.acquire = async (options) => {
    controller.abort(new Error('enough'));
    return await acquire.call(limiter, options);
  };
  expect(await catchRejection(client.couriers.list({ signal: controller.signal }))).toMatchObject({
    message: 'enough',
  });
  expect(aroundAttempt).not.toHaveBeenCalled();
});

describe('a limiter of the caller that throws', () => {
  const CAUSE = 'lock lost';
  const elsewhere: unknown = runInNewContext(`new RangeError('no slot', { cause: new Error('${CAUSE}') })`);

  test.each<[what: string, thrown: unknown, message: string]>([
    ['an error of another realm', elsewhere, 'The limiter threw RangeError: no slot'],
    ['a text', 'no slot', 'The limiter threw a string of 7 characters'],
  ])('%s → an error of the call with its words, and itself as the cause', async (_what, thrown, message) => {
    const { client, requests, limiter } = setUp(OK);
    limiter.acquire = () => Promise.reject(thrown);
    const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(error).toBeInstanceOf(TrackingError);
    expect(error).toMatchObject({
      message,
      callId: expect.any(String),
      endpoint: 'couriers.list',
      attempts: 0,
    });
    const { cause } = Object(error);
    expect(cause).toBe(thrown);
    if (typeof thrown === 'object') expect(Object(cause).cause).toMatchObject({ message: CAUSE });
    expect(requests).toHaveLength(0);
  });

  test('an error of this package → the same error', async () => {
    const { client, limiter } = setUp(OK);
    const thrown = new TrackingError('no slot');
    limiter.acquire = () => Promise.reject(thrown);
    expect(await settleInVirtualTime(() => catchRejection(client.couriers.list()))).toBe(thrown);
  });

  test('its reason after an abort of the caller → the call rejects with that reason', async () => {
    const { client, limiter } = setUp(OK);
    const controller = new AbortController();
    const reason = new Error('closed');
    limiter.acquire = ({ signal }) => {
      controller.abort(reason);
      return Promise.reject(signal?.reason);
    };
    const { signal } = controller;
    expect(await settleInVirtualTime(() => catchRejection(client.couriers.list({ signal })))).toBe(reason);
  });
});

describe('the permit of an attempt', () => {
  const broken = () => new Response(new ReadableStream({ pull: (stream) => stream.error(new Error('cut')) }));

  test.each([
    ['a call that succeeds', ['acquire', 'send', 'report'], OK],
    [
      'a 500 and a success',
      ['acquire', 'send', 'report', 'acquire', 'send', 'report'],
      [{ status: 500 }, OK],
    ],
    ['a body that breaks off, after its headers', ['acquire', 'send', 'report'], broken],
    ['no response', ['acquire', 'send'], new TypeError('fetch failed')],
  ] as [string, string[], Step | Step[]][])('%s → %j', async (_what, log, script) => {
    const retry = Array.isArray(script) ? undefined : (false as const);
    const { client, limiter } = setUp(script, { retry });
    await settleInVirtualTime(() => client.couriers.list().catch(() => {}));
    // A permit that was sent ignores `cancel`.
    expect(limiter.log.filter((step) => step !== 'cancel')).toEqual(log);
  });

  test.each([
    ['a key function that fails', () => Promise.reject(new Error('sealed'))],
    ['an empty key', () => ''],
  ])('%s → the permit is returned unsent', async (_what, apiKey) => {
    const { client, limiter } = setUp(OK, { apiKey });
    await catchRejection(client.couriers.list());
    expect(limiter.log).toEqual(['acquire', 'cancel']);
  });

  test('an abort between grant and send → the permit is returned unsent', async () => {
    const controller = new AbortController();
    const apiKey = () => {
      controller.abort('stop');
      return API_KEY;
    };
    const { client, limiter, requests } = setUp(OK, { apiKey });
    expect(await catchRejection(client.couriers.list({ signal: controller.signal }))).toBe('stop');
    expect(limiter.log).toEqual(['acquire', 'cancel']);
    expect(requests).toHaveLength(0);
  });
});

describe('arguments of acquire', () => {
  test('a call → its bucket, priority and longest pause', async () => {
    const { client, limiter } = setUp(OK);
    await client.couriers.list({ priority: 'background' });
    expect(limiter.acquired).toMatchObject([
      {
        bucket: {
          baseUrl: BASE_URL,
          account: expect.stringMatching(/^[0-9a-f]{64}$/),
          endpoint: 'couriers.list',
        },
        priority: 'background',
        maxPauseMs: 60_000,
      },
    ]);
  });

  test('a signal and totalTimeoutMs → a signal that follows the given signal, and a shorter longest pause', async () => {
    const { client, limiter } = setUp(OK);
    const controller = new AbortController();
    const call = client.couriers.list({ signal: controller.signal, totalTimeoutMs: 5_000 });
    controller.abort('stop');
    expect(await catchRejection(call)).toBe('stop');
    for (const { signal, maxPauseMs } of limiter.acquired) {
      expect(signal?.reason).toBe('stop');
      expect(maxPauseMs).toBe(5_000);
    }
  });
});

describe('account of the bucket', () => {
  const key = () => 'key';
  const listAccounts = async (first: TrackingClientOptions, second: TrackingClientOptions) => {
    const { client, limiter } = setUp(OK, first);
    await client.couriers.list();
    await makeClient(OK, { rateLimit: undefined, limiter, ...second }).client.couriers.list();
    return limiter.acquired.map(({ bucket }) => bucket.account);
  };

  test.each([
    ['one key', { apiKey: 'a' }, { apiKey: ' a\n' }, true],
    ['two keys', { apiKey: 'a' }, { apiKey: 'b' }, false],
    ['one function', { apiKey: key }, { apiKey: key }, false],
    [
      'two functions with one `account`',
      { apiKey: key, account: 'x' },
      { apiKey: () => 'b', account: 'x' },
      true,
    ],
    ['two keys with one `account`', { apiKey: 'a', account: 'x' }, { apiKey: 'b', account: 'x' }, true],
    ['one key with two accounts', { apiKey: 'a', account: 'x' }, { apiKey: 'a', account: 'y' }, false],
  ] as [string, TrackingClientOptions, TrackingClientOptions, boolean][])(
    'two clients with %s → one account for both: $3',
    async (_what, first, second, isSame) => {
      const [a, b] = await listAccounts(first, second);
      expect(a === b).toBe(isSame);
      expect(a).not.toBe('');
    },
  );

  test.each([
    ['a function as key', { apiKey: key }, [{}], 'same'],
    ['a function as key, changed twice', { apiKey: key }, [{ timeoutMs: 5 }, { retry: false }], 'same'],
    ['a function as key, another function', { apiKey: key }, [{ apiKey: () => 'b' }], 'another'],
    [
      'a function as key, a time limit, then a key',
      { apiKey: key },
      [{ timeoutMs: 5 }, { apiKey: 'b' }],
      'another',
    ],
    [
      'a key, a time limit, then another function',
      { apiKey: 'a' },
      [{ timeoutMs: 5 }, { apiKey: () => 'b' }],
      'another',
    ],
    ['a key, another key, then the first key', { apiKey: 'a' }, [{ apiKey: 'b' }, { apiKey: 'a' }], 'same'],
    ['an `account`, another key', { account: 'x' }, [{ apiKey: 'b' }], 'same'],
    ['an `account`, another one', { account: 'x' }, [{ account: 'y' }], 'another'],
    [
      'an `account`, a time limit, then another key',
      { account: 'x' },
      [{ timeoutMs: 5 }, { apiKey: 'b' }],
      'same',
    ],
    [
      'a key, an `account`, then another key',
      { apiKey: 'a' },
      [{ account: 'x' }, { apiKey: 'b' }],
      'another',
    ],
  ] as [string, TrackingClientOptions, Parameters<TrackingClient['withOptions']>[0][], string][])(
    'withOptions of a client with %s → a bucket of $3 account',
    async (_what, options, changes, expected) => {
      const { client, limiter } = setUp(OK, options);
      await client.couriers.list();
      await client.couriers.list();
      let last: TrackingClient = client;
      for (const each of changes) last = last.withOptions(each);
      await last.couriers.list();
      const [first, second, changed] = limiter.acquired.map(({ bucket }) => bucket.account);
      expect(second).toBe(first);
      expect(changed === first ? 'same' : 'another').toBe(expected);
    },
  );
});

describe('arguments of report', () => {
  test('a response → its status and its rate limit headers', async () => {
    const headers = { 'ratelimit-limit': '7', 'ratelimit-remaining': '3', 'ratelimit-reset': '1' };
    const { client, limiter } = setUp({ ...OK, headers });
    await client.couriers.list();
    const told = { status: 200, retryAfterMs: undefined, limit: 7, remaining: 3, resetMs: 1_000 };
    expect(limiter.reported).toEqual([told]);
  });

  test.each([
    [429, 2_000],
    [503, undefined],
  ])('%d with a Retry-After of 2 s → a report with retryAfterMs %j', async (status, retryAfterMs) => {
    const { client, limiter } = setUp([{ status, headers: { 'retry-after': '2' } }, OK]);
    await settleInVirtualTime(() => client.couriers.list().catch(() => {}));
    expect(limiter.reported[0]?.retryAfterMs).toBe(retryAfterMs);
  });
});

describe('a pause of the built-in limiter', () => {
  const limited = (script: Step | Step[], options: TrackingClientOptions = {}) =>
    makeClient(script, { rateLimit: undefined, ...options });

  test('a 429 that is retried → the wait beyond the back-off counts as time in the queue', async () => {
    const onDone = vi.fn();
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const { client } = limited([{ status: 429, headers: { 'retry-after': '30' } }, OK], {
      hooks: { onDone },
    });
    const call = client.couriers.list().then((couriers) => couriers);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(client.rateLimits()['couriers.list'].queued).toBe(1);
    await vi.advanceTimersByTimeAsync(21_000);
    expect(await call).toEqual([]);
    const { queuedMs } = onDone.mock.calls[0]?.[0] ?? {};
    expect(queuedMs).toBeGreaterThanOrEqual(29_500);
    expect(queuedMs).toBeLessThan(30_500);
  });

  test('a pause longer than maxRetryAfterMs → the next call rejects at once, nothing is sent', async () => {
    const onRateLimit = vi.fn();
    const { client, requests } = limited([LONG_PAUSE, OK], { hooks: { onRateLimit } });
    await catchRejection(client.couriers.list());
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'RateLimitError',
      status: 429,
      attempts: 0,
      retryAfterMs: 3_600_000,
      message:
        'GET https://api.example.test/public/v1/couriers was not sent: the service has asked to wait another 3600 s, and `retry.maxRetryAfterMs` allows only 60 s; call again in 3600 s',
    });
    expect(requests).toHaveLength(1);
    expect(onRateLimit).toHaveBeenCalledOnce();
  });

  test('a pause longer than maxRetryAfterMs before a retry → the message says that it was not sent again', async () => {
    const { client, requests } = limited([{ status: 503, body: { errors: [] } }, LONG_PAUSE, OK]);
    const retried = catchRejection(client.couriers.list());
    await vi.advanceTimersByTimeAsync(0);
    const refused = catchRejection(client.couriers.list({ retry: false }));
    await vi.advanceTimersByTimeAsync(60_000);
    await refused;
    expect(await retried).toMatchObject({
      name: 'RateLimitError',
      attempts: 1,
      message: expect.stringContaining('/couriers was not sent again: '),
    });
    expect(requests).toHaveLength(2);
  });

  test('a pause longer than maxRetryAfterMs → calls that already wait reject, too', async () => {
    const { client, requests } = limited([LONG_PAUSE, OK]);
    const errors = await Promise.all([1, 2, 3].map(() => catchRejection(client.couriers.list())));
    expect(errors.map((error) => Object(error).attempts)).toEqual([1, 0, 0]);
    expect(requests).toHaveLength(1);
  });

  const quota = { errors: [{ code: 'quota_limit_reached' }], data: null };
  const day = { 'retry-after': '86400' };
  const brokenBody = () => new ReadableStream({ pull: (stream) => stream.error(new Error('cut')) });

  test.each<[string, number, StubResponse]>([
    ['a used-up quota', 1, { headers: day, body: quota }],
    ['a used-up quota, and RateLimit-Reset', 1, { headers: { 'ratelimit-reset': '86400' }, body: quota }],
    [
      'a used-up quota in the envelope of bulk requests',
      1,
      {
        headers: day,
        body: { status: 'error', error: { code: 'bulk_create_limit_exceeded' } },
      },
    ],
    ['a used-up quota without a time', 1, { body: quota }],
    [
      'an unknown code',
      120,
      { headers: { 'retry-after': '120' }, body: { errors: [{ code: 'slow_down' }] } },
    ],
    [
      'an unknown code, and RateLimit-Reset',
      120,
      { headers: { 'ratelimit-reset': '120' }, body: { errors: [] } },
    ],
    [
      'text that names the code of a used-up quota',
      120,
      {
        headers: { 'retry-after': '120' },
        body: 'quota_limit_reached',
      },
    ],
    ['cut-off JSON', 120, { headers: { 'retry-after': '120' }, body: '{"errors":[{"code":"quota_limit_re' }],
    ['an empty body', 120, { headers: { 'retry-after': '120' } }],
    ['no time', 1, { body: { errors: [] } }],
  ])('a 429 with %s → a pause of %d s', async (_what, seconds, response) => {
    const { client } = limited({ status: 429, ...response }, { retry: false });
    await catchRejection(client.couriers.list());
    expect(client.rateLimits()['couriers.list'].pausedUntil).toBe(Date.now() + seconds * 1_000);
  });

  test('a 429 with a used-up quota while calls wait → each call is sent, one a second, and rejects with the same error', async () => {
    const { client, requests } = limited({ status: 429, headers: day, body: quota });
    const calls = Promise.all([1, 2, 3].map(() => catchRejection(client.couriers.list())));
    const errors = await settleInVirtualTime(() => calls);
    expect(errors.map((error) => Object(error).name)).toEqual(Array(3).fill('QuotaExceededError'));
    expect(requests).toHaveLength(3);
  });

  test('a 429 whose body breaks off → the pause that its headers ask for', async () => {
    const { client } = limited(() => new Response(brokenBody(), { status: 429, headers: day }), {
      retry: false,
    });
    expect(await catchRejection(client.couriers.list())).toMatchObject({ name: 'ConnectionError' });
    expect(client.rateLimits()['couriers.list'].pausedUntil).toBe(Date.now() + 3_600_000);
  });

  describe('a 429 with a Retry-After of 20 s whose body stalls', () => {
    const stalled = () =>
      new Response(new ReadableStream(), { status: 429, headers: { 'retry-after': '20' } });

    test('the next call → sent after these 20 s', async () => {
      const { client, requests } = limited([stalled, OK], { retry: false });
      client.couriers.list().catch(() => {});
      const next = client.couriers.list().then((couriers) => couriers);
      await vi.advanceTimersByTimeAsync(19_999);
      expect(requests).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(1);
      expect(await next).toEqual([]);
    });

    test('an abort while it stalls → the pause of 20 s', async () => {
      const { client } = limited(stalled);
      const controller = new AbortController();
      const call = catchRejection(client.couriers.list({ signal: controller.signal }));
      await vi.advanceTimersByTimeAsync(100);
      expect(client.rateLimits()['couriers.list'].pausedUntil).toBe(Date.now() + 900);
      controller.abort('stop');
      expect(await call).toBe('stop');
      expect(client.rateLimits()['couriers.list'].pausedUntil).toBe(Date.now() + 19_900);
    });

    test('headers that come after an abort → the pause of 20 s', async () => {
      const { client } = limited(async () => {
        await sleep(1_000);
        return stalled();
      });
      const controller = new AbortController();
      const call = catchRejection(client.couriers.list({ signal: controller.signal }));
      await vi.advanceTimersByTimeAsync(100);
      controller.abort('stop');
      expect(await call).toBe('stop');
      await vi.advanceTimersByTimeAsync(2_000);
      expect(client.rateLimits()['couriers.list'].pausedUntil).toBe(Date.now() + 18_900);
    });
  });

  test('a pause longer than the rest of totalTimeoutMs → TimeoutError at once, the 429 as its cause', async () => {
    const { client, requests } = limited({ status: 429, headers: { 'retry-after': '30' } });
    expect(await catchRejection(client.couriers.list({ totalTimeoutMs: 5_000 }))).toMatchObject({
      name: 'TimeoutError',
      timeoutMs: 5_000,
      cause: { name: 'RateLimitError' },
    });
    // A call that finds the pause in the queue rejects the same way.
    const error = await catchRejection(client.couriers.list({ totalTimeoutMs: 5_000 }));
    expect(error).toMatchObject({ name: 'TimeoutError', phase: 'queue', timeoutMs: 5_000 });
    expect(requests).toHaveLength(1);
  });

  test('no token in time for a second attempt → TimeoutError with the first failure as its cause', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const { client, requests } = limited({ status: 429, headers: { 'retry-after': '0' } });
    const call = () => catchRejection(client.couriers.list({ totalTimeoutMs: 600 }));
    expect(await settleInVirtualTime(call)).toMatchObject({
      name: 'TimeoutError',
      phase: 'queue',
      cause: { name: 'RateLimitError' },
    });
    expect(requests).toHaveLength(1);
  });
});

describe('a queue that is full', () => {
  const full = { rateLimit: { maxQueue: 0 } };

  test.each([
    [503, 'ServerError'],
    [429, 'RateLimitError'],
  ])('a full queue at the retry of a %d → the %s of the first attempt', async (status, name) => {
    // The repeat comes after 500 ms, and the only token of the endpoint after a second.
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const { client, requests } = makeClient({ status, headers: { 'x-request-id': 'req-1' } }, full);
    const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(error).toMatchObject({ name, requestId: 'req-1', attempts: 1 });
    expect(requests).toHaveLength(1);
  });
});
