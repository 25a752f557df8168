import { getEventListeners } from 'node:events';
import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { PollContext } from '../../src/index.ts';
import { BROKEN, EMPTY, NOT_READY, pass, polledService, read, results } from './polled-service.ts';

const MINUTE_MS = 60_000;

describe('when polls happen', () => {
  test('no options → nothing is sent before 15 minutes, then every 15 minutes', async () => {
    const { client, startsOf } = polledService(() => results([]));
    const reading = read(client.trackers.poll('tracker-1'));
    await pass(15 * MINUTE_MS - 1);
    expect(startsOf()).toEqual([]);
    await pass(15 * MINUTE_MS + 1);
    expect(startsOf()).toEqual([15 * MINUTE_MS, 30 * MINUTE_MS]);
    expect(reading.items).toHaveLength(2);
  });

  test('not read → nothing is sent, and there is no timer', async () => {
    const { client, startsOf } = polledService(() => results([]));
    client.trackers.poll('tracker-1', { initialDelayMs: 0 });
    await pass(60 * MINUTE_MS);
    expect(startsOf()).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('initialDelayMs 0 → the first poll is at once', async () => {
    const { client, startsOf } = polledService(() => results([]));
    read(client.trackers.poll('tracker-1', { initialDelayMs: 0, intervalMs: 1000 }));
    await pass(2000);
    expect(startsOf()).toEqual([0, 1000, 2000]);
  });

  test('a service that answers late → starts stay on the interval, and delays do not add up', async () => {
    const { client, startsOf } = polledService(() => results([]), 300);
    read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(10_000);
    expect(startsOf()).toEqual([1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000]);
  });

  test('answers slower than the interval → no overlap, and missed times are left out', async () => {
    const { client, polls, startsOf } = polledService(() => results([]), 2500);
    read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(8000);
    expect(startsOf()).toEqual([1000, 4000, 7000]);
    const overlaps = polls.filter((poll, index) => poll.startedAt < (polls[index - 1]?.endedAt ?? 0));
    expect(overlaps).toEqual([]);
  });

  test('a reader that pauses for five intervals → one poll when it is back, and a whole interval to the next', async () => {
    const { client, startsOf } = polledService(() => results([]));
    read(client.trackers.poll('tracker-1', { intervalMs: 1000 }), ({ poll }) => (poll === 1 ? 5300 : 0));
    await pass(9000);
    expect(startsOf()).toEqual([1000, 6300, 7300, 8300]);
  });

  test('a function interval → is asked before the first poll and after every one', async () => {
    const asked: PollContext[] = [];
    const { client, startsOf } = polledService((poll) => results(poll === 1 ? ['a'] : ['a', 'b']));
    const intervalMs = (context: PollContext) => {
      asked.push(context);
      return 1000 * 2 ** context.poll;
    };
    read(client.trackers.poll('tracker-1', { intervalMs }));
    await pass(7000);
    expect(startsOf()).toEqual([1000, 3000, 7000]);
    expect(asked.map(({ poll, newEvents }) => [poll, newEvents.map(({ eventId }) => eventId)])).toEqual([
      [0, []],
      [1, ['a']],
      [2, ['b']],
      [3, []],
    ]);
    expect(asked.map(({ id, tracking }) => [id, tracking?.events.length])).toEqual([
      ['tracker-1', undefined],
      ['tracker-1', 1],
      ['tracker-1', 2],
      ['tracker-1', 2],
    ]);
  });
});

describe('what updates hold', () => {
  test('an event in two polls and twice in one answer → is new once', async () => {
    const answers = [['a'], ['b', 'b', 'a'], ['c', 'b', 'a']];
    const { client } = polledService((poll) => results(answers[poll - 1] ?? [], poll < 3));
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(3000);
    const newIds = reading.items.map(({ newEvents }) => newEvents.map(({ eventId }) => eventId));
    expect(newIds).toEqual([['a'], ['b'], ['c']]);
    expect(reading.items.map(({ poll, stopped }) => [poll, stopped])).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ]);
  });

  test.each([
    ['parcel_not_found', NOT_READY],
    ['an empty list', EMPTY],
  ])('%s → an update without results and events, not an error', async (_, answer) => {
    const { client } = polledService((poll) => (poll <= 6 ? answer : results(['a'])));
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(7000);
    expect(reading.items[0]).toEqual({ tracking: undefined, newEvents: [], poll: 1, stopped: false });
    expect(reading.items).toHaveLength(7);
    expect(reading.items[6]?.newEvents).toEqual([{ eventId: 'a' }]);
  });

  test("searchBy 'clientTrackerId' → every poll asks by it", async () => {
    const { client, polls } = polledService(() => results([]));
    read(client.trackers.poll('order/1042', { intervalMs: 1000, searchBy: 'clientTrackerId' }));
    await pass(2000);
    expect(polls.map(({ id, query }) => id + query)).toEqual([
      'order/1042?searchBy=clientTrackerId',
      'order/1042?searchBy=clientTrackerId',
    ]);
  });

  test('an event without an id, in two polls → is new once, by its content', async () => {
    const events = [{ status: 'a' }, { status: 'b' }, { status: 'a' }];
    const { client } = polledService((poll) => ({
      body: { data: { trackings: [{ events: poll === 1 ? events.slice(0, 1) : events }] } },
    }));
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(3000);
    expect(reading.items.map(({ newEvents }) => newEvents)).toEqual([
      [{ status: 'a' }],
      [{ status: 'b' }],
      [],
    ]);
  });

  test('any responses in any order → every event is new exactly once', async () => {
    const histories = fc.array(fc.array(fc.string({ maxLength: 3 }), { maxLength: 12 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(histories, async (all) => {
        const { client } = polledService((poll) => results(all[poll - 1] ?? []));
        const reading = read(client.trackers.poll('tracker-1', { initialDelayMs: 0, intervalMs: 1000 }));
        await pass(all.length * 1000);
        const yielded = reading.items.flatMap(({ newEvents }) => newEvents.map(({ eventId }) => eventId));
        expect(yielded).toEqual([...new Set(all.flat())]);
      }),
      { numRuns: 30 },
    );
  });

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
    const { client } = polledService(() => results([]), 0, { limiter, rateLimit: undefined });
    read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(1000);
    expect(priorities).toEqual(['background']);
  });

  test.each([
    ['polls', results([])],
    ['polls that fail', BROKEN],
  ])('%s → add no listeners to the signal of a stream that may go on for months', async (_, answer) => {
    const { signal } = new AbortController();
    const { client } = polledService(() => answer);
    const options = { intervalMs: 1000, maxConsecutiveErrors: Number.POSITIVE_INFINITY, signal };
    read(client.trackers.poll('tracker-1', options));
    await pass(10_000);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  });
});
