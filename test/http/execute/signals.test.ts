import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { TrackingError } from '../../../src/errors.ts';
import type { TrackingClientOptions } from '../../../src/options.ts';
import { catchRejection, makeClient, type Step } from '../../support/make-client.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
const REASONS = [
  ['a string', 'enough'],
  ['null', null],
  ['a number', 7],
  ['an error of your own', new RangeError('enough')],
  // The call must not add its `callId` and other facts to it.
  ['a frozen TrackingError', Object.freeze(new TrackingError('enough'))],
] as const;
const never = () => new Promise<Response>(() => {});
const stalled = () =>
  new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{')) }), {
    headers: { 'content-type': 'application/json' },
  });

/** Each case starts a call that waits in one phase until the signal aborts. */
const WAITS: [what: string, script: Step, options: TrackingClientOptions, requests: number][] = [
  ['the key', {}, { apiKey: () => new Promise(() => {}) }, 0],
  ['the headers', never, {}, 1],
  ['the body', stalled, {}, 1],
  ['the next attempt', { status: 503, headers: { 'retry-after': '30' } }, {}, 1],
  ['a token, after a 429', { status: 429, headers: { 'retry-after': '30' } }, { rateLimit: {} }, 1],
];

describe.each(REASONS)('an abort with %s', (_name, reason) => {
  test.each(WAITS)('while waiting for %s → rejects at once, nothing more is sent', async (...row) => {
    const [, script, options, count] = row;
    const { client, requests } = makeClient(script, options);
    const controller = new AbortController();
    const rejection = catchRejection(client.couriers.list({ signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(1_000);
    controller.abort(reason);
    expect(await rejection).toBe(reason);
    expect(client.rateLimits()['couriers.list'].queued).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    await vi.runAllTimersAsync();
    expect(requests).toHaveLength(count);
  });

  test('before the call → rejects with the reason, nothing is sent, the key function is not called', async () => {
    const apiKey = vi.fn(() => 'key');
    const { client, requests } = makeClient({}, { apiKey });
    expect(await catchRejection(client.couriers.list({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(requests).toHaveLength(0);
    expect(apiKey).not.toHaveBeenCalled();
  });

  test('right after the call → rejects with the reason, nothing is sent', async () => {
    const { client, requests } = makeClient();
    const controller = new AbortController();
    const call = client.couriers.list({ signal: controller.signal });
    controller.abort(reason);
    expect(await catchRejection(call)).toBe(reason);
    expect(requests).toHaveLength(0);
  });
});

test('an abort without a reason → the AbortError of the platform', async () => {
  const controller = new AbortController();
  const { client } = makeClient(never);
  const rejection = catchRejection(client.couriers.list({ signal: controller.signal }));
  await vi.advanceTimersByTimeAsync(1);
  controller.abort();
  expect(await rejection).toMatchObject({ name: 'AbortError' });
});

test('an abort after the response → changes nothing', async () => {
  const controller = new AbortController();
  const { client } = makeClient({ body: { data: [] } });
  const call = client.couriers.list({ signal: controller.signal });
  expect(await call).toEqual([]);
  controller.abort('late');
  expect(await call).toEqual([]);
});

test('a hundred calls with one signal → one listener while they last, and none after them', async () => {
  const controller = new AbortController();
  const { client } = makeClient({ body: { data: [] } });
  const calls = Array.from({ length: 100 }, () => client.couriers.list({ signal: controller.signal }));
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
  await Promise.all(calls);
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
});
