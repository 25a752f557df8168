import { randomUUID } from 'node:crypto';
import { TrackingClient } from '../../src/index.ts';
import type { Figure } from './case.ts';
import { usedHeapBytes } from './heap.ts';
import type { VirtualClock } from './virtual-clock.ts';

const TRACKERS = 10_000;
const EVENTS_PER_TRACKER = 12;
const MAX_BYTES = 2048;

/** Results with events that nobody has seen, as the service sends them; nothing of them is kept here. */
function resultsOf(trackerId: string): Response {
  const events = Array.from({ length: EVENTS_PER_TRACKER }, () => ({
    eventId: randomUUID(),
    occurrenceDatetime: '2026-03-04T17:12:57',
    statusMilestone: 'in_transit',
    status: 'Arrived at the sorting centre',
    location: 'Beijing',
  }));
  const tracker = {
    trackerId,
    trackingNumber: 'RR123456785CN',
    isTracked: true,
    isSubscribed: true,
    createdAt: '2026-03-01T11:09:00.000Z',
  };
  return Response.json({ data: { trackings: [{ tracker, events }] } });
}

/** Bytes that each tracker of a stream costs between its polls, the id included. */
async function measure(clock: VirtualClock, count: number): Promise<number> {
  const fetch: typeof globalThis.fetch = async (input, init) =>
    resultsOf(new Request(input, init).url.split('/').at(-2) ?? '');
  const client = new TrackingClient({
    baseUrl: 'https://tracking.test/v1',
    apiKey: 'bench',
    fetch,
    rateLimit: false,
  });
  function* ids() {
    for (let index = 0; index < count; index += 1) yield randomUUID();
  }
  const heapBefore = await usedHeapBytes();
  const stream = client.trackers.pollMany(ids());
  let updates = 0;
  const read = async () => {
    for await (const _ of stream) updates += 1;
  };
  const reading = read();
  await clock.run(() => updates === count);
  // The clock keeps cleared timers until their time comes; Node does not.
  await clock.pass(60_000);
  const bytes = ((await usedHeapBytes()) - heapBefore) / count;
  await stream.return();
  await reading;
  return bytes;
}

/** What ten thousand waiting trackers cost, each with a history that must not be told again. */
export async function measureIdleHeap(clock: VirtualClock): Promise<Figure> {
  // The first stream pays for compiled code and caches.
  await measure(clock, 1000);
  const bytesPerTracker = await measure(clock, TRACKERS);
  return {
    name: `heap per idle tracker, ${TRACKERS.toLocaleString('en')} trackers with ${EVENTS_PER_TRACKER} events each`,
    target: `<= ${MAX_BYTES} bytes`,
    isReached: bytesPerTracker > 0 && bytesPerTracker <= MAX_BYTES,
    found: `${bytesPerTracker.toFixed(0)} bytes, the id included`,
    values: { bytesPerTracker },
  };
}
