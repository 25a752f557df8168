import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { makeHandler, post, SECRET } from './make-handler.ts';
import { deferred, makeInbox, makeSignalInbox, payload, ScriptedStore, tracking } from './support.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('deadline', () => {
  test('handler hangs past 12 s → 503 with Retry-After', async () => {
    const answering = makeHandler({ onEvent: () => new Promise(() => {}) })(
      post(payload(tracking('t1', 'e1'))),
    );
    await vi.advanceTimersByTimeAsync(12_000);
    const response = await answering;
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30']);
    expect(await response.json()).toEqual({ success: false, outcome: 'deadline' });
  });

  test('handler finishes after the deadline → the redelivery sees it done, handled once', async () => {
    const work = deferred();
    const handle = vi.fn(() => work.promise);
    const handler = makeHandler({ onEvent: handle, deadlineMs: 1_000 });
    const first = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await first).status).toBe(503);
    work.resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(200);
    expect(handle).toHaveBeenCalledOnce();
  });

  test('redelivery while the handler still hangs → 503, the handler is not called again', async () => {
    const handle = vi.fn(() => new Promise(() => {}));
    const handler = makeHandler({ onEvent: handle });
    const first = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(12_000);
    await first;
    const second = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(12_000);
    expect((await second).status).toBe(503);
    expect(handle).toHaveBeenCalledOnce();
  });

  test('a `secret` function that never answers → 503 at the deadline, nothing handled', async () => {
    const handle = vi.fn();
    const handler = makeHandler({ secret: () => new Promise(() => {}), onEvent: handle, deadlineMs: 1_000 });
    const responding = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await responding).status).toBe(503);
    expect(handle).not.toHaveBeenCalled();
  });

  test('a body that never ends → 503 at the deadline', async () => {
    const stalled = new ReadableStream<Uint8Array>({ start() {} });
    const answering = makeHandler()(post(stalled));
    await vi.advanceTimersByTimeAsync(12_000);
    expect((await answering).status).toBe(503);
  });

  test('half of it passed with a slow body, then busy elsewhere → busy, in time for the answer to get out', async () => {
    const store = new MemoryDedupeStore();
    await store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 600_000 });
    const slow = new ReadableStream<Uint8Array>({
      start(controller) {
        setTimeout(() => {
          controller.enqueue(new TextEncoder().encode(JSON.stringify(payload(tracking('t1', 'e1')))));
          controller.close();
        }, 6_000);
      },
    });
    const answering = makeHandler({ inbox: makeInbox({ store }) })(post(slow));
    await vi.advanceTimersByTimeAsync(12_000);
    expect(await (await answering).json()).toEqual({ success: false, outcome: 'busy' });
  });

  test('answered in time → no timer is left behind', async () => {
    await makeHandler()(post(payload(tracking('t1', 'e1'))));
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('close', () => {
  test('after it → 503 with Retry-After, nothing handled', async () => {
    const handle = vi.fn();
    const handler = makeHandler({ onEvent: handle });
    await handler.close();
    const response = await handler(post(payload(tracking('t1', 'e1'))));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(handle).not.toHaveBeenCalled();
  });

  test('after it → HEAD is 503 and empty, a wrong bearer still 401', async () => {
    const handler = makeHandler();
    await handler.close();
    const head = await handler(new Request('https://app.example.test/', { method: 'HEAD' }));
    expect([head.status, head.headers.get('retry-after'), await head.text()]).toEqual([503, '5', '']);
    expect((await handler(post({}, { authorization: 'Bearer wrong' }))).status).toBe(401);
  });

  test('right after a webhook came → that one is still handled', async () => {
    const handler = makeHandler();
    const answering = handler(post(payload(tracking('t1', 'e1'))));
    await handler.close();
    expect((await answering).status).toBe(200);
  });

  test('while a handler runs → resolves when it is done, and that webhook is answered with 200', async () => {
    const work = deferred();
    const handler = makeHandler({ onEvent: () => work.promise });
    const answering = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(1);
    let closed = false;
    const closing = handler.close().then(() => {
      closed = true;
    });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(closed).toBe(false);
    work.resolve();
    await closing;
    expect((await answering).status).toBe(200);
  });

  test('while a handler runs past its deadline → still waits for it', async () => {
    const work = deferred();
    const handler = makeHandler({ onEvent: () => work.promise, deadlineMs: 100 });
    const answering = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(100);
    await answering;
    let closed = false;
    const closing = handler.close().then(() => {
      closed = true;
    });
    await vi.advanceTimersByTimeAsync(1);
    expect(closed).toBe(false);
    work.resolve();
    await closing;
    expect(closed).toBe(true);
  });

  test('timeoutMs passes → the running handler is told, what has not begun is given back, 503', async () => {
    const inbox = makeInbox();
    const handler = makeHandler({
      inbox,
      onEvent: (_event, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
    });
    const answering = handler(post(payload(tracking('t1', 'e1', 'e2'))));
    await vi.advanceTimersByTimeAsync(1);
    const closing = handler.close({ timeoutMs: 3_000 });
    await vi.advanceTimersByTimeAsync(3_000);
    await closing;
    expect((await answering).status).toBe(503);
    expect(await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {})).toMatchObject({
      handled: 1,
      duplicates: 1,
    });
  });

  test('timeoutMs passes after another webhook was done → the running handler is told all the same', async () => {
    const signals: AbortSignal[] = [];
    const handler = makeHandler({
      onEvent: ({ eventId }, { signal }) => {
        signals.push(signal);
        return eventId === 'e1' ? undefined : new Promise(() => {});
      },
    });
    const first = handler(post(payload(tracking('t1', 'e1'))));
    void handler(post(payload(tracking('t2', 'e2'))));
    await first;
    await vi.advanceTimersByTimeAsync(1);
    const closing = handler.close({ timeoutMs: 1_000 });
    await vi.advanceTimersByTimeAsync(2_000);
    await closing;
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  test('everything is done before timeoutMs → no signal is aborted', async () => {
    const { signals, inbox } = makeSignalInbox();
    const handler = makeHandler({ inbox });
    await handler(post(payload(tracking('t1', 'e1'))));
    await handler.close({ timeoutMs: 1_000 });
    expect(signals.map((signal) => signal?.aborted)).toEqual([false]);
  });

  test('a `secret` function that resolves after it → the webhook that came before is still handled', async () => {
    const secret = deferred<string>();
    const handler = makeHandler({ secret: () => secret.promise });
    const responding = handler(post(payload(tracking('t1', 'e1'))));
    const closing = handler.close();
    secret.resolve(SECRET);
    await closing;
    expect((await responding).status).toBe(200);
  });

  test('a callback that never ends and a timeoutMs of 500 → resolves within 600 ms', async () => {
    const handler = makeHandler({ onEvent: () => new Promise(() => {}) });
    void handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(1);
    const startedAt = performance.now();
    const closing = handler.close({ timeoutMs: 500 }).then(() => performance.now() - startedAt);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await closing).toBeLessThanOrEqual(600);
  });

  test('timeoutMs passes, and the store is slow → resolves when the undone work is given back', async () => {
    const store = new ScriptedStore();
    let isGivenBack = false;
    store.before = async (operation) => {
      if (operation !== 'release') return;
      await new Promise((resolve) => setTimeout(resolve, 20));
      isGivenBack = true;
    };
    const handler = makeHandler({
      inbox: makeInbox({ store }),
      onEvent: (_event, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
    });
    void handler(post(payload(tracking('t1', 'e1', 'e2'))));
    await vi.advanceTimersByTimeAsync(1);
    const closing = handler.close({ timeoutMs: 1_000 }).then(() => isGivenBack);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await closing).toBe(true);
  });

  test('a handler that never ends and a timeoutMs → resolves all the same', async () => {
    const handler = makeHandler({ onEvent: () => new Promise(() => {}) });
    void handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(1);
    const closing = handler.close({ timeoutMs: 1_000 });
    await vi.advanceTimersByTimeAsync(2_000);
    await expect(closing).resolves.toBeUndefined();
  });

  test.each([Number.POSITIVE_INFINITY, 2 ** 31, -5, Number.NaN, 'soon'])(
    'timeoutMs %s, which no timer can hold → ConfigurationError, and the work goes on',
    async (timeoutMs) => {
      const work = deferred();
      const handler = makeHandler({ onEvent: () => work.promise });
      const answering = handler(post(payload(tracking('t1', 'e1'))));
      await vi.advanceTimersByTimeAsync(1);
      // @ts-expect-error: what a caller without types may pass
      await expect(handler.close({ timeoutMs })).rejects.toThrow(ConfigurationError);
      work.resolve();
      expect((await answering).status).toBe(200);
      expect((await handler(post(payload(tracking('t1', 'e2'))))).status).toBe(200);
    },
  );

  test.each([5_000, { timeout: 5_000 }])('%j instead of options → ConfigurationError', async (options) => {
    // @ts-expect-error: what a caller without types may pass
    await expect(makeHandler().close(options)).rejects.toThrow(ConfigurationError);
  });

  test('nothing under way and a timeoutMs → resolves at once, no timer is left behind', async () => {
    await makeHandler().close({ timeoutMs: 60_000 });
    expect(vi.getTimerCount()).toBe(0);
  });
});
