import { randomUUID } from 'node:crypto';
import { TrackingClient } from '../../src/index.ts';
import { usedHeapBytes } from '../heap.ts';
import type { Figure } from '../report.ts';
import { formatCount } from '../statistics.ts';
import type { VirtualClock } from './virtual-clock.ts';

const IDLE_TRACKERS = 10_000;
const EVENTS_PER_TRACKER = 12;
const MAX_IDLE_BYTES = 1400;

/** Measures the memory of a tracker between its polls, with the ids of its past events. */
export async function measureIdleHeap(clock: VirtualClock): Promise<Figure> {
  // Run a short stream first, so that compiled code and caches are not counted.
  await measureBytesPerTracker(clock, 1000);
  const bytes = await measureBytesPerTracker(clock, IDLE_TRACKERS);
  return {
    name: `heap per idle tracker, ${formatCount(IDLE_TRACKERS)} trackers with ${EVENTS_PER_TRACKER} events each`,
    target: `<= ${MAX_IDLE_BYTES} bytes`,
    isReached: bytes > 0 && bytes <= MAX_IDLE_BYTES,
    found: `${bytes.toFixed(0)} bytes, the id included`,
  };
}

async function measureBytesPerTracker(clock: VirtualClock, count: number): Promise<number> {
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const trackerId = new Request(input, init).url.split('/').at(-2) ?? '';
    const events = Array.from({ length: EVENTS_PER_TRACKER }, () => ({
      eventId: randomUUID(),
      occurrenceDatetime: '2026-03-04T17:12:57',
      statusMilestone: 'in_transit',
      status: 'Arrived at the sorting centre',
    }));
    const flags = { isTracked: true, isSubscribed: true, createdAt: '2026-03-01T11:09:00.000Z' };
    const tracker = { trackerId, trackingNumber: 'RR123456785CN', ...flags };
    return Response.json({ data: { trackings: [{ tracker, events }] } });
  };
  const client = new TrackingClient({
    baseUrl: 'https://tracking.test/v1',
    apiKey: 'bench',
    fetch,
    rateLimit: false,
  });
  function* generateIds() {
    for (let index = 0; index < count; index += 1) yield randomUUID();
  }
  const heapBefore = await usedHeapBytes();
  const stream = client.trackers.pollMany(generateIds());
  let updates = 0;
  const read = async () => {
    for await (const _ of stream) updates += 1;
  };
  const reading = read();
  await clock.run(() => updates === count);
  const bytes = ((await usedHeapBytes()) - heapBefore) / count;
  await stream.return();
  await reading;
  return bytes;
}
