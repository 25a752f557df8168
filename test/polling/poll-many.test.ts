import { describe, expect, test, vi } from 'vitest';
import {
  listIds,
  makeIds,
  NOT_FOUND,
  NOT_READY,
  nothingNew,
  pass,
  polledService,
  read,
  record,
  results,
  startPollMany,
} from './polled-service.ts';

describe('when polls happen', () => {
  test('10,000 waiting trackers → one timer, and ids are read in batches so that other timers run', async () => {
    const { stream } = startPollMany(nothingNew, makeIds(10_000), { intervalMs: 900_000 });
    await pass(1);
    expect(stream.size).toBeLessThan(2000);
    await pass(1000);
    expect(stream.size).toBe(10_000);
    expect(vi.getTimerCount()).toBe(1);
    await stream.return();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a consumer that stops reading → no more polls than concurrency, and no timer', async () => {
    const { client, polls } = polledService(nothingNew);
    const stream = client.trackers.pollMany(makeIds(20), { intervalMs: 1000, concurrency: 3 });
    const first = stream.next();
    await pass(1000);
    await first;
    await pass(60_000);
    expect(polls).toHaveLength(3);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('maxPerSecond', () => {
  test.each([
    ['while turns wait', [500]],
    ['while no turn waits', [5_000]],
    ['twice', [5_000, 15_000]],
  ])('the wall clock is set back by a day %s → polls go on at the same pace', async (_, setBackAt) => {
    const options = { initialDelayMs: 0, intervalMs: 10_000, maxPerSecond: 1 };
    const { listStarts, stream } = startPollMany(nothingNew, makeIds(3), options);
    let passedMs = 0;
    for (const atMs of setBackAt) {
      await pass(atMs - passedMs);
      passedMs = atMs;
      vi.setSystemTime(Date.now() - 86_400_000);
    }
    await pass(25_000 - passedMs);
    const starts = listStarts();
    expect(starts).toHaveLength(9);
    for (const [index, start] of starts.entries()) {
      const wantedMs =
        index % 3 === 0 ? (starts[index - 3] ?? -10_000) + 10_000 : (starts[index - 1] ?? 0) + 1_000;
      expect(start - wantedMs).toBeGreaterThanOrEqual(0);
      expect(start - wantedMs).toBeLessThan(1_100);
    }
    await stream.return();
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    ['reads of records', true],
    ['reads of records and second reads of results', false],
  ])('%s beside starts of polls → one turn at a time', async (_, isTracked) => {
    const options = { initialDelayMs: 0, intervalMs: 2_000, maxPerSecond: 2 };
    const respondWithRecord = () => record(isTracked);
    const { requests } = startPollMany(() => NOT_READY, makeIds(3), options, { respondWithRecord });
    await pass(10_000);
    const starts = requests.map(({ startedAt }) => startedAt);
    expect(requests.some(({ kind }) => kind === 'record')).toBe(true);
    for (const [index, start] of starts.entries())
      expect(start - (starts[index - 1] ?? -500)).toBeGreaterThanOrEqual(500);
  });

  const options = { initialDelayMs: 0, intervalMs: 10_000, maxPerSecond: 1 };

  test('a tracker that is deleted while it waits for maxPerSecond → the next tracker is polled at that time', async () => {
    const { stream, polls } = startPollMany(nothingNew, makeIds(3), options);
    await pass(500);
    stream.delete('tracker-1');
    await pass(500);
    expect(polls.map(({ id }) => id)).toEqual(['tracker-0', 'tracker-2']);
  });

  test('the only due tracker is deleted while it waits for maxPerSecond → no other tracker is polled too early', async () => {
    const { stream, listStarts } = startPollMany(nothingNew, makeIds(2), options);
    await pass(500);
    stream.delete('tracker-1');
    await pass(9500);
    expect(listStarts()).toEqual([0, 10_000]);
  });
});

describe('polls that are late', () => {
  const options = { initialDelayMs: 0, intervalMs: 2_000 };

  test.each([
    ['the reader pauses', {}, 0, 30_000],
    ['maxPerSecond is low', { maxPerSecond: 1 }, 0, 0],
    ['the service is slow', { concurrency: 1 }, 3_000, 0],
  ])('%s → one warning that names the options to raise', async (_, more, latencyMs, pauseMs) => {
    const { client, warn } = polledService(nothingNew, { latencyMs });
    const stream = client.trackers.pollMany(makeIds(4), { ...options, ...more });
    read(stream, pauseMs);
    await pass(200_000);
    const message = expect.stringContaining(
      'late; raise `intervalMs`, `concurrency` or `maxPerSecond`, or do',
    );
    expect(warn.mock.calls).toEqual([[message, expect.objectContaining({ intervalMs: 2_000, trackers: 4 })]]);
  });

  test('one tracker whose reader pauses → the warning names only options of poll', async () => {
    const { client, warn } = polledService(nothingNew, {});
    read(client.trackers.poll('tracker-0', options), 30_000);
    await pass(200_000);
    const message = expect.stringContaining('late; raise `intervalMs`, or do');
    expect(warn.mock.calls).toEqual([[message, expect.objectContaining({ trackers: 1 })]]);
  });

  test('two late streams of one client → one warning for each', async () => {
    const { client, warn } = polledService(nothingNew, { latencyMs: 3_000 });
    for (const id of ['tracker-0', 'tracker-1'])
      read(client.trackers.pollMany([id, `${id}-b`], { ...options, concurrency: 1 }));
    await pass(200_000);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  test('polls that are late by less than their interval → no warning', async () => {
    const { warn } = startPollMany(nothingNew, makeIds(4), { ...options, maxPerSecond: 2 });
    await pass(60_000);
    expect(warn).not.toHaveBeenCalled();
  });
});

describe('updates', () => {
  test('one tracker is not found → one update with the error, and the other trackers go on', async () => {
    const respondTo = (_: number, id: string) => (id === 'tracker-1' ? NOT_FOUND : results([]));
    const { reading, listStarts } = startPollMany(respondTo, makeIds(3));
    await pass(2000);
    const error = expect.objectContaining({ name: 'NotFoundError', code: 'tracker_not_found' });
    expect(reading.items.filter((item) => item.error)).toEqual([{ id: 'tracker-1', error }]);
    const others = ['tracker-0', 'tracker-0', 'tracker-2', 'tracker-2'];
    expect(listIds(reading.items.filter((item) => !item.error)).toSorted()).toEqual(others);
    expect(listStarts('tracker-1')).toHaveLength(1);
  });

  const mine = { name: 'TrackingError', cause: { message: 'mine' } };

  test('until throws for one tracker → one update with the error, and no further update', async () => {
    const until = ({ events }: { events: unknown[] }) => {
      if (events.length > 0) throw new Error('mine');
      return false;
    };
    const respondTo = (poll: number) => results(poll === 2 ? ['bad'] : []);
    const { reading } = startPollMany(respondTo, ['tracker-1'], { until });
    await pass(2000);
    expect(reading.items[1]).toMatchObject({ id: 'tracker-1', error: mine });
    expect(reading.end).toEqual({});
  });

  const intervalMs = ({ id }: { id: string }) => {
    if (id === 'tracker-1') throw new Error('mine');
    return 1000;
  };

  test('an interval function throws for one id → one update with the error, and the other ids go on', async () => {
    const { reading } = startPollMany(nothingNew, makeIds(3), { intervalMs });
    await pass(1000);
    expect(reading.items).toMatchObject([
      { id: 'tracker-1', error: mine },
      { id: 'tracker-0', poll: 1 },
      { id: 'tracker-2', poll: 1 },
    ]);
  });

  test('an interval function throws for an added id → add() throws the error', async () => {
    const { client } = polledService(nothingNew);
    const stream = client.trackers.pollMany(['tracker-0'], { intervalMs });
    expect(() => stream.add('tracker-1')).toThrow('mine');
    expect(stream.size).toBe(0);
  });
});
