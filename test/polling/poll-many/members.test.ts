import { describe, expect, test, vi } from 'vitest';
import {
  failure,
  listIds,
  makeIds,
  nothingNew,
  pass,
  polledService,
  read,
  results,
  startPollMany,
} from '../polled-service.ts';

describe('add and delete', () => {
  test('ids that are added and deleted → `add` and `delete` return whether they changed anything', async () => {
    const { stream } = startPollMany(nothingNew, ['tracker-0']);
    await pass(1500);
    expect([stream.add('tracker-1'), stream.add('tracker-1'), stream.size]).toEqual([true, false, 2]);
    expect([stream.delete('tracker-0'), stream.delete('tracker-0'), stream.size]).toEqual([true, false, 1]);
  });

  test('an id that is added to an ended stream → throws an error with this reason', async () => {
    const { client } = polledService(nothingNew);
    const stream = client.trackers.pollMany([]);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(() => stream.add('tracker-1')).toThrow(/has ended/);
    expect(stream.delete('tracker-1')).toBe(false);
  });

  test.each([
    ['a last update', () => results([], false)],
    ['a last error', () => failure(401, 'auth_invalid_api_key')],
  ])(
    'an id that is deleted before %s of it is read → true, and nothing of it is read',
    async (_title, respondTo) => {
      const { client } = polledService(respondTo);
      const stream = client.trackers.pollMany(makeIds(2), { intervalMs: 1000 });
      const first = stream.next();
      await pass(1000);
      expect(await first).toMatchObject({ value: { id: 'tracker-0' } });
      expect([stream.delete('tracker-1'), stream.delete('tracker-1')]).toEqual([true, false]);
      expect(await stream.next()).toEqual({ done: true, value: undefined });
    },
  );

  test('an id that is deleted and added again during its poll → starts anew, and the old response is dropped', async () => {
    const respondTo = (poll: number) => results([`event-${poll}`]);
    const { stream, reading } = startPollMany(respondTo, makeIds(2), {}, { latencyMs: 300 });
    await pass(1100);
    stream.delete('tracker-0');
    stream.add('tracker-0');
    await pass(1500);
    const updates = reading.items.filter(({ id }) => id === 'tracker-0');
    expect(updates).toMatchObject([{ poll: 1, newEvents: [{ eventId: 'event-2' }] }]);
  });

  test('an id that is deleted by its own `until` callback → not polled again, and no update follows', async () => {
    const { stream, reading, listStarts } = startPollMany(() => results(['a']), makeIds(2), {
      until: () => {
        stream.delete('tracker-0');
        return false;
      },
    });
    await pass(3000);
    expect(listIds(reading.items)).not.toContain('tracker-0');
    expect(listStarts('tracker-0')).toEqual([1000]);
  });

  test('the last id is deleted → the stream ends', async () => {
    const { stream, reading } = startPollMany(nothingNew, ['tracker-0']);
    await pass(10);
    stream.delete('tracker-0');
    await pass(0);
    expect(reading.end).toEqual({});
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('an invalid id that is added → add() throws at once', () => {
  const stream = polledService(nothingNew).client.trackers.pollMany(['tracker-1']);
  expect(() => stream.add('..')).toThrow(/^Expected `id` /);
  expect(stream.size).toBe(0);
});

describe('sources of ids', () => {
  test('an id twice → polled once', async () => {
    const { polls } = startPollMany(nothingNew, ['tracker-0', 'tracker-0']);
    await pass(1000);
    expect(polls).toHaveLength(1);
  });

  test('endless ids that are due at once → at most 1,000 more are read than polled', async () => {
    let taken = 0;
    function* ids() {
      for (;;) {
        taken += 1;
        yield `tracker-${taken}`;
      }
    }
    const options = { initialDelayMs: 0, intervalMs: 900_000, maxPerSecond: 10 };
    const { stream, polls } = startPollMany(nothingNew, ids(), options);
    await pass(60_000);
    expect(polls).toHaveLength(601);
    expect(taken).toBeLessThanOrEqual(polls.length + 1000);
    await stream.return();
  });

  test('a tracker is polled 2,000 times before endless ids come → at most 1,000 more are read than polled', async () => {
    let taken = 0;
    async function* ids() {
      yield 'first';
      await new Promise((resolve) => setTimeout(resolve, 2_000_000));
      for (;;) {
        taken += 1;
        yield `tracker-${taken}`;
      }
    }
    const { stream, polls } = startPollMany(
      nothingNew,
      ids(),
      {
        initialDelayMs: 0,
        intervalMs: ({ id }) => (id === 'first' ? 1000 : 900_000),
        concurrency: 2,
      },
      { latencyMs: (_, id) => (id === 'first' ? 0 : 1000) },
    );
    await pass(2_010_000);
    const polled = new Set(polls.map(({ id }) => id)).size;
    expect(polled).toBeGreaterThan(5);
    expect(taken).toBeLessThanOrEqual(polled + 1000);
    await stream.return();
  });

  test('ids that are due at the same time as ids before them → polled in the order in which they were added', async () => {
    const due = { a: 1_000, late: 5_000, b: 1_000, later: 9_000, c: 1_000, d: 1_000 };
    const ids = Object.entries(due).map(([id, initialDelayMs]) => ({ id, initialDelayMs }));
    const { polls, stream } = startPollMany(nothingNew, ids, { intervalMs: 900_000 });
    await pass(10_000);
    expect(polls.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd', 'late', 'later']);
    await stream.return();
  });

  test('1,000 ids are deleted before their first poll → later ids are read and polled', async () => {
    let deleteAll = () => {};
    async function* ids() {
      const first = makeIds(1000);
      yield* first;
      await new Promise<void>((resolve) => {
        deleteAll = () => {
          for (const id of first.slice(0, 990)) stream.delete(id);
          resolve();
        };
      });
      yield 'later';
    }
    const { stream, listStarts } = startPollMany(nothingNew, ids(), { intervalMs: 10_000, maxPerSecond: 1 });
    await pass(1000);
    deleteAll();
    await pass(24_000);
    expect(listStarts('later')).toHaveLength(1);
    await stream.return();
  });

  test('more ids than can be polled in an interval → every id is polled, also the last ones read', async () => {
    const options = { initialDelayMs: 0, intervalMs: 10_000, maxPerSecond: 20 };
    const { stream, polls } = startPollMany(nothingNew, makeIds(520), options);
    await pass(40_000);
    expect(new Set(polls.map(({ id }) => id)).size).toBe(520);
    await stream.return();
  });

  test('a source that throws → the stream rejects with its error, and nothing is sent', async () => {
    function* ids() {
      yield 'tracker-0';
      throw new Error('mine');
    }
    const { reading, polls } = startPollMany(nothingNew, ids(), { initialDelayMs: 0 });
    await pass(1000);
    expect(reading.end?.error).toEqual(new Error('mine'));
    expect(polls).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a source that throws while updates are unread → the updates, then the error', async () => {
    const { client, polls } = polledService(nothingNew);
    async function* ids() {
      yield* makeIds(5);
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

describe('the end of pollMany', () => {
  test('no poll due before maxDurationMs ends → the stream stays open, and an added id is polled', async () => {
    const { stream, reading, listStarts } = startPollMany(nothingNew, ['slow'], {
      intervalMs: ({ id }) => (id === 'slow' ? 60_000 : 1000),
      maxDurationMs: 4500,
    });
    await pass(2000);
    expect(reading.end).toBeUndefined();
    stream.add('fast');
    await pass(2500);
    expect(listStarts()).toEqual([3000, 4000]);
    expect(reading.end).toEqual({});
  });
});
