import { type TrackerInput, TrackingClient } from '../../src/index.ts';
import { BulkService } from './bulk-service.ts';
import type { Figure } from './case.ts';
import { MIB, usedHeapBytes } from './heap.ts';
import { inVirtualTime, real, type VirtualClock } from './virtual-clock.ts';

const INPUTS_PER_SECOND = 300;
const MOST_OVER_PERCENT = 3;
const MOST_GROWTH_MIB = 20;
const CHUNKS_UNDER_WAY = 3;
const CHUNK_SIZE = 100;
const HEAP_SAMPLES = 10;

/** Runs one import in virtual time and compares it with the pace the service allows. */
export async function measureBulk(clock: VirtualClock, count: number, latencyMs: number): Promise<Figure> {
  const service = new BulkService(latencyMs);
  const client = new TrackingClient({
    baseUrl: 'https://tracking.test/v1',
    apiKey: 'bench',
    fetch: service.fetch,
  });
  let taken = 0;
  let mostAhead = 0;
  function* inputs(): Generator<TrackerInput> {
    for (; taken < count; taken += 1) {
      mostAhead = Math.max(mostAhead, taken + 1 - service.answered);
      yield { trackingNumber: `LP${String(taken).padStart(9, '0')}CN`, clientTrackerId: `order-${taken}` };
    }
  }

  const heaps: number[] = [];
  const startedAt = clock.now;
  const realStartedAt = real.now();
  const run = client.trackers.createMany(inputs());
  let misplaced = 0;
  const read = async () => {
    let expected = 0;
    for await (const { index, status } of run) {
      if (index !== expected || status !== 'created') misplaced += 1;
      expected += 1;
      // The first sample comes after a tenth, when the code is compiled and the caches are full.
      if (expected % (count / HEAP_SAMPLES) === 0) heaps.push(await usedHeapBytes());
    }
  };
  await inVirtualTime(clock, read());

  const seconds = (clock.now - startedAt) / 1000;
  const idealSeconds = count / INPUTS_PER_SECOND;
  const overPercent = (seconds / idealSeconds - 1) * 100;
  const growthMib = (Math.max(...heaps) - (heaps[0] ?? 0)) / MIB;
  const hasTarget = latencyMs <= 10;
  const isReached =
    overPercent <= MOST_OVER_PERCENT &&
    growthMib < MOST_GROWTH_MIB &&
    mostAhead <= CHUNKS_UNDER_WAY * CHUNK_SIZE &&
    service.refused === 0 &&
    misplaced === 0;
  const created = run.summary().created.toLocaleString('en');
  return {
    name: `createMany of ${count.toLocaleString('en')} inputs, answers after ${latencyMs} ms`,
    ...(hasTarget
      ? {
          target: `<= ${MOST_OVER_PERCENT}% over the ideal, heap growth < ${MOST_GROWTH_MIB} MB, read ahead <= ${CHUNKS_UNDER_WAY} chunks`,
          isReached,
        }
      : {}),
    found: `${overPercent.toFixed(1)}% over (${seconds.toFixed(1)} s for ${idealSeconds.toFixed(1)} s), heap ${growthMib.toFixed(1)} MB, ${mostAhead} inputs ahead; ${created} created, ${service.refused} answers of 429`,
    values: {
      count,
      latencyMs,
      seconds,
      idealSeconds,
      overPercent,
      growthMib,
      mostAhead,
      misplaced,
      requests: service.requests,
      refused: service.refused,
      realSeconds: (real.now() - realStartedAt) / 1000,
    },
  };
}
