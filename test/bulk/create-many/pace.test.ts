import { describe, expect, test } from 'vitest';
import type { CreateManyOptions, TrackerInput, TrackingClientOptions } from '../../../src/index.ts';
import { useVirtualTime } from '../../support/virtual-time.ts';
import { bulkService, collect, countStatuses, created, inVirtualTime, makeInputs } from '../bulk-service.ts';

/** Runs an import over a service that responds after `latencyMs`, and watches its requests. */
async function importSlowly(
  count: number,
  latencyMs: number,
  options: CreateManyOptions = {},
  clientOptions: TrackingClientOptions = { rateLimit: undefined },
) {
  useVirtualTime();
  const sentAt: number[] = [];
  const hooks = { onRequest: () => void sentAt.push(performance.now()) };
  const seen = { taken: 0, inFlight: 0, mostInFlight: 0, mostWaiting: 0 };
  const { client } = bulkService(
    async (chunk) => {
      seen.inFlight += 1;
      seen.mostInFlight = Math.max(seen.mostInFlight, seen.inFlight);
      await new Promise((resolve) => setTimeout(resolve, latencyMs));
      seen.inFlight -= 1;
      return created(chunk);
    },
    { hooks, ...clientOptions },
  );
  function* inputs(): Generator<TrackerInput> {
    for (const input of makeInputs(count)) {
      seen.taken += 1;
      seen.mostWaiting = Math.max(seen.mostWaiting, seen.taken - sentAt.length);
      yield input;
    }
  }
  const run = client.trackers.createMany(inputs(), { chunkSize: 1, ...options });
  return { ...(await inVirtualTime(collect(run))), sentAt, seen };
}

describe('the pace of a run', () => {
  test('responses after 3 s → more than 3 requests in flight, and the next input is read when the one before was sent', async () => {
    const { outcomes, sentAt, seen } = await importSlowly(30, 3_000);
    expect(countStatuses(outcomes)).toEqual({ created: 30 });
    expect(seen.mostInFlight).toBeGreaterThan(5);
    expect(seen.mostInFlight).toBeLessThanOrEqual(10);
    expect(seen.mostWaiting).toBe(1);
    // A token comes back 1.51 s after its request was sent, if no response has come.
    expect((sentAt[29] ?? 0) - (sentAt[0] ?? 0)).toBeLessThan((30 / 3) * 1_600);
  });

  test.each<[string, CreateManyOptions, TrackingClientOptions, number]>([
    ['responses after a minute', {}, { rateLimit: undefined }, 10],
    ['no limiter', {}, { rateLimit: false }, 3],
    ['a limit for the queue of the limiter', {}, { rateLimit: { maxQueue: 50 } }, 3],
    ['concurrency 2', { concurrency: 2 }, { rateLimit: undefined }, 2],
  ])('%s → at most $3 requests in flight', async (_, options, client, most) => {
    const { outcomes, seen } = await importSlowly(20, 60_000, { timeoutMs: 90_000, ...options }, client);
    expect(countStatuses(outcomes)).toEqual({ created: 20 });
    expect(seen.mostInFlight).toBe(most);
  });

  test('a limiter without a queue, responses after 3 s → every chunk is sent, none ends as queue_full', async () => {
    const { outcomes } = await importSlowly(12, 3_000, {}, { rateLimit: { maxQueue: 0 } });
    expect(countStatuses(outcomes)).toEqual({ created: 12 });
  });
});
