import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { onAbort } from '../../src/common/abort.ts';
import { sleep } from '../../src/common/clock.ts';
import { catchRejection } from '../support/make-client.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
describe('onAbort', () => {
  test('a signal that has aborted → the callback is called at once', () => {
    const callback = vi.fn();
    onAbort(AbortSignal.abort(), callback);
    expect(callback).toHaveBeenCalledOnce();
  });

  test('an abort → every callback is called once, in the order in which they were added', () => {
    const controller = new AbortController();
    const order: number[] = [];
    onAbort(controller.signal, () => order.push(1));
    onAbort(controller.signal, () => order.push(2));
    controller.abort();
    controller.abort();
    expect(order).toEqual([1, 2]);
  });

  test('a callback that was removed → not called', () => {
    const controller = new AbortController();
    const callback = vi.fn();
    onAbort(controller.signal, callback)();
    controller.abort();
    expect(callback).not.toHaveBeenCalled();
  });

  test('a callback that an earlier callback removes during the abort → not called', () => {
    const controller = new AbortController();
    const callback = vi.fn();
    let remove = () => {};
    onAbort(controller.signal, () => remove());
    remove = onAbort(controller.signal, callback);
    controller.abort();
    expect(callback).not.toHaveBeenCalled();
  });
});

describe('sleep', () => {
  test('the time has passed → resolves then, and leaves no timer or listener', async () => {
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
    'an abort with %s → rejects with that reason, and leaves no timer',
    async (reason) => {
      const controller = new AbortController();
      const rejection = catchRejection(sleep(100, controller.signal));
      controller.abort(reason);
      expect(await rejection).toBe(reason);
      expect(vi.getTimerCount()).toBe(0);
    },
  );
});
