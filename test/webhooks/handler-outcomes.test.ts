import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryDedupeStore, type WebhookReport } from '../../src/webhooks/index.ts';
import { makeHandler, post } from './make-handler.ts';
import { makeInbox, payload, proofOfDelivery, ScriptedStore, tracking } from './support.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('outcomes', () => {
  test('everything handled → 200 with success true', async () => {
    const response = await makeHandler()(post(payload(tracking('t1', 'e1'))));
    expect([response.status, await response.json()]).toEqual([200, { success: true, outcome: 'done' }]);
    expect(response.headers.has('retry-after')).toBe(false);
  });

  test('everything handled before → 200', async () => {
    const handler = makeHandler();
    await handler(post(payload(tracking('t1', 'e1'))));
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(200);
  });

  test('the flat shape → handled, 200', async () => {
    const ids: unknown[] = [];
    const handler = makeHandler({ onEvent: (event) => ids.push(event.eventId) });
    const response = await handler(
      post({ trackerId: 't1', clientTrackerId: 'c1', events: [{ eventId: 'e1' }] }),
    );
    expect([response.status, ids]).toEqual([200, ['e1']]);
  });

  test('no valid item → 422 with success false', async () => {
    const response = await makeHandler()(post({ hello: 'world' }));
    expect([response.status, await response.json()]).toEqual([422, { success: false, outcome: 'rejected' }]);
  });

  test('one invalid item → the valid one handled, 422', async () => {
    const ids: unknown[] = [];
    const handler = makeHandler({ onEvent: (event) => ids.push(event.eventId) });
    const response = await handler(post(payload({ broken: true }, tracking('t1', 'e1'))));
    expect([response.status, ids]).toEqual([422, ['e1']]);
  });

  test.each<[string, object]>([
    ['unknown topic', payload({ metadata: { topic: 'tracking/weather' } })],
    ['proof of delivery without callback', payload(proofOfDelivery('t1'))],
  ])('%s → 200 and onOther', async (_title, body) => {
    const onOther = vi.fn();
    expect((await makeHandler({ onOther })(post(body))).status).toBe(200);
    expect(onOther).toHaveBeenCalledOnce();
  });

  test('no handler at all → 200 and onOther', async () => {
    const onOther = vi.fn();
    const handler = makeHandler({ onEvent: undefined, onOther });
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(200);
    expect(onOther).toHaveBeenCalledOnce();
  });

  test('empty `events` → 200 and onOther', async () => {
    const onOther = vi.fn();
    expect((await makeHandler({ onOther })(post(payload(tracking('t1'))))).status).toBe(200);
    expect(onOther).toHaveBeenCalledOnce();
  });

  test('onEvents and onProofOfDelivery → called', async () => {
    const onEvents = vi.fn();
    const onProofOfDelivery = vi.fn();
    const handler = makeHandler({ onEvent: undefined, onEvents, onProofOfDelivery });
    await handler(post(payload(tracking('t1', 'e1'), proofOfDelivery('t1'))));
    expect(onEvents).toHaveBeenCalledOnce();
    expect(onProofOfDelivery).toHaveBeenCalledOnce();
  });

  test('handler throws → 500', async () => {
    const handler = makeHandler({
      onEvent: () => {
        throw new Error('no database');
      },
    });
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(500);
  });

  test('handler rejects without a reason → 500', async () => {
    const handler = makeHandler({ onEvent: () => Promise.reject() });
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(500);
  });

  test('handler fails, and an item is invalid → 500: the failed event has to come again', async () => {
    const handler = makeHandler({ onEvent: () => Promise.reject() });
    expect((await handler(post(payload(tracking('t1', 'e1'), {})))).status).toBe(500);
  });

  test('busy elsewhere → 503 with the end of the lease in Retry-After', async () => {
    const store = new MemoryDedupeStore();
    await store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 42_000 });
    const handler = makeHandler({ inbox: makeInbox({ store, busyTimeoutMs: 0 }) });
    const response = await handler(post(payload(tracking('t1', 'e1'))));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '42']);
  });

  test('one event busy elsewhere, another fails → 500 without Retry-After', async () => {
    const store = new MemoryDedupeStore();
    await store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 42_000 });
    const inbox = makeInbox({ store, busyTimeoutMs: 0 });
    const handler = makeHandler({ inbox, onEvent: () => Promise.reject(new Error('no database')) });
    const response = await handler(post(payload(tracking('t1', 'e1'), tracking('t2', 'e2'))));
    expect([response.status, response.headers.get('retry-after')]).toEqual([500, null]);
  });

  test('busy elsewhere for 3 s, in a process that has run for long → waited for, 200', async () => {
    await vi.advanceTimersByTimeAsync(100_000);
    const store = new MemoryDedupeStore();
    await store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 3_000 });
    const answering = makeHandler({ inbox: makeInbox({ store }) })(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(11_500);
    expect((await answering).status).toBe(200);
  });

  test('busy elsewhere for longer than the deadline → 503 before the deadline', async () => {
    const store = new MemoryDedupeStore();
    await store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 600_000 });
    const handler = makeHandler({ inbox: makeInbox({ store }) });
    const answering = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(11_500);
    expect(await (await answering).json()).toEqual({ success: false, outcome: 'busy' });
  });

  test('store down → 503 with Retry-After', async () => {
    const store = new ScriptedStore();
    store.before = () => Promise.reject(new Error('connection refused'));
    const response = await makeHandler({ inbox: makeInbox({ store }) })(post(payload(tracking('t1', 'e1'))));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30']);
  });

  test('store hangs → 503 within 5 s, not at the deadline', async () => {
    const store = new ScriptedStore();
    store.before = () => new Promise(() => {});
    const responding = makeHandler({ inbox: makeInbox({ store }) })(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await (await responding).json()).toEqual({ success: false, outcome: 'unavailable' });
  });

  test('store fails on commits past the deadline → 503 stands, the tries go on, the redelivery is not handled again', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'commit') throw new Error('connection reset');
    };
    const onEvent = vi.fn(() => new Promise((resolve) => setTimeout(resolve, 8_000)));
    const handler = makeHandler({ inbox: makeInbox({ store }), onEvent });
    const first = handler(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(12_000);
    expect((await first).status).toBe(503);
    store.before = () => {};
    await vi.advanceTimersByTimeAsync(2_000);
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(200);
    expect(onEvent).toHaveBeenCalledOnce();
  });

  test('store fails on commit → 200: nothing is lost, and a 503 would make a repeat certain', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'commit') throw new Error('connection reset');
    };
    const answering = makeHandler({ inbox: makeInbox({ store }) })(post(payload(tracking('t1', 'e1'))));
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await answering).status).toBe(200);
  });

  test('an inbox that throws → 500, told to onRefused', async () => {
    const broken = new Error('out of order');
    const refusals: unknown[] = [];
    const handler = makeHandler({
      inbox: { process: () => Promise.reject(broken) },
      onRefused: (error) => refusals.push(error),
    });
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(500);
    expect(refusals).toEqual([broken]);
  });

  test('any outcome → told to onReport', async () => {
    const reports: WebhookReport[] = [];
    await makeHandler({ onReport: (report) => reports.push(report) })(post(payload(tracking('t1', 'e1'))));
    expect(reports).toMatchObject([{ outcome: 'done', handled: 1 }]);
  });

  test('onReport throws → the answer is the same', async () => {
    const handler = makeHandler({
      onReport: () => {
        throw new Error('no metrics');
      },
    });
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(200);
  });
});
