import { describe, expect, test, vi } from 'vitest';
import type { Tracking } from '../../src/index.ts';
import { pass, polledService, results } from './polled-service.ts';

describe('waitUntilStopped', () => {
  test('isTracked turns false → resolves to those results', async () => {
    const { client } = polledService((poll) => results(['a', 'b'].slice(0, poll), poll < 2));
    const waiting = client.trackers.waitUntilStopped('tracker-1', { intervalMs: 1000 });
    await pass(2000);
    const { tracker, events } = await waiting;
    expect(tracker?.isTracked).toBe(false);
    expect(events).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('until → resolves to the results it likes', async () => {
    const { client } = polledService((poll) => results(['a', 'b', 'c'].slice(0, poll)));
    const until = ({ events }: Tracking) => events.length === 2;
    const waiting = client.trackers.waitUntilStopped('tracker-1', { intervalMs: 1000, until });
    await pass(2000);
    expect((await waiting).events).toHaveLength(2);
  });

  test.each([
    ['no until', {}],
    ['results that until does not like', { until: () => false }],
  ])('maxDurationMs runs out, %s → TimeoutError that names it', async (_, more) => {
    const { client } = polledService(() => results([]));
    const options = { intervalMs: 1000, maxDurationMs: 2500, ...more };
    const waiting = client.trackers.waitUntilStopped('tracker-1', options);
    const outcome = expect(waiting).rejects.toMatchObject({
      name: 'TimeoutError',
      timeoutMs: 2500,
      message: 'Ran out of `maxDurationMs` (2500 ms) while the service was still tracking',
    });
    await pass(2500);
    await outcome;
  });

  test.each([
    ['intervalMs', 5],
    ['until', 'delivered'],
    ['until', null],
  ])('%s %j → rejects with ConfigurationError', async (name, value) => {
    const { client } = polledService(() => results([]));
    await expect(client.trackers.waitUntilStopped('tracker-1', { [name]: value })).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringContaining(`Expected \`${name}\` to be`),
    });
  });
});
