import { describe, expect, test, vi } from 'vitest';
import { idsOf, pass, polledService, read, results } from './polled-service.ts';

describe('where ids come from', () => {
  test('an async iterable → ids join as they come, and the stream goes on until it is over', async () => {
    const { client, startsOf } = polledService((poll) => results([], poll < 2));
    async function* ids() {
      yield 'tracker-0';
      await new Promise((resolve) => setTimeout(resolve, 10_000));
      yield 'tracker-1';
    }
    const reading = read(client.trackers.pollMany(ids(), { intervalMs: 1000 }));
    await pass(9000);
    expect(reading.end).toBeUndefined();
    await pass(3000);
    expect(startsOf('tracker-1')).toEqual([11_000, 12_000]);
    expect(reading.end).toEqual({});
  });

  test('100,000 ids of an array → are read in batches, and timers have their turn in between', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(100_000));
    read(stream);
    await pass(1);
    expect(stream.size).toBeLessThan(5000);
    await pass(1000);
    expect(stream.size).toBe(100_000);
    await stream.return();
  });

  test('ids without end that are due at once → no more are read than are polled soon', async () => {
    const { client, polls } = polledService(() => results([]));
    let taken = 0;
    function* ids() {
      for (;;) {
        taken += 1;
        yield `tracker-${taken}`;
      }
    }
    const stream = client.trackers.pollMany(ids(), { initialDelayMs: 0, maxPerSecond: 10 });
    read(stream);
    await pass(60_000);
    expect(polls).toHaveLength(601);
    expect(taken).toBeLessThanOrEqual(polls.length + 1000);
    await stream.return();
  });

  test('more ids than can be polled in an interval → each is polled, those read late as well', async () => {
    const { client, polls } = polledService(() => results([]));
    const options = { initialDelayMs: 0, intervalMs: 10_000, maxPerSecond: 20 };
    const stream = client.trackers.pollMany(idsOf(520), options);
    read(stream);
    await pass(40_000);
    expect(new Set(polls.map(({ id }) => id)).size).toBe(520);
    await stream.return();
  });

  test('ids that throw → the reader gets their error, and nothing is sent', async () => {
    const { client, polls } = polledService(() => results([]));
    function* ids() {
      yield 'tracker-0';
      throw new Error('mine');
    }
    const reading = read(client.trackers.pollMany(ids(), { initialDelayMs: 0 }));
    await pass(1000);
    expect(reading.end?.error).toEqual(new Error('mine'));
    expect(polls).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('ids that throw while the reader is behind → what was polled is read, then the error', async () => {
    const { client, polls } = polledService(() => results([]));
    async function* ids() {
      yield* idsOf(5);
      await new Promise((resolve) => setTimeout(resolve, 2500));
      throw new Error('mine');
    }
    const reading = read(client.trackers.pollMany(ids(), { intervalMs: 1000 }), 400);
    await pass(2500);
    const sent = polls.length;
    await pass(7500);
    expect(reading.end?.error).toEqual(new Error('mine'));
    expect(polls).toHaveLength(sent);
    expect(reading.items).toHaveLength(sent);
  });
});

describe('the end', () => {
  test('every tracker stopped → the stream ends, without a timer', async () => {
    const { client } = polledService((poll, id) => results([], poll < (id === 'tracker-0' ? 2 : 4)));
    const stream = client.trackers.pollMany(idsOf(2), { intervalMs: 1000 });
    const reading = read(stream);
    await pass(4000);
    expect(reading.end).toEqual({});
    expect(stream.size).toBe(0);
    expect(reading.items).toHaveLength(6);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('no poll falls due before maxDurationMs ends → stays open, and an id that joins is polled', async () => {
    const { client, startsOf } = polledService(() => results([]));
    const stream = client.trackers.pollMany(['slow'], {
      intervalMs: ({ id }) => (id === 'slow' ? 60_000 : 1000),
      maxDurationMs: 4500,
    });
    const reading = read(stream);
    await pass(2000);
    expect(reading.end).toBeUndefined();
    stream.add('fast');
    await pass(2500);
    expect(startsOf()).toEqual([3000, 4000]);
    expect(reading.end).toEqual({});
  });

  test('maxDurationMs longer than a timer can hold, and no tracker → ends then', async () => {
    const { client } = polledService(() => results([]));
    const ids = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
    const reading = read(client.trackers.pollMany(ids, { maxDurationMs: 2 ** 32 }));
    await pass(2 ** 32 - 1);
    expect(reading.end).toBeUndefined();
    await pass(1);
    expect(reading.end).toEqual({});
  });

  test('left in the middle → no tracker is polled any more', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(2), { initialDelayMs: 0 });
    await stream.next();
    expect(stream.size).toBe(2);
    await stream.return();
    expect(stream.size).toBe(0);
    expect(stream.delete('tracker-0')).toBe(false);
  });
});
