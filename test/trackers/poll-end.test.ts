import { describe, expect, test, vi } from 'vitest';
import type { Tracking } from '../../src/index.ts';
import { pass, polledService, read, results } from './polled-service.ts';

describe('the end', () => {
  test('isTracked false → that update is the last, and nothing is sent after it', async () => {
    const { client, startsOf } = polledService((poll) => results(['a'], poll < 3));
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(10_000);
    expect(reading.items.map(({ stopped }) => stopped)).toEqual([false, false, true]);
    expect(reading.end).toEqual({});
    expect(startsOf()).toEqual([1000, 2000, 3000]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until → is asked about results only, and the update it likes is the last', async () => {
    const asked: Tracking[] = [];
    const { client, startsOf } = polledService((poll) =>
      poll === 1 ? { body: { data: { trackings: [] } } } : results(poll < 4 ? [] : ['a']),
    );
    const until = (tracking: Tracking) => {
      asked.push(tracking);
      return tracking.events.length > 0;
    };
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000, until }));
    await pass(10_000);
    expect(asked).toHaveLength(3);
    expect(reading.items.at(-1)).toMatchObject({ newEvents: [{ eventId: 'a' }], stopped: false });
    expect(startsOf()).toHaveLength(4);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until throws → the reader gets its error, and no timer is left', async () => {
    const { client } = polledService(() => results([]));
    const until = () => {
      throw new Error('mine');
    };
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000, until }));
    await pass(1000);
    expect(reading.end?.error).toEqual(new Error('mine'));
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([2500, 3000])(
    'maxDurationMs %d → ends then, and no poll comes after it',
    async (maxDurationMs) => {
      const { client, startsOf } = polledService(() => results([]));
      const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000, maxDurationMs }));
      await pass(maxDurationMs - 1);
      expect(reading.end).toBeUndefined();
      await pass(1);
      expect(reading.end).toEqual({});
      await pass(5000);
      expect(startsOf()).toEqual([1000, 2000]);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  test('maxDurationMs while a request is under way → the request is given up, and no error is thrown', async () => {
    const { client, polls } = polledService(() => results([]), 60_000);
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000, maxDurationMs: 2500 }));
    await pass(2500);
    expect(reading.items).toEqual([]);
    expect(reading.end).toEqual({});
    expect(polls).toEqual([expect.objectContaining({ startedAt: 1000, endedAt: undefined })]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('break → no timer is left, and nothing is sent after it', async () => {
    const { client, startsOf } = polledService(() => results([]));
    const run = async () => {
      for await (const _ of client.trackers.poll('tracker-1', { intervalMs: 1000 })) break;
    };
    const done = run();
    await pass(1000);
    await done;
    await pass(10_000);
    expect(startsOf()).toEqual([1000]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('return() during the wait for the next poll → the wait ends at once, without a timer', async () => {
    const { client, startsOf } = polledService(() => results([]));
    const polls = client.trackers.poll('tracker-1', { intervalMs: 1000 });
    const pending = polls.next();
    await pass(500);
    const returned = polls.return();
    expect(vi.getTimerCount()).toBe(0);
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(await returned).toEqual({ done: true, value: undefined });
    expect(await polls.next()).toEqual({ done: true, value: undefined });
    await pass(10_000);
    expect(startsOf()).toEqual([]);
  });

  test('return() during a request → the request is given up', async () => {
    const { client, polls } = polledService(() => results([]), 60_000);
    const stream = client.trackers.poll('tracker-1', { intervalMs: 1000 });
    const pending = stream.next();
    await pass(1500);
    await stream.return();
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(polls[0]?.endedAt).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    ['before it begins', 0, []],
    ['during the first wait', 500, []],
    ['during a request', 1200, [1000]],
    ['during a later wait', 1700, [1000]],
  ])('an abort %s → rejects with the reason, without a timer', async (_, atMs, starts) => {
    const { client, startsOf } = polledService(() => results([]), 400);
    const controller = new AbortController();
    const reason = new Error('enough');
    if (atMs === 0) controller.abort(reason);
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000, signal: controller.signal }));
    await pass(atMs);
    controller.abort(reason);
    await pass(0);
    expect(reading.end?.error).toBe(reason);
    await pass(10_000);
    expect(startsOf()).toEqual(starts);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an abort while the reader is busy → its next read rejects with the reason', async () => {
    const { client } = polledService(() => results([]));
    const controller = new AbortController();
    const polls = client.trackers.poll('tracker-1', { initialDelayMs: 0, signal: controller.signal });
    const first = polls.next();
    await pass(0);
    await first;
    controller.abort('a reason that is no error');
    await expect(polls.next()).rejects.toBe('a reason that is no error');
    expect(await polls.next()).toEqual({ done: true, value: undefined });
  });
});
