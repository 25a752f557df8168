import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { idsIn, idsOf, pass, polledService, read, results } from './polled-service.ts';

describe('add and delete', () => {
  test('an id added while polling → joins with its own initial delay', async () => {
    const { client, startsOf } = polledService(() => results([]));
    const stream = client.trackers.pollMany(['tracker-0'], { intervalMs: 1000 });
    read(stream);
    await pass(1500);
    expect(stream.add('tracker-1')).toBe(true);
    expect(stream.add('tracker-1')).toBe(false);
    await pass(2000);
    expect(startsOf('tracker-1')).toEqual([2500, 3500]);
    expect(stream.size).toBe(2);
  });

  test('an id twice → is polled once', async () => {
    const { client, polls } = polledService(() => results([]));
    read(client.trackers.pollMany(['tracker-0', 'tracker-0'], { intervalMs: 1000 }));
    await pass(1000);
    expect(polls).toHaveLength(1);
  });

  test('an id deleted while it waits → is not polled again', async () => {
    const { client, startsOf } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(2), { intervalMs: 1000 });
    read(stream);
    await pass(1500);
    expect(stream.delete('tracker-0')).toBe(true);
    expect(stream.delete('tracker-0')).toBe(false);
    await pass(5000);
    expect(startsOf('tracker-0')).toEqual([1000]);
    expect(stream.size).toBe(1);
  });

  test('an id deleted while its poll is under way → the request is given up, and no update comes', async () => {
    const { client, polls } = polledService(() => results([]), 500);
    const stream = client.trackers.pollMany(idsOf(2), { intervalMs: 1000 });
    const reading = read(stream);
    await pass(1200);
    stream.delete('tracker-0');
    await pass(1000);
    expect(polls[0]).toMatchObject({ id: 'tracker-0', endedAt: undefined });
    expect(idsIn(reading.items)).toEqual(['tracker-1']);
  });

  test('an id deleted before its update was read → the update is dropped', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(3), { intervalMs: 1000 });
    const first = stream.next();
    await pass(1000);
    await first;
    stream.delete('tracker-1');
    expect(await stream.next()).toMatchObject({ value: { id: 'tracker-2' } });
  });

  test('an id deleted and added again during its poll → starts anew, and the old answer is nobody’s', async () => {
    const { client } = polledService((poll) => results([`event-${poll}`]), 300);
    const stream = client.trackers.pollMany(['tracker-0', 'tracker-1'], { intervalMs: 1000 });
    const reading = read(stream);
    await pass(1100);
    stream.delete('tracker-0');
    stream.add('tracker-0');
    await pass(1500);
    const own = reading.items.filter(({ id }) => id === 'tracker-0');
    expect(own).toMatchObject([{ poll: 1, newEvents: [{ eventId: 'event-2' }] }]);
  });

  test("an id deleted by the caller's own `until` → is polled no more, and no update comes", async () => {
    const { client, startsOf } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(2), {
      intervalMs: 1000,
      until: () => {
        stream.delete('tracker-0');
        return false;
      },
    });
    const reading = read(stream);
    await pass(3000);
    expect(idsIn(reading.items)).not.toContain('tracker-0');
    expect(startsOf('tracker-0')).toEqual([1000]);
  });

  test('the last id deleted → the stream ends', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(['tracker-0']);
    const reading = read(stream);
    await pass(10);
    stream.delete('tracker-0');
    await pass(0);
    expect(reading.end).toEqual({});
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an id added to a stream that has ended → an error that says so', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany([]);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(() => stream.add('tracker-1')).toThrow(/has ended/);
    expect(stream.delete('tracker-1')).toBe(false);
  });
});

test('any intervals, additions and deletions → every tracker is polled exactly at its times', async () => {
  const trackers = fc.array(
    fc.record({
      intervalMs: fc.integer({ min: 1000, max: 9000 }),
      addedAt: fc.integer({ min: 0, max: 10_000 }),
      deletedAt: fc.integer({ min: 0, max: 20_000 }),
    }),
    { maxLength: 25 },
  );
  await fc.assert(
    fc.asyncProperty(trackers, async (all) => {
      const { client, startsOf } = polledService(() => results([]));
      const stream = client.trackers.pollMany(['first'], {
        intervalMs: ({ id }) => all[Number(id)]?.intervalMs ?? 60_000,
        concurrency: 100,
      });
      read(stream);
      for (const [index, { addedAt, deletedAt }] of all.entries()) {
        setTimeout(() => stream.add(String(index)), addedAt);
        setTimeout(() => stream.delete(String(index)), addedAt + deletedAt + 0.5);
      }
      await pass(30_000);
      for (const [index, { intervalMs, addedAt, deletedAt }] of all.entries()) {
        const count = Math.floor(Math.min(deletedAt, 30_000 - addedAt) / intervalMs);
        const times = Array.from({ length: count }, (_, poll) => addedAt + (poll + 1) * intervalMs);
        expect(startsOf(String(index))).toEqual(times);
      }
      await stream.return();
    }),
    { numRuns: 30 },
  );
});

describe('a stream without a tracker yet', () => {
  test('an id is added while the source has none → polled after its interval', async () => {
    const { client, startsOf } = polledService(() => results([]));
    async function* ids(): AsyncGenerator<string> {
      await new Promise(() => {});
    }
    const stream = client.trackers.pollMany(ids(), { intervalMs: 1000 });
    read(stream);
    await pass(500);
    stream.add('tracker-1');
    await pass(1000);
    expect(startsOf('tracker-1')).toEqual([1500]);
    await stream.return();
  });
});

describe('an id that can not be one', () => {
  test.each(['', '..', '%2e'])(
    '%j of the source → its failure at once, and the others are polled',
    async (id) => {
      const { client, polls } = polledService(() => results([]));
      const reading = read(client.trackers.pollMany([id, 'tracker-1'], { intervalMs: 1000 }));
      await pass(0);
      expect(reading.items).toMatchObject([{ id, error: { name: 'RequestValidationError' } }]);
      await pass(1000);
      expect(polls.map((poll) => poll.id)).toEqual(['tracker-1']);
    },
  );

  test('from a source that goes on → its failure at once', async () => {
    const { client } = polledService(() => results([]));
    async function* ids(): AsyncGenerator<string> {
      yield '..';
      await new Promise(() => {});
    }
    const stream = client.trackers.pollMany(ids());
    const reading = read(stream);
    await pass(0);
    expect(reading.items).toHaveLength(1);
    await stream.return();
  });

  test('added → throws at once', () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(['tracker-1']);
    expect(() => stream.add('..')).toThrow(/^Expected `id` /);
    expect(stream.size).toBe(0);
  });
});
