import { getEventListeners } from 'node:events';
import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { PollContext } from '../../src/index.ts';
import {
  BROKEN,
  nothingNew,
  pass,
  polledService,
  read,
  results,
  startPoll,
  startPollMany,
} from './polled-service.ts';

const MINUTE_MS = 60_000;

describe('when polls happen', () => {
  test('no options → nothing is sent before 15 minutes, then every 15 minutes', async () => {
    const { client, startsOf } = polledService(nothingNew);
    read(client.trackers.poll('tracker-1'));
    await pass(15 * MINUTE_MS - 1);
    expect(startsOf()).toEqual([]);
    await pass(15 * MINUTE_MS + 1);
    expect(startsOf()).toEqual([15 * MINUTE_MS, 30 * MINUTE_MS]);
  });

  test('not read → nothing is sent, and there is no timer', async () => {
    const { client, startsOf } = polledService(nothingNew);
    client.trackers.poll('tracker-1', { initialDelayMs: 0 });
    await pass(60 * MINUTE_MS);
    expect(startsOf()).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('initialDelayMs 0 → the first poll is at once', async () => {
    const { startsOf } = startPoll(nothingNew, { initialDelayMs: 0 });
    await pass(2000);
    expect(startsOf()).toEqual([0, 1000, 2000]);
  });

  test('a service that answers late → starts stay on the interval, and delays do not add up', async () => {
    const { startsOf } = startPoll(nothingNew, {}, { latencyMs: 300 });
    await pass(5000);
    expect(startsOf()).toEqual([1000, 2000, 3000, 4000, 5000]);
  });

  test('answers slower than the interval → no overlap, and missed times are left out', async () => {
    const { startsOf } = startPoll(nothingNew, {}, { latencyMs: 2500 });
    await pass(8000);
    expect(startsOf()).toEqual([1000, 4000, 7000]);
  });

  test('a reader that pauses for five intervals → one poll when it is back, and a whole interval to the next', async () => {
    const { client, startsOf } = polledService(nothingNew);
    read(client.trackers.poll('tracker-1', { intervalMs: 1000 }), ({ poll }) => (poll === 1 ? 5300 : 0));
    await pass(9000);
    expect(startsOf()).toEqual([1000, 6300, 7300, 8300]);
  });

  test('a function interval → is asked before the first poll and after every one', async () => {
    const asked: PollContext[] = [];
    const intervalMs = (context: PollContext) => {
      asked.push(context);
      return 1000 * 2 ** context.poll;
    };
    const { startsOf } = startPoll((poll) => results(poll === 1 ? ['a'] : ['a', 'b']), { intervalMs });
    await pass(7000);
    expect(startsOf()).toEqual([1000, 3000, 7000]);
    const told = asked.map(({ id, poll, tracking, newEvents }) => [
      id,
      poll,
      tracking?.events.length,
      newEvents,
    ]);
    expect(told).toEqual([
      ['tracker-1', 0, undefined, []],
      ['tracker-1', 1, 1, [{ eventId: 'a' }]],
      ['tracker-1', 2, 2, [{ eventId: 'b' }]],
      ['tracker-1', 3, 2, []],
    ]);
  });
});

describe('what updates hold', () => {
  test('an event in two polls and twice in one answer → is new once', async () => {
    const answers = [['a'], ['b', 'b', 'a'], ['c', 'b', 'a']];
    const { reading } = startPoll((poll) => results(answers[poll - 1] ?? []));
    await pass(3000);
    const newIds = reading.items.map(({ newEvents }) => newEvents.map(({ eventId }) => eventId));
    expect(newIds).toEqual([['a'], ['b'], ['c']]);
  });

  test('an event without an id, in two polls → is new once, by its content', async () => {
    const events = [{ status: 'a' }, { status: 'b' }, { status: 'a' }];
    const { reading } = startPoll((poll) => ({
      body: { data: { trackings: [{ events: poll === 1 ? events.slice(0, 1) : events }] } },
    }));
    await pass(2000);
    expect(reading.items.map(({ newEvents }) => newEvents)).toEqual([[{ status: 'a' }], [{ status: 'b' }]]);
  });

  test('any responses in any order → every event is new exactly once', async () => {
    const histories = fc.array(fc.array(fc.string({ maxLength: 3 }), { maxLength: 12 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(histories, async (all) => {
        const { reading } = startPoll((poll) => results(all[poll - 1] ?? []), { initialDelayMs: 0 });
        await pass(all.length * 1000);
        const yielded = reading.items.flatMap(({ newEvents }) => newEvents.map(({ eventId }) => eventId));
        expect(yielded).toEqual([...new Set(all.flat())]);
      }),
      { numRuns: 30 },
    );
  });
});

describe('what a poll uses', () => {
  test('a poll → waits behind interactive calls', async () => {
    const priorities: unknown[] = [];
    const limiter = {
      spansProcesses: false,
      acquire: async ({ priority }: { priority: unknown }) => {
        priorities.push(priority);
        return { tokensLeft: 1, send() {}, report() {}, cancel() {} };
      },
      snapshot: () => undefined,
    };
    startPoll(nothingNew, {}, { limiter, rateLimit: undefined });
    await pass(1000);
    expect(priorities).toEqual(['background']);
  });

  test.each([
    ['polls', results([])],
    ['polls that fail', BROKEN],
  ])('%s → add no listeners to the signal of a stream that may go on for months', async (_, answer) => {
    const { signal } = new AbortController();
    startPoll(() => answer, { maxConsecutiveErrors: Number.POSITIVE_INFINITY, signal });
    await pass(10_000);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  });

  test('two trackers due at once, two polls a second → onPoll of each, the second half a second late', async () => {
    const onPoll = vi.fn();
    const options = { initialDelayMs: 0, intervalMs: 60_000, maxPerSecond: 2 };
    startPollMany(nothingNew, ['a', 'b'], options, { hooks: { onPoll } });
    await pass(1000);
    expect(onPoll.mock.calls).toEqual([[{ id: 'a', lagMs: 0 }], [{ id: 'b', lagMs: 500 }]]);
  });
});
