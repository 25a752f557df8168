import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClientOptions } from '../../src/options.ts';
import { bulkService, collect, countsOf, created, inputsOf } from './bulk-service.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A service that asks for a pause at the second request, and its client with the built-in limiter. */
function pausingService(retryAfterSeconds: number, options: TrackingClientOptions = {}) {
  const pause = { status: 429, headers: { 'retry-after': `${retryAfterSeconds}` }, body: '' };
  return bulkService((inputs, request) => (request === 2 ? pause : created(inputs)), {
    rateLimit: undefined,
    retry: undefined,
    ...options,
  });
}

describe('a long pause in mid-run', () => {
  test('ten minutes → the run waits and every input is created', async () => {
    const { client, sent } = pausingService(600);
    const collecting = collect(client.trackers.createMany(inputsOf(10), { chunkSize: 1 }));
    await vi.advanceTimersByTimeAsync(599_000);
    expect(sent).toHaveLength(3);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(countsOf((await collecting).outcomes)).toEqual({ created: 10 });
  });

  test('two hours → the chunk that met it fails, and the others ask again after one', async () => {
    const { client } = pausingService(7200);
    const collecting = collect(client.trackers.createMany(inputsOf(10), { chunkSize: 1, concurrency: 1 }));
    await vi.advanceTimersByTimeAsync(3_620_000);
    expect(countsOf((await collecting).outcomes)).toEqual({ created: 9, error: 1 });
  });

  test.each([
    ['of the client', { retry: { maxRetryAfterMs: 5000 } }, {}],
    ['of the run', {}, { retry: { maxRetryAfterMs: 5000 } }],
  ])('longer than maxRetryAfterMs %s → the rest come out as error at once', async (_whose, client, run) => {
    const service = pausingService(600, client);
    const options = { chunkSize: 1, concurrency: 1, ...run };
    const collecting = collect(service.client.trackers.createMany(inputsOf(10), options));
    await vi.advanceTimersByTimeAsync(5000);
    expect(countsOf((await collecting).outcomes)).toEqual({ created: 1, error: 9 });
  });

  test('an abort while it waits → ends at once', async () => {
    const { client } = pausingService(600);
    const controller = new AbortController();
    const options = { chunkSize: 1, signal: controller.signal };
    const collecting = collect(client.trackers.createMany(inputsOf(10), options));
    await vi.advanceTimersByTimeAsync(5000);
    controller.abort('enough');
    expect((await collecting).error).toBe('enough');
    expect(vi.getTimerCount()).toBe(0);
  });
});
