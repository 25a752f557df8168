import { describe, expect, test, vi } from 'vitest';
import { idsOf, pass, polledService, read, results } from './polled-service.ts';

describe('maxPerSecond', () => {
  test('2 per second → polls are half a second apart, and each tracker has its turn', async () => {
    const { client, startsOf } = polledService(() => results([]));
    read(client.trackers.pollMany(idsOf(4), { initialDelayMs: 0, intervalMs: 10_000, maxPerSecond: 2 }));
    await pass(11_500);
    expect(startsOf()).toEqual([0, 500, 1000, 1500, 10_000, 10_500, 11_000, 11_500]);
  });

  test('1,000 trackers wait for the budget → one timer', async () => {
    const { client } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(1000), { initialDelayMs: 0, maxPerSecond: 2 });
    read(stream);
    await pass(100);
    expect(vi.getTimerCount()).toBe(1);
    await stream.return();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a tracker leaves while it waits for the budget → the next one is polled in its place', async () => {
    const { client, polls } = polledService(() => results([]));
    const stream = client.trackers.pollMany(idsOf(3), { initialDelayMs: 0, maxPerSecond: 1 });
    read(stream);
    await pass(500);
    stream.delete('tracker-1');
    await pass(500);
    expect(polls.map(({ id }) => id)).toEqual(['tracker-0', 'tracker-2']);
  });
});

describe('who is polled when the budget allows it', () => {
  test('the one that was due left meanwhile → none before it is due', async () => {
    const { client, startsOf } = polledService(() => results([]));
    const options = { initialDelayMs: 0, intervalMs: 10_000, maxPerSecond: 1 };
    const stream = client.trackers.pollMany(idsOf(2), options);
    read(stream);
    await pass(500);
    stream.delete('tracker-1');
    await pass(9000);
    expect(startsOf()).toEqual([0]);
    await pass(500);
    expect(startsOf()).toEqual([0, 10_000]);
  });
});

test('a wall clock that is set forward while a poll waits for the budget → the one after it keeps its distance', async () => {
  const { client, startsOf } = polledService(() => results([]));
  read(client.trackers.pollMany(idsOf(3), { initialDelayMs: 0, maxPerSecond: 2 }));
  await pass(100);
  vi.setSystemTime(Date.now() + 300);
  await pass(1000);
  expect(startsOf()).toEqual([0, 500, 1000]);
});
