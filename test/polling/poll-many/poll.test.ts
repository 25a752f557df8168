import { getEventListeners } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import type { PollContext } from '../../../src/index.ts';
import {
  BROKEN,
  makePriorityLimiter,
  nothingNew,
  pass,
  polledService,
  read,
  results,
  startPoll,
  startPollMany,
} from '../polled-service.ts';

const MINUTE_MS = 60_000;

describe('when polls happen', () => {
  test('no options → nothing is sent before 15 minutes, then every 15 minutes', async () => {
    const { client, listStarts } = polledService(nothingNew);
    read(client.trackers.poll('tracker-1'));
    await pass(15 * MINUTE_MS - 1);
    expect(listStarts()).toEqual([]);
    await pass(15 * MINUTE_MS + 1);
    expect(listStarts()).toEqual([15 * MINUTE_MS, 30 * MINUTE_MS]);
  });

  test('a stream that is not read → nothing is sent, and no timer is set', async () => {
    const { client, listStarts } = polledService(nothingNew);
    client.trackers.poll('tracker-1', { initialDelayMs: 0 });
    await pass(60 * MINUTE_MS);
    expect(listStarts()).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a consumer that pauses for five intervals → one poll at its next read, the next after a whole interval', async () => {
    const { client, listStarts } = polledService(nothingNew);
    read(client.trackers.poll('tracker-1', { intervalMs: 1000 }), ({ poll }) => (poll === 1 ? 5300 : 0));
    await pass(9000);
    expect(listStarts()).toEqual([1000, 6300, 7300, 8300]);
  });

  test('an interval function → called before the first poll and after every poll', async () => {
    const contexts: PollContext[] = [];
    const intervalMs = (context: PollContext) => {
      contexts.push(context);
      return 1000 * 2 ** context.poll;
    };
    const { listStarts } = startPoll((poll) => results(poll === 1 ? ['a'] : ['a', 'b']), { intervalMs });
    await pass(7000);
    expect(listStarts()).toEqual([1000, 3000, 7000]);
    expect(contexts).toMatchObject([
      { id: 'tracker-1', poll: 0, tracking: undefined, newEvents: [] },
      { id: 'tracker-1', poll: 1, tracking: { events: { length: 1 } }, newEvents: [{ eventId: 'a' }] },
      { id: 'tracker-1', poll: 2, tracking: { events: { length: 2 } }, newEvents: [{ eventId: 'b' }] },
      { id: 'tracker-1', poll: 3, tracking: { events: { length: 2 } }, newEvents: [] },
    ]);
  });
});

describe('updates', () => {
  test('two events with an empty id → both are new', async () => {
    const events = [
      { eventId: '', status: 'a' },
      { eventId: '', status: 'b' },
    ];
    const { reading } = startPoll(() => ({ body: { data: { trackings: [{ events }] } } }));
    await pass(2000);
    expect(reading.items.map(({ newEvents }) => newEvents)).toEqual([events, []]);
  });

  test('an event without an id in two polls → new once, recognised by its content', async () => {
    const events = [{ status: 'a' }, { status: 'b' }, { status: 'a' }];
    const { reading } = startPoll((poll) => ({
      body: { data: { trackings: [{ events: poll === 1 ? events.slice(0, 1) : events }] } },
    }));
    await pass(2000);
    expect(reading.items.map(({ newEvents }) => newEvents)).toEqual([[{ status: 'a' }], [{ status: 'b' }]]);
  });

  test('a poll fails at an event whose key cannot be built → the next poll finds all other events new', async () => {
    const deep = `,{"status":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    const { reading } = startPoll((poll) => ({
      body: `{"data":{"trackings":[{"events":[{"eventId":"a"}${poll === 1 ? deep : ''}]}]}}`,
    }));
    await pass(2000);
    expect(reading.items).toMatchObject([{ poll: 2, newEvents: [{ eventId: 'a' }] }]);
  });
});

describe('requests of a poll', () => {
  test('a poll → its requests have the priority `background`', async () => {
    const { priorities, limiter } = makePriorityLimiter();
    startPoll(nothingNew, {}, { limiter, rateLimit: undefined });
    await pass(1000);
    expect(priorities).toEqual(['background']);
  });

  test.each([
    ['polls', results([])],
    ['polls that fail', BROKEN],
  ])('%s → add no listeners to the signal of the stream', async (_, response) => {
    const { signal } = new AbortController();
    startPoll(() => response, { maxConsecutiveErrors: Number.POSITIVE_INFINITY, signal });
    await pass(10_000);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  });

  test('two trackers due at once, two polls a second → onPoll for each, the second with half a second of delay', async () => {
    const onPoll = vi.fn();
    const options = { initialDelayMs: 0, intervalMs: 60_000, maxPerSecond: 2 };
    startPollMany(nothingNew, ['a', 'b'], options, { hooks: { onPoll } });
    await pass(1000);
    expect(onPoll.mock.calls).toEqual([[{ id: 'a', lagMs: 0 }], [{ id: 'b', lagMs: 500 }]]);
  });
});
