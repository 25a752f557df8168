import { describe, expect, test, vi } from 'vitest';
import { idsIn, idsOf, NOT_FOUND, pass, polledService, read, results } from './polled-service.ts';

describe('when polls happen', () => {
  test('many ids, no options → nothing before 15 minutes, then each once every 15 minutes, in their order', async () => {
    const { client, startsOf, polls } = polledService(() => results([]));
    read(client.trackers.pollMany(idsOf(3)));
    await pass(15 * 60_000 - 1);
    expect(polls).toEqual([]);
    await pass(15 * 60_000 + 1);
    expect(polls.map(({ id }) => id)).toEqual([...idsOf(3), ...idsOf(3)]);
    expect(startsOf('tracker-1')).toEqual([15 * 60_000, 30 * 60_000]);
  });

  test('10,000 trackers that wait → one timer', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(10_000));
    read(stream);
    await pass(100);
    expect(stream.size).toBe(10_000);
    expect(vi.getTimerCount()).toBe(1);
    await stream.return();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a slow tracker → is not polled twice at a time, and the others keep their interval', async () => {
    const { client, startsOf, polls } = polledService(
      () => results([]),
      (_, id) => (id === 'tracker-0' ? 2500 : 10),
    );
    read(client.trackers.pollMany(idsOf(3), { intervalMs: 1000 }));
    await pass(8000);
    expect(startsOf('tracker-0')).toEqual([1000, 4000, 7000]);
    expect(startsOf('tracker-1')).toEqual([1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]);
    const slow = polls.filter(({ id }) => id === 'tracker-0');
    expect(slow.every((poll, index) => poll.startedAt >= (slow[index - 1]?.endedAt ?? 0))).toBe(true);
  });

  test('concurrency 2 → no more than two polls at a time, and everybody has a turn', async () => {
    let underWay = 0;
    let most = 0;
    const { client, startsOf } = polledService(
      () => {
        underWay -= 1;
        return results([]);
      },
      () => {
        underWay += 1;
        most = Math.max(most, underWay);
        return 100;
      },
    );
    read(client.trackers.pollMany(idsOf(10), { intervalMs: 1000, concurrency: 2 }));
    await pass(1499);
    expect(most).toBe(2);
    for (const id of idsOf(10)) expect(startsOf(id)).toHaveLength(1);
  });

  test('a reader that stops reading → no more polls than concurrency, and no timer', async () => {
    const { client, polls } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(20), { intervalMs: 1000, concurrency: 3 });
    const first = stream.next();
    await pass(1000);
    await first;
    await pass(60_000);
    expect(polls).toHaveLength(3);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('what updates hold', () => {
  test('updates → are those of poll, with the id', async () => {
    const { client } = polledService((poll, id) =>
      results([`${id}-a`, ...(poll > 1 ? ['b'] : [])], poll < 2),
    );
    const reading = read(client.trackers.pollMany(idsOf(2), { intervalMs: 1000 }));
    await pass(2000);
    expect(reading.items.map(({ id, newEvents, poll, stopped }) => [id, newEvents, poll, stopped])).toEqual([
      ['tracker-0', [{ eventId: 'tracker-0-a' }], 1, false],
      ['tracker-1', [{ eventId: 'tracker-1-a' }], 1, false],
      ['tracker-0', [{ eventId: 'b' }], 2, true],
      ['tracker-1', [{ eventId: 'b' }], 2, true],
    ]);
    expect(reading.end).toEqual({});
  });

  test('one tracker is not found → yields its error once, and the others go on', async () => {
    const { client, startsOf } = polledService((_, id) => (id === 'tracker-1' ? NOT_FOUND : results([])));
    const reading = read(client.trackers.pollMany(idsOf(3), { intervalMs: 1000 }));
    await pass(2000);
    const failures = reading.items.filter(({ error }) => error);
    expect(failures).toEqual([
      {
        id: 'tracker-1',
        error: expect.objectContaining({ name: 'NotFoundError', code: 'tracker_not_found' }),
      },
    ]);
    expect(idsIn(reading.items).toSorted()).toEqual([
      'tracker-0',
      'tracker-0',
      ...idsOf(3).slice(1),
      'tracker-2',
    ]);
    expect(startsOf('tracker-1')).toHaveLength(1);
  });

  test("an id that can't be one → yields its error, and nothing is sent for it", async () => {
    const { client, polls } = polledService(() => results([]));
    const reading = read(client.trackers.pollMany(['..', 'tracker-1'], { intervalMs: 1000 }));
    await pass(1000);
    expect(reading.items).toMatchObject([
      { id: '..', error: { name: 'RequestValidationError' } },
      { id: 'tracker-1', poll: 1 },
    ]);
    expect(polls.map(({ id }) => id)).toEqual(['tracker-1']);
  });

  test('a caller function that throws for one tracker → yields its error, and the others go on', async () => {
    const { client } = polledService((poll) => results(poll === 2 ? ['bad'] : []));
    const until = ({ events }: { events: unknown[] }) => {
      if (events.length > 0) throw new Error('mine');
      return false;
    };
    const reading = read(client.trackers.pollMany(['tracker-1'], { intervalMs: 1000, until }));
    await pass(2000);
    expect(reading.items[1]).toMatchObject({
      id: 'tracker-1',
      error: { name: 'TrackingError', cause: { message: 'mine' } },
    });
    expect(reading.end).toEqual({});
  });
});

describe('an interval function that throws', () => {
  const intervalMs = ({ id }: { id: string }) => {
    if (id === 'tracker-1') throw new Error('mine');
    return 1000;
  };

  test('for one of the ids → yields its error, and the others go on', async () => {
    const { client } = polledService(() => results([]));
    const reading = read(client.trackers.pollMany(idsOf(3), { intervalMs }));
    await pass(1000);
    expect(reading.items).toMatchObject([
      { id: 'tracker-1', error: { name: 'TrackingError', cause: { message: 'mine' } } },
      { id: 'tracker-0', poll: 1 },
      { id: 'tracker-2', poll: 1 },
    ]);
  });

  test('for an id that is added → add() throws it', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(['tracker-0'], { intervalMs });
    expect(() => stream.add('tracker-1')).toThrow('mine');
    expect(stream.size).toBe(0);
  });
});
