import { describe, expect, test, vi } from 'vitest';
import type { Tracking } from '../../src/index.ts';
import { EMPTY, nothingNew, pass, polledService, results, startPoll } from './polled-service.ts';

const END = { done: true, value: undefined };

describe('the end of poll', () => {
  test('isTracked false → this update is the last, and no further request is sent', async () => {
    const { reading, listStarts } = startPoll((poll) => results(['a'], poll < 3));
    await pass(10_000);
    expect(reading.items.map(({ stopped }) => stopped)).toEqual([false, false, true]);
    expect(reading.end).toEqual({});
    expect(listStarts()).toEqual([1000, 2000, 3000]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until → called with results only; the stream ends after the update for which it returns true', async () => {
    const until = vi.fn(({ events }: Tracking) => events.length > 0);
    const respondTo = (poll: number) => (poll === 1 ? EMPTY : results(poll < 4 ? [] : ['a']));
    const { reading, polls } = startPoll(respondTo, { until });
    await pass(10_000);
    expect(until).toHaveBeenCalledTimes(3);
    expect(reading.items.at(-1)).toMatchObject({ newEvents: [{ eventId: 'a' }], stopped: false });
    expect(polls).toHaveLength(4);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until throws → the stream rejects with its error, and no timer is left', async () => {
    const until = () => {
      throw new Error('mine');
    };
    const { reading } = startPoll(nothingNew, { until });
    await pass(1000);
    expect(reading.end?.error).toEqual(new Error('mine'));
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until returns a promise → the stream rejects with a ConfigurationError, and nothing is unhandled', async () => {
    const until = () => Promise.reject(new Error('mine'));
    // @ts-expect-error -- `until` must return true or false
    const { reading } = startPoll(nothingNew, { until });
    await pass(1000);
    const message = 'Expected `until` to return true or false, got a Promise';
    expect(reading.end?.error).toMatchObject({ name: 'ConfigurationError', message });
  });

  test.each([2500, 3000])(
    'maxDurationMs %d → the stream ends at that time, without a further poll',
    async (maxDurationMs) => {
      const { reading, listStarts } = startPoll(nothingNew, { maxDurationMs });
      await pass(maxDurationMs - 1);
      expect(reading.end).toBeUndefined();
      await pass(1);
      expect(reading.end).toEqual({});
      await pass(5000);
      expect(listStarts()).toEqual([1000, 2000]);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  test('maxDurationMs ends during a request → the request is aborted, and no error is thrown', async () => {
    const { reading, polls } = startPoll(nothingNew, { maxDurationMs: 2500 }, { latencyMs: 60_000 });
    await pass(2500);
    expect(reading).toEqual({ items: [], end: {} });
    expect(polls).toEqual([expect.objectContaining({ startedAt: 1000, endedAt: undefined })]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('break → no timer is left, and no further request is sent', async () => {
    const { client, listStarts } = polledService(nothingNew);
    const run = async () => {
      for await (const _ of client.trackers.poll('tracker-1', { intervalMs: 1000 })) break;
    };
    const done = run();
    await pass(1000);
    await done;
    expect(vi.getTimerCount()).toBe(0);
    await pass(10_000);
    expect(listStarts()).toEqual([1000]);
  });

  test.each([
    ['the wait for the next poll', 500, []],
    ['a request', 1500, [1000]],
  ])('return() during %s → the stream ends at once, without a timer', async (_, atMs, starts) => {
    const { client, polls, listStarts } = polledService(nothingNew, { latencyMs: 60_000 });
    const stream = client.trackers.poll('tracker-1', { intervalMs: 1000 });
    const pending = stream.next();
    await pass(atMs);
    expect(await stream.return()).toEqual(END);
    expect(vi.getTimerCount()).toBe(0);
    expect(await pending).toEqual(END);
    expect(await stream.next()).toEqual(END);
    await pass(10_000);
    expect(listStarts()).toEqual(starts);
    expect(polls.every(({ endedAt }) => endedAt === undefined)).toBe(true);
  });

  test.each([
    ['before it begins', 0, []],
    ['during the first wait', 500, []],
    ['during a request', 1200, [1000]],
    ['during a later wait', 1700, [1000]],
  ])('an abort %s → rejects with the reason, without a timer or a warning', async (_, atMs, starts) => {
    const controller = new AbortController();
    const reason = new Error('enough');
    if (atMs === 0) controller.abort(reason);
    const options = { signal: controller.signal };
    const { reading, listStarts, warn } = startPoll(nothingNew, options, { latencyMs: 400 });
    await pass(atMs);
    controller.abort(reason);
    await pass(0);
    expect(reading.end?.error).toBe(reason);
    await pass(10_000);
    expect(listStarts()).toEqual(starts);
    expect(vi.getTimerCount()).toBe(0);
    expect(warn).not.toHaveBeenCalled();
  });

  test('an abort between two reads → the next read rejects with the reason', async () => {
    const { client } = polledService(nothingNew);
    const controller = new AbortController();
    const stream = client.trackers.poll('tracker-1', { initialDelayMs: 0, signal: controller.signal });
    await stream.next();
    controller.abort('a reason that is no error');
    await expect(stream.next()).rejects.toBe('a reason that is no error');
    expect(await stream.next()).toEqual(END);
  });
});

describe('waitUntilStopped', () => {
  test('isTracked turns false → resolves to those results', async () => {
    const { client } = polledService((poll) => results(['a', 'b'].slice(0, poll), poll < 2));
    const waiting = client.trackers.waitUntilStopped('tracker-1', { intervalMs: 1000 });
    await pass(2000);
    expect(await waiting).toMatchObject({
      tracker: { isTracked: false },
      events: [{ eventId: 'a' }, { eventId: 'b' }],
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until → resolves to the results for which it returns true', async () => {
    const { client } = polledService((poll) => results(['a', 'b', 'c'].slice(0, poll)));
    const until = ({ events }: Tracking) => events.length === 2;
    const waiting = client.trackers.waitUntilStopped('tracker-1', { intervalMs: 1000, until });
    await pass(2000);
    expect((await waiting).events).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until returns a promise → rejects with a ConfigurationError, and no timer is left', async () => {
    const { client } = polledService(nothingNew);
    const until = () => Promise.reject(new Error('mine'));
    // @ts-expect-error -- `until` must return true or false
    const waiting = client.trackers.waitUntilStopped('tracker-1', { initialDelayMs: 0, until });
    await expect(waiting).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: 'Expected `until` to return true or false, got a Promise',
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('maxDurationMs runs out → TimeoutError that names maxDurationMs', async () => {
    const { client } = polledService(nothingNew);
    const options = { intervalMs: 1000, maxDurationMs: 2500 };
    const outcome = expect(client.trackers.waitUntilStopped('tracker-1', options)).rejects.toMatchObject({
      name: 'TimeoutError',
      timeoutMs: 2500,
      message:
        'The service was still tracking `tracker-1` after 2500 ms (`maxDurationMs`); wait again, or raise `maxDurationMs`',
    });
    await pass(2500);
    await outcome;
  });
});
