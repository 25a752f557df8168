import { describe, expect, test, vi } from 'vitest';
import type { Hooks } from '../src/logging.ts';
import { TRACKER } from './support/calls.ts';
import { makeClient, rejectionOf, type Step } from './support/make-client.ts';

const GOT = { body: { data: { tracker: TRACKER } }, headers: { 'x-request-id': 'req-1' } };
const ATTEMPT = { endpoint: 'trackers.get', method: 'GET', path: '/trackers/{trackerId}' };

function spies() {
  return { onRequest: vi.fn(), onResponse: vi.fn(), onRetry: vi.fn(), onRateLimit: vi.fn() };
}

async function get(script: Step | Step[], hooks: Hooks, options = {}) {
  const { client } = makeClient(script, { hooks, ...options });
  return await client.trackers.get('secret-id').catch((error: unknown) => error);
}

describe('a call that succeeds', () => {
  test('onRequest → endpoint, method, path template, attempt', async () => {
    const hooks = spies();
    await get(GOT, hooks);
    expect(hooks.onRequest).toHaveBeenCalledExactlyOnceWith({
      ...ATTEMPT,
      attempt: 1,
      tokensLeft: undefined,
    });
  });

  test('onResponse → the same, and status, duration and request id', async () => {
    const hooks = spies();
    await get(GOT, hooks);
    expect(hooks.onResponse).toHaveBeenCalledExactlyOnceWith({
      ...ATTEMPT,
      attempt: 1,
      tokensLeft: undefined,
      status: 200,
      durationMs: expect.any(Number),
      requestId: 'req-1',
    });
  });

  test('with a limiter → the tokens that are left', async () => {
    const hooks = spies();
    await get(GOT, hooks, { rateLimit: {} });
    expect(hooks.onRequest).toHaveBeenCalledWith(expect.objectContaining({ tokensLeft: 9 }));
    expect(hooks.onResponse).toHaveBeenCalledWith(expect.objectContaining({ tokensLeft: 9 }));
  });

  test('onRetry and onRateLimit → not called', async () => {
    const hooks = spies();
    await get(GOT, hooks);
    expect(hooks.onRetry).not.toHaveBeenCalled();
    expect(hooks.onRateLimit).not.toHaveBeenCalled();
  });
});

describe('a call that is tried again', () => {
  test('after a 503 → onRetry tells error, wait and attempt', async () => {
    const hooks = spies();
    await get([{ status: 503 }, GOT], hooks);
    expect(hooks.onRetry).toHaveBeenCalledExactlyOnceWith({
      ...ATTEMPT,
      attempt: 1,
      error: expect.objectContaining({ name: 'ServerError', status: 503 }),
      delayMs: 0,
    });
    expect(hooks.onRequest.mock.calls.map(([info]) => info.attempt)).toEqual([1, 2]);
    expect(hooks.onResponse.mock.calls.map(([info]) => info.status)).toEqual([503, 200]);
  });

  test('after a 429 → onRateLimit and onRetry, with the delay', async () => {
    const hooks = spies();
    await get([{ status: 429, headers: { 'retry-after': '0.01' } }, GOT], hooks);
    expect(hooks.onRateLimit).toHaveBeenCalledExactlyOnceWith({ ...ATTEMPT, attempt: 1, delayMs: 10 });
    expect(hooks.onRetry).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        attempt: 1,
        delayMs: 10,
        error: expect.objectContaining({ name: 'RateLimitError' }),
      }),
    );
  });

  test('a 429 that is not tried again → onRateLimit only', async () => {
    const hooks = spies();
    await get({ status: 429, headers: { 'retry-after': '7' } }, hooks, { retry: false });
    expect(hooks.onRateLimit).toHaveBeenCalledExactlyOnceWith({ ...ATTEMPT, attempt: 1, delayMs: 7_000 });
    expect(hooks.onRetry).not.toHaveBeenCalled();
  });

  test('a failure that is not tried again → no onRetry', async () => {
    const hooks = spies();
    await get({ status: 404 }, hooks);
    expect(hooks.onRetry).not.toHaveBeenCalled();
    expect(hooks.onResponse).toHaveBeenCalledOnce();
  });

  test('a wait for which there is no time → no onRetry', async () => {
    const hooks = spies();
    const answer = { status: 503, headers: { 'retry-after': '30' } };
    expect(await get(answer, hooks, { totalTimeoutMs: 5_000 })).toMatchObject({ name: 'TimeoutError' });
    expect(hooks.onRetry).not.toHaveBeenCalled();
  });

  test('no answer at all → onRequest without onResponse', async () => {
    const hooks = spies();
    await get(new TypeError('fetch failed'), hooks, { retry: false });
    expect(hooks.onRequest).toHaveBeenCalledOnce();
    expect(hooks.onResponse).not.toHaveBeenCalled();
  });
});

describe('privacy', () => {
  test('the id of a tracker → in no hook: paths are templates', async () => {
    const hooks = spies();
    await get([{ status: 503 }, { status: 429, headers: { 'retry-after': '0' } }, GOT], hooks);
    const told = Object.values(hooks).flatMap((hook) => hook.mock.calls);
    expect(told.length).toBeGreaterThanOrEqual(9);
    expect(JSON.stringify(told)).not.toContain('secret-id');
  });
});

describe('hooks that fail', () => {
  const boom = () => {
    throw new Error('boom');
  };
  const reject = () => Promise.reject(new Error('boom'));

  test.each([
    ['throw', boom],
    ['reject', reject],
  ])('all of them %s → the call succeeds all the same', async (_how, hook) => {
    const hooks = { onRequest: hook, onResponse: hook, onRetry: hook, onRateLimit: hook };
    const script = [{ status: 503 }, { status: 429, headers: { 'retry-after': '0' } }, GOT];
    expect(await get(script, hooks)).toEqual(TRACKER);
  });

  test.each([
    ['throws', boom],
    ['rejects', reject],
  ])('one that %s → a warning that names it', async (_how, onRequest) => {
    const warn = vi.fn();
    const logger = { debug: vi.fn(), info: vi.fn(), warn, error: vi.fn() };
    await get(GOT, { onRequest }, { logger, logLevel: 'warn' });
    await Promise.resolve();
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      '[tracking-client] The hook `onRequest` failed; the call goes on',
    );
  });

  test('one that changes what it is told → the others are told the truth', async () => {
    const onResponse = vi.fn();
    const onRequest = (info: object) => Object.assign(info, { attempt: 99, endpoint: 'x' });
    await get(GOT, { onRequest, onResponse });
    expect(onResponse).toHaveBeenCalledWith(
      expect.objectContaining({ attempt: 1, endpoint: 'trackers.get' }),
    );
  });
});

describe('hooks as an object', () => {
  test('an instance of a class → its methods, on it', async () => {
    class Counter implements Hooks {
      requests = 0;
      onRequest() {
        this.requests += 1;
      }
    }
    const counter = new Counter();
    await get(GOT, counter);
    expect(counter.requests).toBe(1);
  });

  test('changed after construction → the client keeps the old ones', async () => {
    const first = vi.fn();
    const second = vi.fn();
    const hooks: Hooks = { onRequest: first };
    const { client } = makeClient(GOT, { hooks });
    hooks.onRequest = second;
    await client.trackers.get('t');
    expect(first).toHaveBeenCalledOnce();
    expect(second).not.toHaveBeenCalled();
  });
});

describe('log lines', () => {
  const lines = async (script: Step | Step[], logLevel: 'debug' | 'info' | 'warn') => {
    const found: string[] = [];
    const at = (level: string) => (message: string) => found.push(`${level} ${message}`);
    const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    await get(script, {}, { logger, logLevel });
    return found;
  };

  test('debug → one line an answer, with the path template', async () => {
    expect(await lines(GOT, 'debug')).toEqual(['debug [tracking-client] GET /trackers/{trackerId} → 200']);
  });

  test('info → one line a retry', async () => {
    expect(await lines([{ status: 503 }, GOT], 'info')).toEqual([
      'info [tracking-client] GET /trackers/{trackerId} failed, next attempt follows',
    ]);
  });

  test('warn, the default → nothing about calls that work out', async () => {
    expect(await lines([{ status: 503 }, GOT], 'warn')).toEqual([]);
  });

  test('a logger that throws → the call succeeds all the same', async () => {
    const boom = () => {
      throw new Error('disk full');
    };
    const logger = { debug: boom, info: boom, warn: boom, error: boom };
    expect(await get([{ status: 503 }, GOT], {}, { logger, logLevel: 'debug' })).toEqual(TRACKER);
  });
});

test('an input that breaks a rule → no hook is called', async () => {
  const hooks = spies();
  const { client } = makeClient(GOT, { hooks });
  await rejectionOf(client.trackers.get(''));
  for (const hook of Object.values(hooks)) expect(hook).not.toHaveBeenCalled();
});
