import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { onAbort, sleep } from '../../src/common/clock.ts';
import { rejectionOf } from '../support/make-client.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('onAbort', () => {
  test('a signal that has aborted → called at once', () => {
    const callback = vi.fn();
    onAbort(AbortSignal.abort(), callback);
    expect(callback).toHaveBeenCalledOnce();
  });

  test('an abort → every callback once, in the order they came', () => {
    const controller = new AbortController();
    const order: number[] = [];
    onAbort(controller.signal, () => order.push(1));
    onAbort(controller.signal, () => order.push(2));
    controller.abort();
    controller.abort();
    expect(order).toEqual([1, 2]);
  });

  test('taken back → not called', () => {
    const controller = new AbortController();
    const callback = vi.fn();
    onAbort(controller.signal, callback)();
    controller.abort();
    expect(callback).not.toHaveBeenCalled();
  });

  test('taken back while the others are called → not called any more', () => {
    const controller = new AbortController();
    const callback = vi.fn();
    let takeBack = () => {};
    onAbort(controller.signal, () => takeBack());
    takeBack = onAbort(controller.signal, callback);
    controller.abort();
    expect(callback).not.toHaveBeenCalled();
  });
});

describe('sleep', () => {
  test('the time is over, and not before → resolves, and nothing is left', async () => {
    const { signal } = new AbortController();
    const done = vi.fn();
    void sleep(100, signal).then(done);
    await vi.advanceTimersByTimeAsync(99);
    expect(done).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(done).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test.each(['stop', null, new Error('stop')])(
    'an abort with %s → rejects with it, the timer is gone',
    async (reason) => {
      const controller = new AbortController();
      const rejection = rejectionOf(sleep(100, controller.signal));
      controller.abort(reason);
      expect(await rejection).toBe(reason);
      expect(vi.getTimerCount()).toBe(0);
    },
  );
});
