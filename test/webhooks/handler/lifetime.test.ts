import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import type { ProcessOptions, WebhookReport } from '../../../src/webhooks/index.ts';
import { deferred } from '../../support/deferred.ts';
import { makeHandler, post, SECRET, webhook } from '../make-handler.ts';
import { E1, ScriptedStore, useFakeTimers } from '../support.ts';

useFakeTimers();

const hanging = () => new Promise<never>(() => {});

/** Tells whether a promise has settled. */
function watch(promise: Promise<unknown>): () => boolean {
  let isSettled = false;
  void promise.then(() => {
    isSettled = true;
  });
  return () => isSettled;
}

/** A request whose body never ends. */
const postEndless = () => post(new ReadableStream<Uint8Array>({ start() {} }));

/** The body of a webhook, which comes once `promise` has resolved. */
function streamAfter(promise: Promise<unknown>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      await promise;
      controller.enqueue(new TextEncoder().encode(JSON.stringify(E1)));
      controller.close();
    },
  });
}

describe('deadline', () => {
  test.each([
    ['a callback that hangs', { onEvent: hanging }, () => webhook('e1')],
    ['a `secret` function that hangs', { secret: hanging }, () => webhook('e1')],
    ['a body that never ends', {}, postEndless],
  ])('%s → 503 with Retry-After after 12 s', async (_title, options, makeRequest) => {
    const responding = makeHandler(options)(makeRequest());
    const isSettled = watch(responding);
    await vi.advanceTimersByTimeAsync(11_999);
    expect(isSettled()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    const response = await responding;
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30']);
    expect(await response.json()).toEqual({ success: false, outcome: 'deadline' });
  });

  test('a body that never ends → the host may drain it after the deadline', async () => {
    const request = postEndless();
    const responding = makeHandler()(request);
    await vi.advanceTimersByTimeAsync(1);
    expect(request.body?.locked).toBe(true);
    await vi.advanceTimersByTimeAsync(12_000);
    await responding;
    expect(request.body?.locked).toBe(false);
  });

  test('a callback that finishes after the deadline → 503; the redelivery gets 200, handled once', async () => {
    const work = deferred();
    const onEvent = vi.fn(() => work.promise);
    const handler = makeHandler({ onEvent, deadlineMs: 1_000 });
    const first = handler(webhook('e1'));
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await first).status).toBe(503);
    work.resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect((await handler(webhook('e1'))).status).toBe(200);
    expect(onEvent).toHaveBeenCalledOnce();
  });

  test('two events, and the first outlasts the deadline → no signal aborts, and the second is handled, too', async () => {
    const work = deferred();
    const signals: AbortSignal[] = [];
    const reports: WebhookReport[] = [];
    const handler = makeHandler({
      deadlineMs: 1_000,
      onEvent: (_event, { signal }) => {
        signals.push(signal);
        return work.promise;
      },
      onReport: (report) => reports.push(report),
    });
    const responding = handler(webhook('e1', 'e2'));
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await responding).status).toBe(503);
    work.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(reports).toMatchObject([{ outcome: 'done', handled: 2 }]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  });

  test('a slow body, then an event that another receiver holds → busy, a second before the deadline', async () => {
    // A process that has run for a while.
    await vi.advanceTimersByTimeAsync(100_000);
    const store = new ScriptedStore();
    await store.lease('e1', 600_000);
    const body = new Promise((resolve) => setTimeout(resolve, 6_000));
    const responding = makeHandler({ store })(post(streamAfter(body)));
    const isSettled = watch(responding);
    await vi.advanceTimersByTimeAsync(10_999);
    expect(isSettled()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isSettled()).toBe(true);
    expect(await (await responding).json()).toEqual({ success: false, outcome: 'busy' });
  });
});

test('a `secret` function that returns after the deadline → nothing is handled', async () => {
  const secret = deferred<string>();
  const onEvent = vi.fn();
  const responding = makeHandler({ onEvent, secret: () => secret.promise })(webhook('e1'));
  await vi.advanceTimersByTimeAsync(12_000);
  expect((await responding).status).toBe(503);
  secret.resolve(SECRET);
  await vi.advanceTimersByTimeAsync(1);
  expect(onEvent).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

describe('close', () => {
  test('requests after close → 503 with Retry-After, nothing handled; HEAD → empty 503, a wrong bearer → 401', async () => {
    const onEvent = vi.fn();
    const handler = makeHandler({ onEvent, onRefused: () => {} });
    await handler.close();
    const response = await handler(webhook('e1'));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    const head = await handler(new Request('https://app.example.test/', { method: 'HEAD' }));
    expect([head.status, head.headers.get('retry-after'), await head.text()]).toEqual([503, '5', '']);
    expect((await handler(post({}, { authorization: 'Bearer wrong' }))).status).toBe(401);
    expect((await handler(post({}, { 'content-type': 'text/plain' }))).status).toBe(503);
    expect(onEvent).not.toHaveBeenCalled();
  });

  test.each([
    ['a `secret` function that never settles', { secret: hanging }, () => webhook('e1')],
    ['a body that never ends', {}, postEndless],
  ])('%s → close resolves at once', async (_title, options, makeRequest) => {
    const handler = makeHandler(options);
    void handler(makeRequest());
    await vi.advanceTimersByTimeAsync(1);
    await handler.close();
  });

  test.each([
    ['the right secret → 503', SECRET, 503],
    ['a wrong secret → 401', 'another', 401],
  ])(
    'close while the `secret` function of a webhook runs; it returns %s, nothing is handled',
    async (_title, found, status) => {
      const secret = deferred<string>();
      const onEvent = vi.fn();
      const handler = makeHandler({ secret: () => secret.promise, onEvent, onRefused: () => {} });
      const responding = handler(webhook('e1'));
      await handler.close();
      secret.resolve(found);
      expect((await responding).status).toBe(status);
      expect(onEvent).not.toHaveBeenCalled();
    },
  );

  describe('the header connection: close', () => {
    const requests: [string, () => Request][] = [
      ['a webhook', () => webhook('e1')],
      ['HEAD', () => new Request('https://app.example.test/', { method: 'HEAD' })],
      ['GET', () => new Request('https://app.example.test/')],
      ['a wrong secret', () => post(E1, { authorization: 'Bearer wrong' })],
      ['no JSON', () => post('text', { 'content-type': 'text/plain' })],
      ['a body that never ends', postEndless],
    ];

    test.each(requests)('%s after close → sent', async (_title, makeRequest) => {
      const handler = makeHandler({ onRefused: () => {} });
      await handler.close();
      expect((await handler(makeRequest())).headers.get('connection')).toBe('close');
    });

    test.each(requests.slice(0, -1))('%s before close → not sent', async (_title, makeRequest) => {
      const handler = makeHandler({ onRefused: () => {} });
      expect((await handler(makeRequest())).headers.has('connection')).toBe(false);
    });

    test('a webhook that is done after close was called → sent with 200', async () => {
      const work = deferred();
      const handler = makeHandler({ onEvent: () => work.promise });
      const responding = handler(webhook('e1'));
      await vi.advanceTimersByTimeAsync(1);
      const closing = handler.close();
      work.resolve();
      await closing;
      const { status, headers } = await responding;
      expect([status, headers.get('connection')]).toEqual([200, 'close']);
    });
  });

  test('close while a body is read → 503 at once, nothing is handled', async () => {
    const onEvent = vi.fn();
    const handler = makeHandler({ onEvent });
    const responding = handler(postEndless());
    await vi.advanceTimersByTimeAsync(1);
    await handler.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(await (await responding).json()).toEqual({ success: false, outcome: 'closing' });
    expect(onEvent).not.toHaveBeenCalled();
  });

  test.each([
    ['the callback ends in time → 200', 12_000, 200],
    ['the callback runs past its deadline → 503', 100, 503],
  ])('close waits for a callback; %s', async (_title, deadlineMs, status) => {
    const work = deferred();
    const handler = makeHandler({ onEvent: () => work.promise, deadlineMs });
    const responding = handler(webhook('e1'));
    await vi.advanceTimersByTimeAsync(100);
    const closing = handler.close();
    const isClosed = watch(closing);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(isClosed()).toBe(false);
    work.resolve();
    await closing;
    expect((await responding).status).toBe(status);
  });

  test.each([
    ['a memory store → 4.5 s', undefined, 4_500],
    ['a store that limits its calls to 2 s → 2 s', 2_000, 2_000],
  ])(
    'timeoutMs of close passes, and the callback ignores its signal; %s later close resolves',
    async (_title, commandTimeoutMs, graceMs) => {
      const store = Object.assign(
        new ScriptedStore(),
        commandTimeoutMs === undefined ? {} : { commandTimeoutMs },
      );
      const handler = makeHandler({ store, onEvent: hanging });
      void handler(webhook('e1', 'e2'));
      await vi.advanceTimersByTimeAsync(1);
      const closing = handler.close({ timeoutMs: 3_000 });
      const isClosed = watch(closing);
      await vi.advanceTimersByTimeAsync(3_000 + graceMs - 1);
      expect(isClosed()).toBe(false);
      expect(await store.lease('e2')).toBe('acquired');
      await vi.advanceTimersByTimeAsync(1);
      expect(isClosed()).toBe(true);
    },
  );

  test('timeoutMs of close passes → the signal of the callback aborts, the rest is released, 503', async () => {
    const store = new ScriptedStore();
    store.on('release', () => new Promise((resolve) => setTimeout(resolve, 20)));
    let reason: unknown;
    const handler = makeHandler({
      store,
      onEvent: (_event, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason;
            resolve();
          });
        }),
    });
    const responding = handler(webhook('e1', 'e2'));
    await vi.advanceTimersByTimeAsync(1);
    const closing = handler.close({ timeoutMs: 3_000 });
    await vi.advanceTimersByTimeAsync(3_030);
    await closing;
    expect(reason).toMatchObject({ message: 'The webhook handler was closed' });
    const response = await responding;
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await store.lease('e1')).toBe('done');
    expect(await store.lease('e2')).toBe('acquired');
  });

  test('all webhooks done before timeoutMs → close resolves at once, no timer is left', async () => {
    const work = deferred();
    const handler = makeHandler({ onEvent: () => work.promise });
    const responding = handler(webhook('e1'));
    await vi.advanceTimersByTimeAsync(1);
    work.resolve();
    await handler.close({ timeoutMs: 60_000 });
    expect((await responding).status).toBe(200);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([{ timeoutMs: 2 ** 31 }, { timeout: 5_000 }, 5_000])(
    'options %o → ConfigurationError, and nothing is closed',
    async (options) => {
      const handler = makeHandler();
      // @ts-expect-error: what a caller without types may pass
      await expect(handler.close(options)).rejects.toThrow(ConfigurationError);
      expect((await handler(webhook('e1'))).status).toBe(200);
    },
  );
});

// In a Worker, timers are numbers, and an AbortController belongs to the request that made it.
describe('in a Worker', () => {
  test('timers that are numbers → a slow callback is awaited', async () => {
    const { setTimeout: start } = globalThis;
    vi.stubGlobal('setTimeout', (callback: () => void, delayMs: number) => Number(start(callback, delayMs)));
    const work = deferred();
    const responding = makeHandler({ onEvent: () => work.promise })(webhook('e1'));
    await vi.advanceTimersByTimeAsync(1_000);
    work.resolve();
    expect((await responding).status).toBe(200);
  });

  test('createWebhookHandler → no AbortController is created outside of a request', () => {
    const made = vi.fn();
    vi.stubGlobal('AbortController', made);
    makeHandler();
    expect(made).not.toHaveBeenCalled();
  });
});

test('webhooks that are done → forgotten, so a forced shutdown aborts only the signal of the one that still runs', async () => {
  const signals: AbortSignal[] = [];
  const report = { outcome: 'done' } as WebhookReport; // The handler reads nothing else.
  const process = async (_body: unknown, _callbacks: unknown, options: ProcessOptions = {}) => {
    if (options.signal !== undefined) signals.push(options.signal);
    if (signals.length === 2) throw new Error('no database');
    return signals.length === 3 ? hanging() : report;
  };
  const handler = makeHandler({ inbox: { process }, onRefused: () => {} });
  await handler(webhook('done'));
  await handler(webhook('failed'));
  void handler(webhook('under way'));
  await vi.advanceTimersByTimeAsync(1);
  const closed = handler.close({ timeoutMs: 0 });
  await vi.advanceTimersByTimeAsync(10_000);
  await closed;
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, true]);
});
