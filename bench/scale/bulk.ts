import { type TrackerInput, TrackingClient } from '../../src/index.ts';
import { usedHeapBytes } from '../heap.ts';
import type { Figure } from '../report.ts';
import { formatCount } from '../statistics.ts';
import type { VirtualClock } from './virtual-clock.ts';

const WINDOW_MS = 1000;
const REQUESTS_PER_SECOND = 3;
const CHUNK_SIZE = 100;
const MAX_CHUNKS_AHEAD = 10;
const MIN_SHARE_PERCENT = 98;
const MAX_GROWTH_MB = 2;
const HEAP_SAMPLES = 10;

/**
 * Responds like the bulk endpoint, with a sliding window, and forgets the trackers. The fake service keeps every tracker, and
 * a million of them would hide the memory of the client itself.
 */
function createBulkService(latencyMs: number) {
  const accepted: number[] = [];
  const counts = { refused: 0, responded: 0 };
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const now = performance.now();
    while ((accepted[0] ?? now) <= now - WINDOW_MS) accepted.shift();
    const isRefused = accepted.length >= REQUESTS_PER_SECOND;
    if (!isRefused) accepted.push(now);
    await new Promise<void>((resolve) => {
      setTimeout(resolve, latencyMs);
    });
    if (isRefused) {
      counts.refused += 1;
      return new Response('too many', { status: 429, headers: { 'retry-after': '1' } });
    }
    // The client sends an array of inputs as JSON.
    const inputs = (await request.json()) as TrackerInput[];
    counts.responded += inputs.length;
    const data = inputs.map((inputData) => ({
      itemStatus: 'created',
      inputData,
      tracker: {
        trackerId: `tracker-${inputData.trackingNumber}`,
        trackingNumber: inputData.trackingNumber,
        clientTrackerId: inputData.clientTrackerId,
        isTracked: true,
        isSubscribed: true,
        createdAt: '2026-03-01T11:09:00.000Z',
      },
      errors: null,
    }));
    return Response.json({ status: 'success', data, error: null }, { status: 201 });
  };
  return { fetch, counts };
}

/** Runs one import in virtual time and compares it with the pace that the service allows. */
export async function measureBulk(clock: VirtualClock, count: number, latencyMs: number): Promise<Figure> {
  const { fetch, counts } = createBulkService(latencyMs);
  const client = new TrackingClient({ baseUrl: 'https://tracking.test/v1', apiKey: 'bench', fetch });
  let maxAhead = 0;
  function* generateInputs(): Generator<TrackerInput> {
    for (let taken = 0; taken < count; taken += 1) {
      maxAhead = Math.max(maxAhead, taken + 1 - counts.responded);
      yield { trackingNumber: `LP${String(taken).padStart(9, '0')}CN`, clientTrackerId: `order-${taken}` };
    }
  }

  const heaps: number[] = [];
  let misplaced = 0;
  const startedAt = clock.now;
  const run = client.trackers.createMany(generateInputs());
  const read = async () => {
    let expected = 0;
    for await (const { index, status } of run) {
      if (index !== expected || status !== 'created') misplaced += 1;
      expected += 1;
      // The first sample comes after a tenth of the inputs, when the code is compiled and the caches are full.
      if (expected % (count / HEAP_SAMPLES) === 0) heaps.push(await usedHeapBytes());
    }
  };
  await clock.runUntil(read());

  const seconds = (clock.now - startedAt) / 1000;
  const idealSeconds = count / (REQUESTS_PER_SECOND * CHUNK_SIZE);
  const overPercent = (seconds / idealSeconds - 1) * 100;
  const sharePercent = (100 * idealSeconds) / seconds;
  const growthMb = (Math.max(...heaps) - (heaps[0] ?? 0)) / 1e6;
  const figure = {
    name: `createMany of ${formatCount(count)} inputs, responses after ${latencyMs} ms`,
    found: `${overPercent.toFixed(1)}% over (${seconds.toFixed(1)} s for ${idealSeconds.toFixed(1)} s), ${sharePercent.toFixed(1)}% of the limit, heap growth ${growthMb.toFixed(1)} MB, ${maxAhead} inputs ahead; ${formatCount(run.summary().created)} created, ${counts.refused} responses with 429`,
  };
  if (latencyMs > 10) return figure;
  return {
    ...figure,
    target: `>= ${MIN_SHARE_PERCENT}% of the limit, heap growth < ${MAX_GROWTH_MB} MB, read ahead <= ${MAX_CHUNKS_AHEAD} chunks`,
    isReached:
      sharePercent >= MIN_SHARE_PERCENT &&
      growthMb < MAX_GROWTH_MB &&
      maxAhead <= MAX_CHUNKS_AHEAD * CHUNK_SIZE &&
      counts.refused === 0 &&
      misplaced === 0,
  };
}
