import { describe, expect, test, vi } from 'vitest';
import { pass, polledService, read, results } from './polled-service.ts';

describe('the beginning of a poll', () => {
  test('two trackers due at once, two polls a second → onPoll of each, the second half a second late', async () => {
    const onPoll = vi.fn();
    const { client } = polledService(() => results([]), 0, { hooks: { onPoll } });
    read(client.trackers.pollMany(['a', 'b'], { initialDelayMs: 0, maxPerSecond: 2 }));
    await pass(1_000);
    expect(onPoll.mock.calls).toEqual([[{ id: 'a', lagMs: 0 }], [{ id: 'b', lagMs: 500 }]]);
  });

  test('a reader that comes late → onPoll tells by how much', async () => {
    const onPoll = vi.fn();
    const { client } = polledService(() => results([]), 0, { hooks: { onPoll } });
    const polls = client.trackers.poll('a', { initialDelayMs: 0, intervalMs: 1_000 });
    await polls.next();
    await pass(5_000);
    await polls.next();
    await polls.return();
    expect(onPoll.mock.calls).toEqual([[{ id: 'a', lagMs: 0 }], [{ id: 'a', lagMs: expect.closeTo(4_000) }]]);
  });
});
